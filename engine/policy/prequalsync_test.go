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

// ans is an answer of candidate i, asked at the query's instant.
func ans(cs []engine.Candidate, i int, rif uint32, latency engine.Duration, at engine.Instant) engine.Answer {
	return engine.Answer{ID: cs[i].ID, Reading: engine.Reading{RIF: rif, Latency: latency, Asked: at}}
}

func TestPrequalSyncDecidesAmongItsFirstAnswers(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 mode=sync probes=4 wait=2", 9)
	decide := func(at engine.Instant, as ...engine.Answer) engine.Decision {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Now: at, Answers: as}, &d))
		return d
	}
	// RIFs 1 and 1: both cold, the faster decides, however good what came third.
	d := decide(10, ans(cs, 4, 1, 900, 7), ans(cs, 2, 1, 800, 7), ans(cs, 3, 0, 1, 7))
	assert.Equal(t, engine.Decision{ID: cs[2].ID, Index: 2, Latency: 800, Age: 3, Offered: 2, Cold: 2, Threshold: 1, RIF: 1, Regime: engine.RegimeCold}, d)
	// The third answer's RIF is in the window all the same: 0, 1, 1, and now 9 and 8, both above it.
	d = decide(20, ans(cs, 4, 9, 1, 20), ans(cs, 2, 8, 900, 20))
	assert.Equal(t, engine.RegimeCold, d.Regime, "nearest rank of 0.84 in five is the last: 9")
	for range 20 {
		_, err := e.Record(21, cs[0].ID, engine.Reading{RIF: 2, Latency: 5}) // too late for its query
		require.NoError(t, err)
	}
	d = decide(22, ans(cs, 4, 9, 1, 22), ans(cs, 2, 8, 900, 22))
	assert.Equal(t, engine.Decision{
		ID: cs[2].ID, Index: 2, Latency: 900, Offered: 2, Hot: 2, Threshold: 2, RIF: 8, Regime: engine.RegimeHot,
	}, d, "both hot: the least RIF")
	// One answer is enough to decide by.
	d = decide(23, ans(cs, 7, 50, engine.UnknownLatency, 23))
	assert.Equal(t, engine.RegimeHot, d.Regime)
	assert.Equal(t, uint32(7), d.Index)
	assert.Equal(t, engine.UnknownLatency, d.Latency)
	// None falls back, and nothing of the earlier answers is kept.
	d = decide(24)
	assert.Equal(t, engine.RegimeFallback, d.Regime)
	assert.Equal(t, engine.CauseEmpty, d.Cause)
	assert.Zero(t, d.Offered+d.Cold+d.Hot+d.RIF)
	es, err := e.Entries(24, nil)
	require.NoError(t, err)
	assert.Empty(t, es)

	var c engine.Counters
	var f engine.Fit
	require.NoError(t, e.Inspect(&c, &f))
	assert.Equal(t, engine.Counters{Decisions: 5, Fallbacks: 1, Readings: 28}, c)
	assert.Equal(t, engine.Fit{Threshold: 8, WindowFilled: 28, Probes: 4, Wait: 2}, f)
}

func TestPrequalSyncRanksAnUnknownLatencyAsTheMedian(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 mode=sync probes=5 quantile=1", 9)
	var d engine.Decision
	q := engine.Query{Now: 5, Answers: []engine.Answer{
		ans(cs, 0, 1, 300, 5), ans(cs, 1, 0, engine.UnknownLatency, 5), ans(cs, 2, 1, 200, 5), ans(cs, 3, 1, 400, 5),
	}}
	require.NoError(t, e.Decide(&q, &d))
	assert.Equal(t, cs[2].ID, d.ID, "unknown counts as 300")
	q.Answers = []engine.Answer{ans(cs, 0, 1, 300, 5), ans(cs, 1, 0, engine.UnknownLatency, 5)}
	require.NoError(t, e.Decide(&q, &d))
	assert.Equal(t, cs[1].ID, d.ID, "equal to the only known one, with less RIF")
	assert.Equal(t, engine.Duration(300), d.Latency)
}

func TestPrequalSyncBreaksTiesByWhoWasAskedLaterAndThenApart(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 mode=sync", 9)
	var d engine.Decision
	q := engine.Query{Now: 9, Answers: []engine.Answer{ans(cs, 0, 1, 5, 7), ans(cs, 1, 1, 5, 8)}}
	require.NoError(t, e.Decide(&q, &d))
	assert.Equal(t, cs[1].ID, d.ID)
	slices.Reverse(q.Answers)
	require.NoError(t, e.Decide(&q, &d))
	assert.Equal(t, cs[1].ID, d.ID, "whatever the order of receipt")

	first := 0
	const clients = 400
	for seed := range clients {
		e, cs := machine(t, fmt.Sprint("prequal mode=sync seed=", seed), 2)
		require.NoError(t, e.Decide(&engine.Query{Answers: []engine.Answer{ans(cs, 0, 1, 5, 0), ans(cs, 1, 1, 5, 0)}}, &d))
		first += 1 - int(d.Index)
	}
	assert.NoError(t, enginetest.CheckShare(0.5, first, clients), "clients do not agree on a tie")
}

func TestPrequalSyncHonoursTriedAndStatus(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 mode=sync wait=1", 3)
	require.NoError(t, e.SetStatus(0, cs[1].ID, engine.StatusDraining))
	q := engine.Query{Now: 1, Tried: []engine.ID{cs[0].ID}, Answers: []engine.Answer{
		ans(cs, 0, 0, 1, 1), ans(cs, 1, 0, 1, 1), ans(cs, 2, 9, 900, 1),
	}}
	var d engine.Decision
	require.NoError(t, e.Decide(&q, &d))
	assert.Equal(t, cs[2].ID, d.ID, "the first answer of a replica that may have the query")
	assert.Equal(t, uint32(1), d.Offered)
}

func TestPrequalSyncIsAverseToWhatFails(t *testing.T) {
	for spec, want := range map[string]int{"prequal seed=1 mode=sync": 1, "prequal seed=1 mode=sync aversion=off": 0} {
		e, cs := machine(t, spec, 3)
		for range 2 {
			require.NoError(t, e.Report(1, engine.Report{ID: cs[0].ID, Outcome: engine.OutcomeFailure}))
		}
		require.NoError(t, e.Report(1, engine.Report{ID: cs[1].ID, Outcome: engine.OutcomeCancelled}))
		var d engine.Decision
		q := engine.Query{Now: 2, Answers: []engine.Answer{ans(cs, 0, 1, 100, 2), ans(cs, 1, 1, 1000, 2)}}
		require.NoError(t, e.Decide(&q, &d))
		assert.Equal(t, cs[want].ID, d.ID, spec)
		q.Now = engine.Instant(engine.Second) * 20
		require.NoError(t, e.Decide(&q, &d))
		assert.Equal(t, cs[want].ID, d.ID, "it is remembered")
		q.Now *= 3
		require.NoError(t, e.Decide(&q, &d))
		assert.Equal(t, cs[0].ID, d.ID, "what fails is forgotten by itself")
	}
}

// Four conditions, each its own: nobody there, nobody eligible, nobody left to try, and nobody
// who answered, which is a decision.
func TestPrequalSyncNeverMergesNoAnswersWithNoCandidates(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 mode=sync", 2)
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{}, &d))
	assert.Equal(t, engine.CauseEmpty, d.Cause)
	all := []engine.Answer{ans(cs, 0, 0, 1, 0), ans(cs, 1, 0, 1, 0)}
	err := e.Decide(&engine.Query{Tried: []engine.ID{cs[0].ID, cs[1].ID}, Answers: all}, &d)
	assert.ErrorIs(t, err, engine.ErrNoneEligible)
	require.NoError(t, e.SetStatus(0, cs[0].ID, engine.StatusUnavailable))
	require.NoError(t, e.SetStatus(0, cs[1].ID, engine.StatusDraining))
	assert.ErrorIs(t, e.Decide(&engine.Query{Answers: all}, &d), engine.ErrNoneEligible)
	due, err := e.Probes(0, nil)
	require.NoError(t, err)
	assert.Empty(t, due)
	require.NoError(t, e.SetCandidates(0, nil))
	assert.ErrorIs(t, e.Decide(&engine.Query{Answers: all}, &d), engine.ErrNoCandidates)
	err = e.Decide(&engine.Query{Answers: make([]engine.Answer, engine.MaxAnswers+1)}, &d)
	assert.ErrorIs(t, err, engine.ErrCapacity)
	assert.False(t, errors.Is(err, engine.ErrNoCandidates))
}

func TestPrequalSyncProbesAreDistinctEligibleAndUniform(t *testing.T) {
	e, cs := machine(t, "prequal seed=5 mode=sync", 10)
	require.NoError(t, e.SetStatus(0, cs[9].ID, engine.StatusDraining))
	n := enginetest.Draws(1.0/3, 0.05)
	counts := map[engine.ID]int{}
	for range n {
		due, err := e.Probes(0, nil)
		require.NoError(t, err)
		require.Len(t, due, 3)
		require.False(t, due[0] == due[1] || due[0] == due[2] || due[1] == due[2])
		for _, id := range due {
			counts[id]++
		}
	}
	assert.Zero(t, counts[cs[9].ID])
	for _, c := range cs[:9] {
		assert.NoError(t, enginetest.CheckShare(1.0/3, counts[c.ID], n))
	}
	var c engine.Counters
	var f engine.Fit
	require.NoError(t, e.Inspect(&c, &f))
	assert.Equal(t, uint64(3*n), c.ProbesDue)
	require.NoError(t, e.SetCandidates(0, cs[:2]))
	due, err := e.Probes(0, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []engine.ID{cs[0].ID, cs[1].ID}, due, "with fewer replicas than probes, all of them")
}

func TestPrequalSyncFallbackIsUniform(t *testing.T) {
	e, _ := machine(t, "prequal seed=4 mode=sync", 10)
	n := enginetest.Draws(0.1, 0.1)
	for _, count := range shares(t, e, n, 10, true) {
		assert.NoError(t, enginetest.CheckShare(0.1, count, n))
	}
}

// The laws of the rule, on generated answers: any cold one means a cold decision and no cold one
// strictly faster; all hot means the least RIF; the ends of the quantile; both branches are met.
func TestPrequalSyncKeepsTheLawsOfTheRule(t *testing.T) {
	regimes := map[engine.Regime]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := genSyncConfig(t)
		c.Aversion = false
		p, err := policy.NewPrequalSync(c)
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		cs := make([]engine.Candidate, 20)
		for i := range cs {
			cs[i].ID = engine.ID(i + 1)
		}
		require.NoError(t, e.SetCandidates(0, cs))
		for now := range engine.Instant(30) {
			var q engine.Query
			q.Now = now
			for _, slot := range rapid.SliceOfNDistinct(rapid.IntRange(0, 19), 1, 16, rapid.ID).Draw(t, "slots") {
				q.Answers = append(q.Answers, ans(cs, slot, uint32(rapid.IntRange(0, 6).Draw(t, "rif")), engine.Duration(rapid.IntRange(0, 9).Draw(t, "latency")), now))
			}
			var d engine.Decision
			require.NoError(t, e.Decide(&q, &d))
			regimes[d.Regime]++
			ranked := q.Answers[:min(len(q.Answers), c.Wait)]
			require.Equal(t, uint32(len(ranked)), d.Offered)
			found := false
			for _, a := range ranked {
				found = found || a.ID == d.ID
				cold := a.Reading.RIF <= d.Threshold
				switch d.Regime {
				case engine.RegimeCold:
					require.False(t, cold && a.Reading.Latency < d.Latency, "a faster cold answer")
				case engine.RegimeHot:
					require.False(t, cold || a.Reading.RIF < d.RIF, "less RIF")
				default:
					t.Fatal("with answers there is no fallback")
				}
			}
			require.True(t, found)
			require.True(t, c.Quantile != 10000 || d.Threshold == engine.NoThreshold && d.Regime == engine.RegimeCold)
		}
	})
	assert.Positive(t, regimes[engine.RegimeHot], "the hot branch is reached")
	assert.Positive(t, regimes[engine.RegimeCold])
}

func TestPrequalSyncDoesNotAllocate(t *testing.T) {
	e, cs := machine(t, "prequal seed=7 mode=sync probes=5", 100)
	now := engine.Instant(0)
	var d engine.Decision
	q := engine.Query{Answers: make([]engine.Answer, 5)}
	probes := make([]engine.ID, 0, engine.MaxAnswers)
	assert.Zero(t, testing.AllocsPerRun(2000, func() {
		now += 100000
		probes, _ = e.Probes(now, probes[:0])
		for i, id := range probes {
			q.Answers[i] = engine.Answer{ID: id, Reading: engine.Reading{RIF: uint32(now) % 7, Latency: engine.Duration(i), Asked: now}}
		}
		q.Now = now
		_ = e.Decide(&q, &d)
		_, _ = e.Record(now, cs[3].ID, engine.Reading{RIF: 2})
		_ = e.Report(now, engine.Report{ID: d.ID, Outcome: engine.OutcomeFailure})
	}))
}

func TestPrequalSyncExplains(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 mode=sync", 5)
	name := func(id engine.ID) string {
		return string(rune('a' + slices.IndexFunc(cs, func(c engine.Candidate) bool { return c.ID == id })))
	}
	x := e.Explain(&engine.Query{Now: 9, Answers: []engine.Answer{
		ans(cs, 3, 1, 4*engine.Millisecond, 9), ans(cs, 1, 2, 2*engine.Millisecond, 9), ans(cs, 0, 0, engine.Millisecond, 9),
	}})
	assert.Equal(t, "b answers fastest (2 ms) of the 2 cold answers (RIF at most 2); 0 are hot; next would be a", x.Sentence(name))
	require.Len(t, x.Weighed, 5)
	verdicts := map[string]engine.Verdict{}
	for _, w := range x.Weighed {
		verdicts[name(w.ID)] = w.Verdict
	}
	assert.Equal(t, map[string]engine.Verdict{
		"b": engine.VerdictChosen, "d": engine.VerdictLost, "a": engine.VerdictUnweighed, "c": engine.VerdictUnweighed, "e": engine.VerdictUnweighed,
	}, verdicts)
	require.NotNil(t, x.Weighed[0].Entry)
	assert.Equal(t, uint32(2), x.Weighed[0].Entry.RawRIF)
	assert.Equal(t, []string{"1 answer beyond the first 2 did not decide (wait=2)"}, x.Notes)
	x = e.Explain(&engine.Query{Now: 9})
	assert.Contains(t, x.Sentence(name), "was drawn among the open candidates, because none of this query's probes was answered in time")
}

func BenchmarkDecideSync(b *testing.B) {
	for _, n := range []int{8, 64, 512, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e, _ := machine(b, "prequal seed=7 mode=sync", n)
			now := engine.Instant(0)
			var d engine.Decision
			q := engine.Query{}
			i := uint64(0)
			var due []engine.ID
			b.ReportAllocs()
			for b.Loop() {
				now += 1000
				due, _ = e.Probes(now, due[:0])
				q.Now, q.Answers = now, q.Answers[:0]
				for _, id := range due {
					i = i*6364136223846793005 + 1442695040888963407
					q.Answers = append(q.Answers, engine.Answer{ID: id, Reading: engine.Reading{RIF: uint32(i >> 60), Latency: engine.Duration(i>>40 + 1000000), Asked: now}})
				}
				if err := e.Decide(&q, &d); err != nil {
					b.Fatal(err)
				}
				_ = e.Report(now, engine.Report{ID: d.ID})
			}
		})
	}
}

// A stranger may date its question before everything; the age is then the longest there is.
func TestAnAnswerAskedAnAgeAgoHasAnAge(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 mode=sync", 2)
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{Now: 1 << 62, Answers: []engine.Answer{
		{ID: cs[0].ID, Reading: engine.Reading{RIF: 1, Latency: 5, Asked: -1 << 63}},
	}}, &d))
	assert.Equal(t, engine.Duration(1<<63-1), d.Age)
}
