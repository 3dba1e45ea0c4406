package demo

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
			"Prequal did not win: power_of_two had the lowest p99, 240 ms, and its 300 ms was 1.2 times above power_of_two (240 ms) and 5.0 times below round_robin (1500 ms); none of 300 queries was lost or failed.",
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
		r.addLoad(rep, time.Second, 2*time.Second)
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
	r.repeat(late)
	require.InDelta(t, 300, r.Max, 1, "a repeated round's latencies do not count")
	require.EqualValues(t, 200, r.Queries, "nor do its queries, so that all policies have the same number")
	require.Zero(t, r.Lost)
	require.Equal(t, Repeated{Rounds: 1, Queries: 2, Lost: 1}, r.Repeated)
	require.Contains(t, Verdict([]*Result{r}), "none of 200 queries was lost or failed, and in rounds that were repeated 1 were lost and 0 failed.")
	require.EqualValues(t, 1, NewDocument(Defaults(), []*Result{r}).Lost)
}

func TestSpecsOfOnePolicyAreToldApart(t *testing.T) {
	results := newResults([]string{"random", "prequal", "prequal probe_rate=1"})
	for i, r := range results {
		r.P99, r.RoundP99, r.OK = float64(300-100*i), []float64{float64(300 - 100*i)}, 1
	}
	require.Equal(t, "Prequal probe_rate=1 had the lowest p99, 100 ms: 2.0 times below prequal (200 ms) and 3.0 times below random (300 ms); "+
		"none of 0 queries was lost or failed.", Verdict(results))
	require.Regexp(t, `(?m)^ *prequal probe_rate=1  `, Table(results))
	require.Regexp(t, `(?m)^ *prequal  `, Table(results))
	require.Contains(t, Notes(Defaults(), results), "\nprequal probe_rate=1: decisions")
	var b strings.Builder
	NewDisplay(&b).Round(State{Results: results, Policy: "prequal probe_rate=1", Round: 1, Rounds: 1})
	require.Equal(t, "round 1 of 1, prequal probe_rate=1: p99 100 ms, errors 0, lost 0\n", b.String())
	require.NotEqual(t, short("prequal seed=7 quantile=0.84 probe_rate=1"), short("prequal seed=7 quantile=0.84 probe_rate=2"))
}

func TestBusyMachineIsInTheVerdict(t *testing.T) {
	r := measured("prequal", 150, 150)
	r.LagP99 = 42
	require.Equal(t, "Prequal alone was measured, with a p99 of 150 ms; none of 100 queries was lost or failed. "+
		"The generator was late itself (lag p99 up to 42 ms): this machine was busy, so read the figures with care and run again.", Verdict([]*Result{r}))
}

func TestDescribeAgreesInNumber(t *testing.T) {
	s := Defaults()
	s.Policies, s.Rounds, s.Replicas, s.Noisy, s.Balancers = []string{"prequal"}, 1, 1, Noisy(1), 1
	text := s.Describe()
	require.Contains(t, text, "1 HTTP replica on loopback")
	require.Contains(t, text, "1 independent balancer per policy, with its own")
	require.Contains(t, text, "1 policy x 1 round of ")
	require.NotContains(t, text, "noisy")
	s.Replicas, s.Noisy = 5, Noisy(5)
	require.Contains(t, s.Describe(), "1 of them has a noisy neighbour: it takes 3 times as long")
	require.Contains(t, Defaults().Describe(), "5 policies x 2 rounds of ")
	require.Equal(t, Defaults().Noisy, Noisy(Defaults().Replicas))
}

func TestTableAndNotes(t *testing.T) {
	done := measured("prequal", 150, 140, 160)
	done.Regimes = map[string]uint64{"cold": 80, "hot": 15, "fallback": 5}
	done.Causes = map[string]uint64{"empty": 5}
	done.Fit = &Fit{Pool: 5, RemoveRate: 0.25, ReuseBudget: 1.6, SmallFleet: true}
	done.LagP99, done.Repeated = 42, Repeated{Rounds: 1, Queries: 720, Errors: 3}
	done.Probes = Probes{Sent: 300, Failed: 24, Late: 23}
	waiting := newResult("random")
	table := Table([]*Result{done, waiting})
	require.Contains(t, table, "140 160")
	require.Regexp(t, `random +- `, table)
	notes := Notes(Defaults(), []*Result{done})
	require.Contains(t, notes, "prequal: decisions cold 80, hot 15, fallback 5; fallback for empty 5; of 300 probes 24 failed and 0 were shed "+
		"(23 had no answer in 100 ms, for want of processor time: replicas answer probes without waiting).")
	require.Contains(t, notes, "its pool holds 5, remove_rate 0.25, reuse budget 1.60: the small-fleet rule: the fleet (10 replicas)")
	require.Contains(t, notes, "lag p99 up to 42 ms")
	require.Contains(t, notes, "Repeated because the generator was late: 1 round. The 720 queries sent in vain are not in the table; 0 of them were lost and 3 failed.")
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
		"--slow-factor is NaN":           func(s *Scenario) { s.SlowFactor = math.NaN() },
		"--slow-factor is +Inf":          func(s *Scenario) { s.SlowFactor = math.Inf(1) },
		"--slow-factor is 0.5":           func(s *Scenario) { s.SlowFactor = 0.5 },
		"2000000 queries a round":        func(s *Scenario) { s.Duration = 24 * time.Hour },
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
	long := newResult("prequal")
	long.label = "prequal seed=7 quantile=0.84 probe_rate=1"
	st := State{Results: []*Result{done, long}, Policy: "prequal seed=7 quantile=0.84 probe_rate=1", Round: 10, Rounds: 10, Sent: 10000, Length: 1}
	var b strings.Builder
	l := &liveTable{w: &b}
	l.Tick(st)
	first := b.String()
	for line := range strings.Lines(first) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
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
