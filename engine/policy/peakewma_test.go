package policy

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
)

const (
	milli = engine.Millisecond
	sec   = engine.Instant(engine.Second)
)

func peak(t require.TestingT, c PeakEWMAConfig, n int) (*PeakEWMA, *engine.Engine, []engine.Candidate) {
	p, err := NewPeakEWMA(c)
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i].ID = engine.ID(i + 1)
	}
	require.NoError(t, e.SetCandidates(0, cs))
	return p, e, cs
}

// reads is a slot's estimate in nanoseconds.
func (p *PeakEWMA) reads(now engine.Instant, slot uint32) float64 {
	return float64(p.faded(now, p.Set.Words(slot))) / (1 << partBits)
}

func report(t require.TestingT, e *engine.Engine, now engine.Instant, id engine.ID, latency engine.Duration) {
	require.NoError(t, e.Report(now, engine.Report{ID: id, Latency: latency}))
}

func TestPeakEWMAStartsAtInitialAndFadesAsItIsRead(t *testing.T) {
	p, _, _ := peak(t, DefaultPeakEWMA(1), 2)
	assert.InEpsilon(t, 1e9, p.reads(0, 0), 1e-9)
	assert.InEpsilon(t, 1e9/math.E, p.reads(10*sec, 0), 1e-7)
	assert.InEpsilon(t, 1e9/math.E, p.reads(10*sec, 0), 1e-7, "reading changes nothing")
	assert.Zero(t, p.reads(1000*sec, 0))
}

func TestPeakEWMAJumpsUpAtOnceAndAveragesDown(t *testing.T) {
	p, e, cs := peak(t, DefaultPeakEWMA(1), 2)
	report(t, e, 5*sec, cs[0].ID, 3000*milli)
	assert.InEpsilon(t, 3e9, p.reads(5*sec, 0), 1e-7)
	report(t, e, 10*sec, cs[0].ID, 100*milli)
	assert.InEpsilon(t, 3e9*math.Exp(-0.5)+1e8*(1-math.Exp(-0.5)), p.reads(10*sec, 0), 1e-7)
	report(t, e, 10*sec, cs[0].ID, 1*milli)
	assert.InEpsilon(t, 3e9*math.Exp(-0.5)+1e8*(1-math.Exp(-0.5)), p.reads(10*sec, 0), 1e-7, "no time has passed")
}

// Poise kept the decayed peak: one sample of 100 ms and 100,000 of 2 ms left 99.9998 ms.
func TestD9SamplesUnderThePeakAreNotIgnored(t *testing.T) {
	p, e, cs := peak(t, PeakEWMAConfig{Tau: 10 * engine.Second, Initial: engine.Microsecond}, 1)
	report(t, e, 0, cs[0].ID, 100*milli)
	now := engine.Instant(0)
	for range 100_000 {
		now += engine.Instant(milli)
		report(t, e, now, cs[0].ID, 2*milli)
	}
	want := 2e6 + 98e6*math.Exp(-10)
	assert.InEpsilon(t, want, p.reads(now, 0), 1e-4, "after ten time constants the peak is forgotten")
	for range 1_000_000 {
		now += 1000
		report(t, e, now, cs[0].ID, 2*milli)
	}
	assert.InEpsilon(t, 2e6+98e6*math.Exp(-10.1), p.reads(now, 0), 1e-3, "at a million samples a second too")
}

func TestPeakEWMAFailuresNeverLowerAnEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultPeakEWMA(1)
		c.Penalty = engine.Duration(rapid.SampledFrom([]int{0, 1000, 5_000_000_000}).Draw(t, "penalty"))
		p, e, cs := peak(t, c, 1)
		report(t, e, 1, cs[0].ID, engine.Duration(rapid.IntRange(0, 1<<40).Draw(t, "latency")))
		now := engine.Instant(rapid.Int64Range(2, 1<<36).Draw(t, "later"))
		was := p.reads(1, 0)
		failed := engine.Duration(rapid.IntRange(-1, 1<<40).Draw(t, "failed after"))
		outcome := rapid.SampledFrom([]engine.Outcome{engine.OutcomeFailure, engine.OutcomeOverloaded}).Draw(t, "outcome")
		require.NoError(t, e.Report(now, engine.Report{ID: cs[0].ID, Outcome: outcome, Latency: failed}))
		require.InDelta(t, max(was, float64(failed), float64(c.Penalty)), p.reads(now, 0), 1e-4)

		before := p.reads(now, 0)
		require.NoError(t, e.Report(now+5, engine.Report{ID: cs[0].ID, Outcome: engine.OutcomeCancelled, Latency: 1 << 45}))
		require.NoError(t, e.Report(now+5, engine.Report{ID: cs[0].ID, Latency: engine.UnknownLatency}))
		require.Equal(t, before, p.reads(now, 0), "a cancelled query and an unknown latency say nothing")
	})
}

func TestPeakEWMADecidesForTheLowerCost(t *testing.T) {
	p, e, cs := peak(t, DefaultPeakEWMA(3), 2)
	report(t, e, 1, cs[0].ID, 1000*milli) // both at a second
	var d engine.Decision
	counts := [2]int{}
	for range 10 {
		require.NoError(t, e.Decide(&engine.Query{Now: 2}, &d))
		counts[d.Index]++
	}
	assert.Equal(t, [2]int{5, 5}, counts, "equal estimates share by queries in flight")
	w := p.Set.Words(1)
	w[estimateWord] /= 10
	for range 45 {
		require.NoError(t, e.Decide(&engine.Query{Now: 2}, &d))
		assert.Equal(t, cs[1].ID, d.ID, "a tenth of the estimate is worth ten times the queries: %d", e.InFlight(cs[1].ID))
	}
}

func TestPeakEWMAQueriesCountWhenEstimatesHaveFadedAway(t *testing.T) {
	_, e, cs := peak(t, DefaultPeakEWMA(3), 3)
	for range 300 {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Now: 2000 * sec}, &d))
	}
	for _, c := range cs {
		assert.InDelta(t, 100, e.InFlight(c.ID), 3)
	}
}

func TestPeakEWMAReplicasThatTurnReadyStartAtInitialAtLeast(t *testing.T) {
	p, e, cs := peak(t, DefaultPeakEWMA(1), 3)
	report(t, e, sec, cs[0].ID, 60_000*milli)
	report(t, e, 31*sec, cs[1].ID, 2*milli)
	for _, s := range []engine.Status{engine.StatusDraining, engine.StatusUnavailable, engine.StatusReady} {
		for _, c := range cs[:2] {
			require.NoError(t, e.SetStatus(31*sec, c.ID, s))
		}
	}
	assert.InEpsilon(t, 60e9*math.Exp(-3), p.reads(31*sec, 0), 1e-6, "known to be slow")
	assert.InEpsilon(t, 1e9, p.reads(31*sec, 1), 1e-6)
	require.NoError(t, e.SetCandidates(50*sec, []engine.Candidate{{ID: 9}, cs[0]}))
	assert.InEpsilon(t, 1e9, p.reads(50*sec, 0), 1e-6, "a new one")
	assert.InEpsilon(t, 60e9*math.Exp(-4.9), p.reads(50*sec, 1), 1e-6, "kept by identity")
}

func TestPeakEWMARefusesWordsThatAreNoEstimate(t *testing.T) {
	_, e, cs := peak(t, DefaultPeakEWMA(1), 3)
	report(t, e, sec, cs[0].ID, 20*milli)
	require.NoError(t, e.SetStatus(sec, cs[1].ID, engine.StatusDraining))
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	require.NoError(t, e.Restore(block))
	slot := func(i, word int) int { return len(block) - 8*3*3 + 8*(3*i+1+word) }
	for name, change := range map[string]func(b []byte){
		"no estimate":                    func(b []byte) { binary.LittleEndian.PutUint64(b[slot(0, estimateWord):], 0) },
		"a ready replica marked as out":  func(b []byte) { b[slot(0, estimateWord)+7] |= 0x80 },
		"a draining one that is not":     func(b []byte) { b[slot(1, estimateWord)+7] &^= 0x80 },
		"a sample that is still to come": func(b []byte) { binary.LittleEndian.PutUint64(b[slot(2, sampledWord):], uint64(sec)+1) },
	} {
		bad := append([]byte(nil), block...)
		change(bad)
		assert.ErrorIs(t, e.Restore(bad), engine.ErrBlock, name)
	}
}

func TestPeakEWMATiesGoEitherWay(t *testing.T) {
	_, e, _ := peak(t, DefaultPeakEWMA(5), 4)
	n := enginetest.Draws(0.25, 0.05)
	counts := make([]int, 4)
	for range n {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		counts[d.Index]++
		require.NoError(t, e.Report(0, engine.Report{ID: d.ID, Outcome: engine.OutcomeCancelled}))
	}
	for _, c := range counts {
		assert.NoError(t, enginetest.CheckShare(0.25, c, n))
	}
}

// peakTwin is the rule in floating point, with one planted fault.
type peakTwin struct {
	fault string
	tau   float64
	value map[engine.ID]float64
	at    map[engine.ID]engine.Instant
}

func (w *peakTwin) read(now engine.Instant, id engine.ID) float64 {
	if w.fault == "no fading" {
		return w.value[id]
	}
	return w.value[id] * math.Exp(-float64(now-w.at[id])/w.tau)
}

func (w *peakTwin) observe(now engine.Instant, id engine.ID, failed bool, latency, penalty float64) {
	v, kept := w.value[id], math.Exp(-float64(now-w.at[id])/w.tau)
	switch {
	case failed && w.fault != "failures lower":
		v = max(v, latency, penalty)
	case latency >= v && w.fault != "no jump", w.fault == "last sample wins":
		v = latency
	case w.fault == "samples under the peak ignored":
		v *= kept
	default:
		v = v*kept + latency*(1-kept)
	}
	w.value[id], w.at[id] = v, now
}

// walkPeak drives policy and twin through churn, drains, retries and failures.
func walkPeak(t *rapid.T, fault string) bool {
	c := DefaultPeakEWMA(rapid.Uint64().Draw(t, "seed"))
	c.Tau = engine.Duration(rapid.SampledFrom([]int{1_000_000, 50_000_000, 3_600_000_000_000}).Draw(t, "tau"))
	n := rapid.IntRange(2, 9).Draw(t, "replicas")
	p, e, cs := peak(t, c, n)
	w := &peakTwin{fault: fault, tau: float64(c.Tau), value: map[engine.ID]float64{}, at: map[engine.ID]engine.Instant{}}
	join := func(now engine.Instant, cs []engine.Candidate) {
		for _, x := range cs {
			if _, ok := w.value[x.ID]; !ok {
				w.value[x.ID], w.at[x.ID] = float64(c.Initial), now
			}
		}
	}
	join(0, cs)
	now := engine.Instant(0)
	for range 80 {
		now += engine.Instant(rapid.SampledFrom([]int{0, 1, 1000, 300_000, 20_000_000}).Draw(t, "pause"))
		id := engine.ID(rapid.IntRange(1, n).Draw(t, "replica"))
		switch rapid.SampledFrom([]string{"decide", "report", "report", "fail", "fleet", "restore"}).Draw(t, "op") {
		case "report", "fail":
			failed := rapid.IntRange(0, 3).Draw(t, "failed") == 0
			latency := engine.Duration(rapid.IntRange(0, 3_000_000_000).Draw(t, "latency"))
			r := engine.Report{ID: id, Latency: latency}
			if failed {
				r.Outcome = engine.OutcomeFailure
			}
			if e.Report(now, r) == nil {
				w.observe(now, id, failed, float64(latency), float64(c.Penalty))
			}
		case "fleet":
			var next []engine.Candidate
			for _, x := range rapid.Permutation(cs).Draw(t, "order") {
				if rapid.IntRange(0, 4).Draw(t, "there") > 0 {
					next = append(next, x)
				} else {
					delete(w.value, x.ID)
				}
			}
			require.NoError(t, e.SetCandidates(now, next))
			join(now, next)
		case "restore":
			block, err := e.Snapshot(nil)
			require.NoError(t, err)
			require.NoError(t, e.Restore(block))
		case "decide":
			q := &engine.Query{Now: now, Tried: []engine.ID{id}}
			x := e.Explain(q)
			var d engine.Decision
			if e.Decide(q, &d) != nil {
				continue
			}
			for _, row := range x.Weighed {
				if row.Load < x.Weighed[0].Load && row.Verdict == engine.VerdictLost && x.Weighed[0].Verdict == engine.VerdictChosen {
					t.Fatalf("the dearer of %v", x.Weighed)
				}
			}
		}
		for slot := range uint32(p.Set.Len()) {
			want := w.read(now, p.Set.ID(slot))
			if math.Abs(want-p.reads(now, slot)) > 1+want*1e-5 {
				return false
			}
		}
	}
	return true
}

func TestPeakEWMAEqualsItsTwinInFloatingPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { require.True(t, walkPeak(t, "")) })
}

func TestThePeakTwinNoticesEveryPlantedFault(t *testing.T) {
	for _, fault := range []string{"no fading", "failures lower", "no jump", "last sample wins", "samples under the peak ignored"} {
		walks := rapid.Custom(func(t *rapid.T) bool { return walkPeak(t, fault) })
		noticed := false
		for seed := range 100 {
			noticed = noticed || !walks.Example(seed)
		}
		assert.True(t, noticed, fault)
	}
}

// Every ordered pair of open candidates is as likely: 6.8 sigma over twelve pairs.
func TestTwoDrawsAreDistinctAndUniform(t *testing.T) {
	p, e, cs := peak(t, DefaultPeakEWMA(11), 5)
	require.NoError(t, e.Attach(0, []engine.ID{cs[2].ID}, nil))
	const n = 240_000
	pairs := map[[2]uint32]int{}
	for range n {
		a, b := drawTwo(p.Set)
		pairs[[2]uint32{a, b}]++
	}
	require.Len(t, pairs, 12)
	for pair, count := range pairs {
		assert.NotEqual(t, pair[0], pair[1])
		assert.NotContains(t, pair, uint32(2))
		assert.InDelta(t, n/12, count, 6.8*math.Sqrt(n/12.0), pair)
	}
}
