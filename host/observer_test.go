package host

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

type ended struct {
	outcome engine.Outcome
	took    time.Duration
}

func TestObserversHearOfEveryDecisionAndItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var heard []string
		var ends []ended
		observer := func(name string, follow bool) Observer {
			return func(ctx context.Context, q Query, p *Placement, err error) func(engine.Outcome, time.Duration) {
				what := name + " " + q.Key + " " + ctx.Value(key{}).(string)
				if err != nil {
					assert.Nil(t, p)
					what += " refused"
				}
				heard = append(heard, what)
				if !follow {
					return nil
				}
				return func(o engine.Outcome, took time.Duration) { ends = append(ends, ended{o, took}) }
			}
		}
		b := nativeOf(t, "random seed=1", WithObserver(observer("one", true)), WithObserver(observer("two", false)), WithObserver(observer("three", true)))
		with := context.WithValue(ctx, key{}, "ctx")
		p, err := b.Decide(with, Query{Key: "k"})
		require.NoError(t, err)
		time.Sleep(30 * time.Millisecond)
		p.Done(engine.OutcomeFailure)
		p.Done(engine.OutcomeSuccess)
		assert.Equal(t, []ended{{engine.OutcomeFailure, 30 * time.Millisecond}, {engine.OutcomeFailure, 30 * time.Millisecond}}, ends)
		require.NoError(t, b.SetEndpoints(nil))
		_, err = b.Decide(with, Query{Key: "k"})
		require.ErrorIs(t, err, engine.ErrNoCandidates)
		assert.Equal(t, []string{"one k ctx", "two k ctx", "three k ctx", "one k ctx refused", "two k ctx refused", "three k ctx refused"}, heard)
	})
}

func TestChangesOfPolicyAreTold(t *testing.T) {
	const one, two, three = "round_robin seed=1", "random seed=2", "random seed=3"
	var told []Change
	b := nativeOf(t, one, WithChangeHandler(func(c Change) { told = append(told, c) }))
	require.NoError(t, b.Swap(ctx, natively(two)))
	require.Error(t, b.Swap(ctx, natively("nonsense")))
	require.NoError(t, b.Rollback(ctx))
	require.NoError(t, b.Canary(ctx, natively(two), 100))
	require.NoError(t, b.SetShare(200))
	require.NoError(t, b.Rollback(ctx))
	require.NoError(t, b.Canary(ctx, natively(three), 300))
	require.NoError(t, b.Promote(ctx))
	require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}}))
	require.NoError(t, b.Canary(ctx, made("random seed=2", func(e *engine.Engine, _ uint64) engine.Machine { return unwilling{e} }), 400))
	require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}}))
	assert.Equal(t, []Change{
		{ChangeSwap, one, two, 2, 0},
		{ChangeRollback, two, one, 3, 0},
		{ChangeCanary, one, two, 4, 100},
		{ChangeShare, one, two, 4, 200},
		{ChangeRollback, two, one, 3, 0},
		{ChangeCanary, one, three, 5, 300},
		{ChangePromote, one, three, 6, 0},
		{ChangeCanary, three, two, 7, 400},
		{ChangeEnd, two, three, 6, 0},
	}, told)
}

// TestCountsOfAnArmOnlyGrow: a count that falls when a canary ends would look to a metrics system like a restart.
func TestCountsOfAnArmOnlyGrow(t *testing.T) {
	b := nativeOf(t, "round_robin seed=1")
	ask := func(n int, want bool) {
		for range n {
			p := decide(t, b, Query{})
			require.Equal(t, want, p.Canary)
			p.Done(engine.OutcomeSuccess)
		}
	}
	ask(5, false)
	for range 3 {
		require.NoError(t, b.Canary(ctx, natively("random seed=3"), wholeShare))
		ask(7, true)
		require.NoError(t, b.Rollback(ctx))
	}
	ask(2, false)
	open := decide(t, b, Query{})
	st := b.Stats()
	assert.EqualValues(t, 21, st.Canaries.Decisions)
	assert.EqualValues(t, 21, st.Canaries.Outcomes[engine.OutcomeSuccess])
	live := st.Live()
	assert.EqualValues(t, 8, live.Decisions)
	assert.EqualValues(t, 8, live.ByRegime[engine.RegimeDirect])
	assert.EqualValues(t, 7, live.Outcomes[engine.OutcomeSuccess])
	assert.EqualValues(t, 1, live.InFlight)
	assert.EqualValues(t, 29, st.Decisions)
	open.Done(engine.OutcomeSuccess)
	assert.Zero(t, b.InFlight())
}

// TestCountersStandWhileNoMachineDoes: they are sums over shards, and a sum that falls looks like a restart too.
func TestCountersStandWhileNoMachineDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		b := trappingBalancer(t, "prequal seed=1", &fail, WithoutSpare())
		defer b.Close(ctx)
		require.NoError(t, b.Record("a", engine.Reading{RIF: 1}))
		before := b.Stats()
		require.EqualValues(t, 1, before.Counters.Admitted)
		fail = true
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		require.Nil(t, b.live.Load().shards[0].machine)
		after := b.Stats()
		assert.Equal(t, before.Counters, after.Counters)
		assert.Equal(t, before.Fit, after.Fit)
		assert.EqualValues(t, 1, after.Traps)
	})
}

// Nor do they fall or count twice when machines change: by a swap, with or without the state's block, or by a
// failure, after which a machine starts from a block of a moment ago.
func TestCountersGrowOverMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		src := func(spec string) Source {
			return made(spec, func(e *engine.Engine, _ uint64) engine.Machine { return trapping{e, &fail} })
		}
		b := balancerOf(t, src("prequal seed=1"), WithTwin(policy.Parse))
		last := b.Stats().Counters
		look := func() engine.Counters {
			now := b.Stats().Counters
			was := last.Each()
			for i, v := range now.Each() {
				require.GreaterOrEqual(t, *v, *was[i], "count %d", i)
			}
			last = now
			return now
		}
		record := func(n int) {
			for range n {
				require.NoError(t, b.Record("a", engine.Reading{RIF: 1, Latency: 1}))
			}
		}
		record(10)
		for i, spec := range []string{"prequal seed=1", "prequal seed=1 pool=7", "least_loaded seed=1", "prequal seed=1"} {
			require.NoError(t, b.Swap(ctx, src(spec)))
			before := look()
			if i < 2 {
				assert.EqualValues(t, 10+5*i, before.Readings, "what is handed over is not read again")
				record(5)
				assert.EqualValues(t, 10+5*i+5, look().Readings)
			}
		}
		for range 50 {
			decide(t, b, Query{}).Done(engine.OutcomeSuccess) // its state is kept now and then
			record(3)
			before := look()
			fail = true
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
			look()
			record(2)
			assert.EqualValues(t, 2, look().Readings-before.Readings, "none is lost and none is counted twice")
			time.Sleep(mostWait * 2)
			record(1)
			assert.EqualValues(t, 3, look().Readings-before.Readings)
		}
		assert.EqualValues(t, 50, b.Stats().Traps)
		require.NoError(t, b.Close(ctx))
	})
}

func TestStatsShowComparisonAndRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "round_robin seed=1", WithRecorder(&Recorder{}))
		require.Nil(t, b.Stats().Comparison)
		c, err := b.Compare(ctx, natively("least_loaded seed=1"))
		require.NoError(t, err)
		for range 10 {
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		}
		synctest.Wait()
		r := c.Report()
		assert.Equal(t, &ComparisonStats{"least_loaded seed=1", r.Decisions, r.Different, 0, false}, b.Stats().Comparison)
		assert.EqualValues(t, 10, r.Decisions)
		require.NoError(t, b.Dump(io.Discard, 0))
		assert.Positive(t, b.Stats().Recorder.Segments)
		c.Stop(ctx)
		assert.Nil(t, b.Stats().Comparison)
	})
}
