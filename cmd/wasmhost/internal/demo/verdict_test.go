package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/loadgen"
)

// measured makes a result with the given p99 per round.
func measured(spec string, p99 float64, rounds ...float64) *Result {
	return &Result{
		Spec: spec, P99: p99, RoundP99: rounds, Queries: 100, OK: 100,
		Regimes: map[string]uint64{"direct": 100}, load: loadgen.NewReport(),
	}
}

func TestVerdictFollowsTheNumbers(t *testing.T) {
	rr := measured("round_robin", 1500, 1400, 1600)
	p2c := measured("power_of_two", 240, 200, 280)
	for name, c := range map[string]struct {
		results []*Result
		want    string
	}{
		"won": {
			[]*Result{rr, p2c, measured("prequal probe_rate=3", 150, 140, 160)},
			"Prequal had the lowest p99, 150 ms: 1.6 times below power_of_two (240 ms) and 10.0 times below round_robin (1500 ms); none of 300 queries was lost or failed.",
		},
		"won, not settled": {
			[]*Result{p2c, measured("prequal", 220, 190, 260)},
			"Prequal had the lowest p99, 220 ms: 1.1 times below power_of_two (240 ms; their rounds overlap); none of 200 queries was lost or failed.",
		},
		"did not win": {
			[]*Result{rr, p2c, measured("prequal", 300, 290, 310)},
			"Prequal did not win: power_of_two had the lowest p99, 240 ms, and Prequal's 300 ms was 1.2 times above power_of_two (240 ms) and 5.0 times below round_robin (1500 ms); none of 300 queries was lost or failed.",
		},
		"not measured": {
			[]*Result{rr, p2c},
			"Power_of_two had the lowest p99, 240 ms: 6.2 times below round_robin (1500 ms); none of 200 queries was lost or failed.",
		},
		"alone": {
			[]*Result{measured("prequal", 150, 150)},
			"Prequal alone was measured, with a p99 of 150 ms; none of 100 queries was lost or failed.",
		},
		"losses are said": {
			[]*Result{rr, {Spec: "prequal", P99: 100, RoundP99: []float64{100}, Queries: 100, OK: 90, Errors: 7, Lost: 3}},
			"Prequal had the lowest p99, 100 ms: 15.0 times below round_robin (1500 ms); of 200 queries 3 were lost and 7 failed.",
		},
		"nothing answered": {
			[]*Result{{Spec: "prequal", Queries: 10, Lost: 10}},
			"No query was answered, so nothing can be said about the policies.",
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Verdict(c.results)) })
	}
}

func TestResultMergesRounds(t *testing.T) {
	r := newResult("prequal")
	for _, us := range []int64{100_000, 300_000} {
		rep := loadgen.NewReport()
		for range 100 {
			require.NoError(t, rep.Latency.RecordValue(us))
			rep.Sent++
			rep.OK++
		}
		r.addLoad(rep, time.Second, 2*time.Second, false)
	}
	require.InDelta(t, 100, r.P50, 1)
	require.InDelta(t, 300, r.P99, 1)
	lo, hi := r.spread()
	require.InDelta(t, 100, lo, 1)
	require.InDelta(t, 300, hi, 1)
	require.Equal(t, 0.5, r.CPU)
	require.EqualValues(t, 200, r.Queries)

	late := loadgen.NewReport()
	require.NoError(t, late.Latency.RecordValue(9_000_000))
	late.Sent, late.OK, late.Lost = 2, 1, 1
	r.addLoad(late, 0, 0, true)
	require.InDelta(t, 300, r.Max, 1, "a repeated round's latencies do not count")
	require.EqualValues(t, 202, r.Queries)
	require.EqualValues(t, 1, r.Lost, "its losses do")
	require.Equal(t, 1, r.Repeated)
}

func TestTableAndNotes(t *testing.T) {
	done := measured("prequal", 150, 140, 160)
	done.Regimes = map[string]uint64{"cold": 80, "hot": 15, "fallback": 5}
	done.Causes = map[string]uint64{"empty": 5}
	done.Fit = &Fit{Pool: 5, RemoveRate: 0.25, ReuseBudget: 1.6, SmallFleet: true}
	done.LagP99, done.Repeated = 42, 1
	waiting := newResult("random")
	table := Table([]*Result{done, waiting})
	require.Contains(t, table, "140 160")
	require.Regexp(t, `random +- `, table)
	notes := Notes(Defaults(), []*Result{done})
	require.Contains(t, notes, "prequal: decisions cold 80, hot 15, fallback 5; fallback for empty 5.")
	require.Contains(t, notes, "its pool holds 5, remove_rate 0.25, reuse budget 1.60: the small-fleet rule, since 10 replicas")
	require.Contains(t, notes, "lag p99 up to 42 ms")
	require.Contains(t, notes, "Rounds repeated because the generator was late: 1;")
	require.Contains(t, notes, "p99.9 rests on fewer than ten queries")
}

func TestScenarioValidates(t *testing.T) {
	require.NoError(t, Defaults().Validate())
	require.InDelta(t, 867, Defaults().Capacity(), 1)
	for want, change := range map[string]func(*Scenario){
		"--policies is empty":            func(s *Scenario) { s.Policies = nil },
		"--policies names \"random\"":    func(s *Scenario) { s.Policies = []string{"random", "random"} },
		"--replicas is 0":                func(s *Scenario) { s.Replicas = 0 },
		"--noisy is 11":                  func(s *Scenario) { s.Noisy = 11 },
		"--balancers is 0":               func(s *Scenario) { s.Balancers = 0 },
		"--rate is 0":                    func(s *Scenario) { s.Rate = 0 },
		"--rate is 900":                  func(s *Scenario) { s.Rate = 900 },
		"--rounds is 0":                  func(s *Scenario) { s.Rounds = 0 },
		"--duration 1s leaves 100ms per": func(s *Scenario) { s.Duration = time.Second },
	} {
		s := Defaults()
		change(&s)
		require.ErrorContains(t, s.Validate(), want)
	}
}

// TestLiveTableFitsATerminal draws twice and erases: what is left is nothing, and no line is wider than 80 columns.
func TestLiveTableFitsATerminal(t *testing.T) {
	done := measured("round_robin", 15000, 14000, 16000)
	done.P50, done.P90, done.P999, done.CPU = 1500, 9000, 29999, 1.25
	st := State{Results: []*Result{done, newResult("prequal")}, Policy: "round_robin", Round: 10, Rounds: 10, Sent: 10000, Length: 1}
	var b strings.Builder
	l := &liveTable{w: &b}
	l.Tick(st)
	first := b.String()
	for line := range strings.Lines(first) {
		require.LessOrEqual(t, len(line), 80, line)
	}
	b.Reset()
	l.Repeat(st)
	require.True(t, strings.HasPrefix(b.String(), fmt.Sprintf("\x1b[%dA\x1b[J", strings.Count(first, "\n"))), "it draws over itself")
	b.Reset()
	l.Close()
	require.Equal(t, fmt.Sprintf("\x1b[%dA\x1b[J", strings.Count(first, "\n")), b.String())
}

func TestLinesWhereThereIsNoTerminal(t *testing.T) {
	var b strings.Builder
	w := NewDisplay(&b)
	st := State{Results: []*Result{measured("prequal", 150, 150)}, Policy: "prequal", Round: 1, Rounds: 2}
	w.Tick(st)
	w.Repeat(st)
	w.Round(st)
	w.Close()
	require.Equal(t, "round 1 of 2, prequal: the generator was late, so the round is repeated\n"+
		"round 1 of 2, prequal: p99 150 ms, errors 0, lost 0\n", b.String(), "no escape codes, one line per event")
}
