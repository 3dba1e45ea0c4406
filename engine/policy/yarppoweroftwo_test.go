package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

func said(t require.TestingT, e *engine.Engine, now engine.Instant, id engine.ID, rif uint32, asked engine.Instant) engine.Admission {
	a, err := e.Record(now, id, engine.Reading{RIF: rif, Latency: engine.Second, Asked: asked})
	require.NoError(t, err)
	return a
}

func TestYARPTheLowerOfTwoLastReportedWins(t *testing.T) {
	e, cs := machine(t, "yarp_power_of_two seed=4", 3)
	for i, rif := range []uint32{5, 7, 6} {
		require.Equal(t, engine.Admitted, said(t, e, 10, cs[i].ID, rif, 10))
	}
	n := enginetest.Draws(1.0/3, 0.1)
	counts := make([]int, 3)
	for range n {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Now: 25}, &d))
		counts[d.Index]++
		assert.Equal(t, []uint32{5, 7, 6}[d.Index], d.RIF)
		assert.Equal(t, engine.Duration(15), d.Age)
	}
	assert.Zero(t, counts[1], "the worst of three loses every pair")
	assert.NoError(t, enginetest.CheckShare(2.0/3, counts[0], n), "the best wins both of its pairs, whatever is in flight")

	require.Equal(t, engine.Replaced, said(t, e, 30, cs[1].ID, 1, 29))
	require.Equal(t, engine.DroppedStale, said(t, e, 31, cs[1].ID, 100, 28))
	counts = still(t, e, 40, n, 3)
	assert.NoError(t, enginetest.CheckShare(2.0/3, counts[1], n))
}

func TestYARPTiesGoEitherWay(t *testing.T) {
	e, cs := machine(t, "yarp_power_of_two seed=4", 2)
	said(t, e, 1, cs[0].ID, 3, 1)
	said(t, e, 1, cs[1].ID, 3, 1)
	n := enginetest.Draws(0.5, 0.05)
	assert.NoError(t, enginetest.CheckShare(0.5, still(t, e, 1, n, 2)[0], n))
}

func TestYARPAPairWithASilentOneDecidesByQueriesInFlight(t *testing.T) {
	e, cs := machine(t, "yarp_power_of_two seed=4", 2)
	said(t, e, 1, cs[0].ID, 0, 1)
	silent := func(why string) {
		t.Helper()
		before := [2]uint32{e.InFlight(cs[0].ID), e.InFlight(cs[1].ID)}
		for range 20 {
			var d engine.Decision
			require.NoError(t, e.Decide(&engine.Query{Now: 2}, &d))
		}
		assert.InDelta(t, e.InFlight(cs[0].ID), e.InFlight(cs[1].ID), 1, "%s: %v", why, before)
	}
	silent("never reported: an idle report is no magnet, an unknown one neither")

	said(t, e, 3, cs[1].ID, 9, 3)
	require.NoError(t, e.Forget(4, cs[1].ID, 2))
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{Now: 4}, &d))
	assert.Equal(t, cs[0].ID, d.ID, "what failed was asked before the report")
	require.NoError(t, e.Forget(4, cs[1].ID, 3))
	silent("a poll failed")

	said(t, e, 5, cs[1].ID, 9, 5)
	require.NoError(t, e.SetStatus(5, cs[1].ID, engine.StatusUnavailable))
	require.Equal(t, engine.DroppedStale, said(t, e, 5, cs[1].ID, 9, 5))
	require.NoError(t, e.SetStatus(5, cs[1].ID, engine.StatusReady))
	silent("it has been away")
	due, err := e.Probes(5, nil)
	require.NoError(t, err)
	assert.Contains(t, due, cs[1].ID, "and is polled at once")
}

const poll = engine.Instant(100 * engine.Millisecond)

// asked is a law of polling: over a run of calls, nobody who was there all along waits longer
// than an interval and a call, nobody is named twice within an interval less a call, no call
// names more than MaxProbes, and the newest are named at once.
func askedInTime(n int, step engine.Instant, probes func(now engine.Instant) []engine.ID) error {
	named := map[engine.ID]engine.Instant{}
	burst := engine.Instant((n+policy.MaxProbes-1)/policy.MaxProbes) * step
	for now := engine.Instant(0); now < 10*poll; now += step {
		due := probes(now)
		if len(due) > policy.MaxProbes {
			return fmt.Errorf("%d at once", len(due))
		}
		for _, id := range due {
			if last, ok := named[id]; ok && last > burst+poll && now-last < poll-2*step {
				return fmt.Errorf("%d named at %d and again at %d", id, last, now)
			}
			named[id] = now
		}
		if now < burst {
			continue
		}
		if len(named) < n {
			return fmt.Errorf("at %d only %d of %d have been named", now, len(named), n)
		}
		for id, last := range named {
			if now-last > poll+burst+2*step {
				return fmt.Errorf("at %d nobody has asked %d since %d", now, id, last)
			}
		}
	}
	return nil
}

func TestYARPAsksEveryoneOnceAnInterval(t *testing.T) {
	for _, n := range []int{1, 2, 63, 64, 65, 500, 2000} {
		for seed := range 3 {
			e, _ := machine(t, fmt.Sprintf("yarp_power_of_two seed=%d poll=100ms", seed), n)
			require.NoError(t, askedInTime(n, engine.Instant(engine.Millisecond), func(now engine.Instant) []engine.ID {
				due, err := e.Probes(now, nil)
				require.NoError(t, err)
				return due
			}), "%d replicas", n)
		}
	}
	require.Error(t, askedInTime(100, engine.Instant(engine.Millisecond), func(now engine.Instant) []engine.ID {
		return []engine.ID{engine.ID(now / 1e6 % 99)}
	}), "one never named is noticed")
	require.Error(t, askedInTime(10, engine.Instant(engine.Millisecond), func(engine.Instant) []engine.ID {
		return []engine.ID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	}), "asking all the time is noticed")
}

// A host that asks once an interval gets 64 names a time; everyone still has its turn.
func TestYARPWithASlowHostEveryoneHasItsTurn(t *testing.T) {
	for _, gap := range []engine.Instant{poll, poll / 2, 3*poll + 1, 7 * poll} {
		e, _ := machine(t, "yarp_power_of_two seed=2 poll=100ms", 500)
		seen := map[engine.ID]int{}
		calls := 500 / policy.MaxProbes * 6
		for i := range calls {
			due, err := e.Probes(engine.Instant(i)*gap, nil)
			require.NoError(t, err)
			for _, id := range due {
				seen[id]++
			}
		}
		require.Len(t, seen, 500)
		for id, times := range seen {
			require.InDelta(t, calls*policy.MaxProbes/500, times, 2, "%d, a call every %d", id, gap)
		}
	}
}

func TestYARPClientsDoNotAskInUnison(t *testing.T) {
	const clients = 20
	when := map[engine.Instant]int{}
	for seed := range clients {
		e, cs := machine(t, fmt.Sprintf("yarp_power_of_two seed=%d poll=100ms", seed), 3)
		for now := engine.Instant(0); now < 2*poll; now += poll / 20 {
			due, err := e.Probes(now, nil)
			require.NoError(t, err)
			if now > 0 && slices.Contains(due, cs[0].ID) {
				when[now%poll]++
			}
		}
	}
	assert.Greater(t, len(when), 8, "of twenty slices of an interval")
}

// yarpTwin names who is due by looking at every replica and every interval.
type yarpTwin struct {
	fault   string
	phase   func(engine.ID) uint64
	until   engine.Instant
	started bool
	polled  map[engine.ID]bool
}

func (w *yarpTwin) probes(now engine.Instant, cs []engine.Candidate) (due []engine.ID) {
	if !w.started {
		w.started, w.until = true, now
	}
	for _, c := range cs {
		if c.Status.Eligible() && !w.polled[c.ID] && len(due) < policy.MaxProbes {
			w.polled[c.ID] = true
			due = append(due, c.ID)
		}
	}
	for now-w.until >= 2*poll {
		w.until += poll
		if w.fault == "lateness jumps" {
			w.until = now - poll
		}
	}
	if len(due) == policy.MaxProbes { // turns wait for room
		return due
	}
	type turn struct {
		at       engine.Instant
		id       engine.ID
		eligible bool
	}
	var turns []turn
	for _, c := range cs {
		for at := engine.Instant(w.phase(c.ID)); at <= now; at += poll {
			if at > w.until && at <= w.until+poll {
				turns = append(turns, turn{at, c.ID, c.Status.Eligible()})
			}
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return int(a.at - b.at) })
	for _, x := range turns {
		if x.eligible && !slices.Contains(due, x.id) {
			if len(due) == policy.MaxProbes {
				if w.fault == "the rest is dropped" {
					w.until = now
				}
				return due
			}
			due = append(due, x.id)
		}
		w.until = x.at // the turn of one that may not serve has passed as well
	}
	w.until = now
	return due
}

var errYARP = errors.New("differ")

// walkYARP drives engine and twin through churn, drains and restores. The phases are taken from
// the engine itself, one replica at a time.
func walkYARP(t *rapid.T, fault string) error {
	n := rapid.SampledFrom([]int{1, 3, 70, 150}).Draw(t, "replicas")
	seed := rapid.IntRange(0, 3).Draw(t, "seed")
	spec := fmt.Sprintf("yarp_power_of_two seed=%d poll=100ms", seed)
	p, err := policy.Parse(spec)
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	phases := map[engine.ID]uint64{}
	w := &yarpTwin{fault: fault, polled: map[engine.ID]bool{}, phase: func(id engine.ID) uint64 {
		if _, ok := phases[id]; !ok {
			phases[id] = policy.YARPPhase(e, id, n, engine.Duration(poll))
		}
		return phases[id]
	}}
	var cs []engine.Candidate
	for i := range n {
		cs = append(cs, engine.Candidate{ID: engine.ID(i)})
	}
	require.NoError(t, e.SetCandidates(0, cs))
	now := engine.Instant(0)
	for range 40 {
		now += engine.Instant(rapid.SampledFrom([]int{0, 1_000_000, 3_000_001, 40_000_000, 100_000_000, 350_000_000}).Draw(t, "pause"))
		switch rapid.SampledFrom([]string{"probes", "probes", "probes", "status", "fleet", "restore"}).Draw(t, "op") {
		case "probes":
			due, err := e.Probes(now, nil)
			require.NoError(t, err)
			if want := w.probes(now, cs); !slices.Equal(due, want) {
				return fmt.Errorf("%w: at %d: engine %v, twin %v", errYARP, now, due, want)
			}
		case "status":
			i, st := rapid.IntRange(0, n-1).Draw(t, "replica"), engine.Status(rapid.IntRange(0, 1).Draw(t, "status"))
			require.NoError(t, e.SetStatus(now, cs[i].ID, st))
			if cs[i].Status = st; st != engine.StatusReady {
				delete(w.polled, cs[i].ID)
			}
		case "fleet":
			cs = rapid.Permutation(cs).Draw(t, "order")
			require.NoError(t, e.SetCandidates(now, cs))
		case "restore":
			block, err := e.Snapshot(nil)
			require.NoError(t, err)
			require.NoError(t, e.Restore(block))
		}
	}
	return nil
}

func TestYARPPollsLikeItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { require.NoError(t, walkYARP(t, "")) })
}

func TestTheYARPTwinNoticesPlantedFaults(t *testing.T) {
	for _, fault := range []string{"lateness jumps", "the rest is dropped"} {
		walks := rapid.Custom(func(t *rapid.T) error { return walkYARP(t, fault) })
		noticed := false
		for seed := range 200 {
			noticed = noticed || errors.Is(walks.Example(seed), errYARP)
		}
		assert.True(t, noticed, fault)
	}
}

func TestYARPShowsWhatItHolds(t *testing.T) {
	e, cs := machine(t, "yarp_power_of_two seed=4", 4)
	said(t, e, 7, cs[2].ID, 11, 6)
	es, err := e.Entries(9, nil)
	require.NoError(t, err)
	require.Len(t, es, 1)
	assert.Equal(t, engine.Entry{
		ID: cs[2].ID, At: 7, Asked: 6, Latency: -1, RawLatency: -1, RIF: 11, RawRIF: 11, Uses: 1<<32 - 1, Eligible: true,
	}, es[0])
	var c engine.Counters
	var f engine.Fit
	require.NoError(t, e.Inspect(&c, &f))
	assert.Equal(t, engine.Counters{Admitted: 1, Readings: 1}, c)
}

func TestYARPRefusesWordsThatAreNoReport(t *testing.T) {
	e, cs := machine(t, "yarp_power_of_two seed=4", 3)
	said(t, e, 100, cs[0].ID, 11, 90)
	require.NoError(t, e.SetStatus(100, cs[1].ID, engine.StatusDraining))
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	require.NoError(t, e.Restore(block))
	slot := func(i, word int) int { return len(block) - 8*4*3 + 8*(4*i+1+word) }
	for name, change := range map[string]func(b []byte){
		"an unknown flag":                 func(b []byte) { b[slot(0, 0)+5] = 1 },
		"a report by one that is out":     func(b []byte) { b[slot(1, 0)+4] = 1 },
		"an answer before its poll":       func(b []byte) { b[slot(0, 1)] = 101 },
		"an answer that is still to come": func(b []byte) { b[slot(0, 2)] = 101 },
		"a poll before the first instant": func(b []byte) { b[len(block)-8*4*3-8*7] = 1; b[len(block)-8*4*3-8*6+7] = 0x80 },
	} {
		bad := append([]byte(nil), block...)
		change(bad)
		assert.ErrorIs(t, e.Restore(bad), engine.ErrBlock, name)
	}
}

// Turns beyond the last instant there is are never reached; they must not wrap into the past.
func TestYARPPollsUpToTheLastInstant(t *testing.T) {
	const end = engine.Instant(1<<63 - 1)
	e, cs := machine(t, "yarp_power_of_two seed=4 poll=1s", 40)
	named := map[engine.ID]int{}
	for now := end - 500*engine.Instant(engine.Millisecond); ; now += engine.Instant(engine.Millisecond) {
		due, err := e.Probes(now, nil)
		require.NoError(t, err)
		for _, id := range due {
			named[id]++
		}
		block, err := e.Snapshot(nil)
		require.NoError(t, err)
		require.NoError(t, e.Restore(block), "%d before the end", end-now)
		if now > end-engine.Instant(engine.Millisecond) {
			break
		}
	}
	for _, c := range cs {
		assert.Contains(t, []int{1, 2}, named[c.ID], "at once, and once if its turn comes within half an interval")
	}
}
