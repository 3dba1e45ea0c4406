package host

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

var ctx = context.Background()

func nativeOf(t *testing.T, spec string, opts ...Option) *Balancer {
	return balancerOf(t, FromPolicies(policy.Parse, spec), opts...)
}

func natively(spec string) Source { return FromPolicies(policy.Parse, spec) }

func decide(t *testing.T, b *Balancer, q Query) *Placement {
	t.Helper()
	p, err := b.Decide(ctx, q)
	require.NoError(t, err)
	return p
}

func engineOf(b *Balancer, shard int) *engine.Engine {
	return b.live.Load().shards[shard].machine.(native).Engine
}

func TestASwapHandsTheStateOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "prequal seed=1 pool=4")
		require.NoError(t, b.Record("a", engine.Reading{RIF: 3, Latency: 7}))
		time.Sleep(5 * time.Millisecond)
		require.NoError(t, b.Record("b", engine.Reading{RIF: 5, Latency: 9}))
		p := decide(t, b, Query{})
		before := b.Entries()

		require.NoError(t, b.Swap(ctx, natively("prequal seed=1 pool=4")))
		assert.Equal(t, before, b.Entries(), "the same layout: the block is copied, charges and all")
		assert.EqualValues(t, 1, engineOf(b, 0).InFlight(engine.IDOf(p.Endpoint.Name)))
		require.NoError(t, b.Swap(ctx, natively("prequal seed=1 pool=8 quantile=0.5")))
		after := b.Entries()
		require.Len(t, after, 2, "another layout: the readings are handed over, with their age")
		for i := range after {
			assert.Equal(t, [...]any{before[i].Endpoint, before[i].At, before[i].RawRIF, before[i].RawLatency},
				[...]any{after[i].Endpoint, after[i].At, after[i].RawRIF, after[i].RawLatency})
		}
		require.NoError(t, b.Swap(ctx, natively("least_loaded seed=1")))
		assert.EqualValues(t, 1, engineOf(b, 0).InFlight(engine.IDOf(p.Endpoint.Name)), "open placements too")
		other := map[string]string{"a": "b", "b": "a"}[p.Endpoint.Name]
		assert.Equal(t, other, decide(t, b, Query{}).Endpoint.Name)
		p.Done(engine.OutcomeSuccess)
		assert.Zero(t, engineOf(b, 0).InFlight(engine.IDOf(p.Endpoint.Name)))
		assert.Equal(t, "least_loaded seed=1", b.Spec())
		assert.EqualValues(t, 4, b.Stats().Generation)
		assert.EqualValues(t, 3, b.Stats().Swaps)
	})
}

// unwilling takes no fleet with a replica called "b".
type unwilling struct{ *engine.Engine }

func (m unwilling) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	for _, c := range cs {
		if c.ID == engine.IDOf("b") {
			return engine.ErrCapacity
		}
	}
	return m.Engine.SetCandidates(now, cs)
}

// hopeless traps at every decision.
type hopeless struct{ *engine.Engine }

func (hopeless) Decide(*engine.Query, *engine.Decision) error { return ErrTrap }

// forgetful does not take its own block back.
type forgetful struct{ *engine.Engine }

func (forgetful) Restore([]byte) error { return engine.ErrBlock }

func TestASwapThatFailsLeavesTheOldPolicyServing(t *testing.T) {
	for name, c := range map[string]struct {
		next Source
		want error
	}{
		"a spec that is refused": {natively("random seed=x"), engine.ErrConfig},
		"a fleet it refuses":     {made("random seed=1", func(e *engine.Engine, _ uint64) engine.Machine { return unwilling{e} }), engine.ErrCapacity},
		"a guest that traps":     {made("random seed=1", func(e *engine.Engine, _ uint64) engine.Machine { return hopeless{e} }), ErrTrap},
		"a block it forgets":     {made("random seed=1", func(e *engine.Engine, _ uint64) engine.Machine { return forgetful{e} }), engine.ErrBlock},
		"no module":              {Source{prepare: func(context.Context) (blank, error) { return nil, ErrModule }}, ErrModule},
	} {
		t.Run(name, func(t *testing.T) {
			b := nativeOf(t, "round_robin seed=1", WithShards(2))
			before := decide(t, b, Query{})
			for what, change := range map[string]func() error{
				"swap":    func() error { return b.Swap(ctx, c.next) },
				"canary":  func() error { return b.Canary(ctx, c.next, 100) },
				"compare": func() error { _, err := b.Compare(ctx, c.next); return err },
			} {
				assert.ErrorIs(t, change(), c.want, what)
			}
			after := decide(t, b, Query{})
			assert.NotEqual(t, before.Endpoint, after.Endpoint, "the rotation goes on")
			assert.Equal(t, "round_robin seed=1", b.Spec())
			assert.Nil(t, b.Stats().Canary)
			before.Done(engine.OutcomeSuccess)
			after.Done(engine.OutcomeSuccess)
			require.NoError(t, b.Close(ctx))
			assert.ErrorIs(t, b.Swap(ctx, natively("random")), ErrClosed)
		})
	}
}

func TestRollbackUndoesASwap(t *testing.T) {
	b := nativeOf(t, "round_robin seed=1")
	assert.ErrorIs(t, b.Rollback(ctx), ErrNothingBefore)
	require.NoError(t, b.Swap(ctx, natively("random seed=2")))
	require.NoError(t, b.Rollback(ctx))
	assert.Equal(t, "round_robin seed=1", b.Spec())
	assert.ErrorIs(t, b.Rollback(ctx), ErrNothingBefore, "a second one does not go forward")
	assert.Equal(t, "round_robin seed=1", b.Spec())
	require.NoError(t, b.Swap(ctx, natively("random seed=3")))
	assert.ErrorIs(t, b.Swap(ctx, natively("nonsense")), engine.ErrConfig)
	require.NoError(t, b.Rollback(ctx), "what was refused leaves the way back")
	assert.Equal(t, "round_robin seed=1", b.Spec())
}

func TestACanaryGetsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "round_robin seed=1", WithShards(2))
		assert.ErrorIs(t, b.SetShare(1), ErrNoCanary)
		assert.ErrorIs(t, b.Promote(ctx), ErrNoCanary)
		assert.ErrorIs(t, b.Canary(ctx, natively("random"), wholeShare+1), engine.ErrConfig)
		require.NoError(t, b.Canary(ctx, natively("random seed=3"), 2500))
		const n = 40_000
		of := func() (canary int) {
			for i := range n {
				p := decide(t, b, Query{Key: fmt.Sprint(i)})
				if p.Generation == b.Stats().Canary.Generation {
					canary++
				}
				again := decide(t, b, Query{Key: fmt.Sprint(i)})
				require.Equal(t, p.Generation, again.Generation, "queries of one key go one way")
				p.Done(engine.OutcomeSuccess)
				again.Done(engine.OutcomeFailure)
			}
			return canary
		}
		assert.InDelta(t, n/4, of(), 5*87, "five standard deviations") // sqrt(n p (1-p)) = 87
		st := b.Stats().Canary
		assert.Equal(t, st.Outcomes[engine.OutcomeSuccess], st.Outcomes[engine.OutcomeFailure])
		assert.Equal(t, st.Decisions, 2*st.Outcomes[engine.OutcomeSuccess])
		assert.Zero(t, st.InFlight)

		require.NoError(t, b.SetShare(0))
		assert.Zero(t, of())
		require.NoError(t, b.SetShare(wholeShare))
		assert.Equal(t, n, of())
		open := decide(t, b, Query{})
		shard := open.shard
		require.NoError(t, b.Rollback(ctx))
		assert.Nil(t, b.Stats().Canary)
		assert.EqualValues(t, 1, decide(t, b, Query{}).Generation)
		assert.NotNil(t, shard.machine, "the canary's machine waits for its placement")
		open.Done(engine.OutcomeSuccess)
		assert.Nil(t, shard.machine)
		assert.EqualValues(t, 1, b.Stats().InFlight)

		require.NoError(t, b.Canary(ctx, natively("least_loaded seed=3"), 10))
		require.NoError(t, b.Promote(ctx))
		assert.Equal(t, "least_loaded seed=3", b.Spec())
		assert.Nil(t, b.Stats().Canary)
		require.NoError(t, b.Rollback(ctx))
		assert.Equal(t, "round_robin seed=1", b.Spec())
	})
}

func TestACanaryThatRefusesTheFleetEnds(t *testing.T) {
	told := make(chan error, 1)
	b := balancerOf(t, natively("random seed=1"), WithTrapHandler(func(err error) { told <- err }))
	require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}}))
	require.NoError(t, b.Canary(ctx, made("random", func(e *engine.Engine, _ uint64) engine.Machine { return unwilling{e} }), 5000))
	require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}}))
	assert.ErrorIs(t, <-told, engine.ErrCapacity)
	assert.Nil(t, b.Stats().Canary)
}

func TestAComparisonFindsAndExplainsTheDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "prequal seed=1 min_pool=1", WithTwin(policy.Parse))
		require.NoError(t, b.Record("a", engine.Reading{RIF: 9, Latency: 1}))
		require.NoError(t, b.Record("b", engine.Reading{RIF: 1, Latency: 9}))
		open := decide(t, b, Query{})
		same, err := b.Compare(ctx, natively("prequal seed=1 min_pool=1"))
		require.NoError(t, err)
		for range 100 {
			p := decide(t, b, Query{})
			require.NoError(t, b.Record("a", engine.Reading{RIF: 9, Latency: 1}))
			require.NoError(t, b.Record("b", engine.Reading{RIF: 1, Latency: 9}))
			p.Done(engine.OutcomeSuccess)
			time.Sleep(time.Millisecond)
		}
		open.Done(engine.OutcomeSuccess)
		synctest.Wait()
		r := same.Report()
		assert.EqualValues(t, 100, r.Decisions)
		assert.Zero(t, r.Different, "alike machines from one state do not differ")
		require.NoError(t, r.Failure)

		other, err := b.Compare(ctx, natively("prequal seed=1 min_pool=1 quantile=0"))
		require.NoError(t, err)
		require.NoError(t, b.Record("a", engine.Reading{RIF: 9, Latency: 1}))
		require.NoError(t, b.Record("b", engine.Reading{RIF: 1, Latency: 9}))
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		synctest.Wait()
		r = other.Report()
		require.EqualValues(t, 1, r.Different)
		x := r.Samples[0]
		assert.Equal(t, engine.IDOf("a"), x.Live.ID)
		assert.Equal(t, engine.IDOf("b"), x.Other.ID)
		assert.Contains(t, x.LiveReason, "a ")
		assert.Contains(t, x.OtherReason, "b ")
		other.Stop(ctx)
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		synctest.Wait()
		assert.Equal(t, r.Decisions, other.Report().Decisions)
	})
}

func TestAComparedGuestThatFailsDoesNotHurt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "round_robin seed=1")
		var fail atomic.Bool
		c, err := b.Compare(ctx, made("random", func(e *engine.Engine, _ uint64) engine.Machine { return falling{e, &fail} }))
		require.NoError(t, err)
		synctest.Wait()
		fail.Store(true)
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		synctest.Wait()
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		assert.ErrorIs(t, c.Report().Failure, ErrTrap)
		assert.Zero(t, b.Stats().Traps)
		assert.NoError(t, b.Close(ctx))
	})
}

// falling is a machine that fails at every decision from when it is told to.
type falling struct {
	engine.Machine
	fail *atomic.Bool
}

func (m falling) Decide(q *engine.Query, d *engine.Decision) error {
	if m.fail.Load() {
		return ErrTrap
	}
	return m.Machine.Decide(q, d)
}

func TestAStandInDecidesFromTheGuestsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		b := trappingBalancer(t, "prequal seed=1 min_pool=1 reuse=9 remove_rate=0 quantile=1", &fail, WithTwin(policy.Parse))
		require.NoError(t, b.Record("a", engine.Reading{RIF: 1, Latency: 1}))
		require.NoError(t, b.Record("b", engine.Reading{RIF: 1, Latency: 9}))
		time.Sleep(time.Duration(keepEvery))
		decide(t, b, Query{}).Done(engine.OutcomeSuccess) // its state is kept after a decision
		for range 20 {
			fail = true
			p := decide(t, b, Query{})
			assert.Equal(t, "a", p.Endpoint.Name, "not drawn: decided by what the pool says")
			assert.Equal(t, [...]any{engine.RegimeFallback, engine.CauseTrap}, [...]any{p.Decision.Regime, p.Decision.Cause})
			p.Done(engine.OutcomeSuccess)
			assert.ErrorIs(t, b.SetEndpoints([]Endpoint{{Name: ""}}), ErrEndpoint)
			time.Sleep(2 * mostWait)
			require.NoError(t, b.Record("a", engine.Reading{RIF: 1, Latency: 1}))
			require.NoError(t, b.Record("b", engine.Reading{RIF: 1, Latency: 9}))
			p = decide(t, b, Query{})
			assert.Equal(t, [...]any{"a", engine.RegimeCold}, [...]any{p.Endpoint.Name, p.Decision.Regime})
			p.Done(engine.OutcomeSuccess)
		}
		assert.EqualValues(t, 20, b.Stats().Rebuilds)
		assert.NoError(t, b.Close(ctx))
	})
}

// Done waits for nobody: who holds the shard learns of it later.
func TestDoneDoesNotWait(t *testing.T) {
	b := nativeOf(t, "least_loaded seed=1")
	p := decide(t, b, Query{})
	s := p.shard
	s.mu.Lock()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { p.Done(engine.OutcomeSuccess) })
	}
	all.Wait()
	assert.Zero(t, b.InFlight())
	assert.EqualValues(t, 1, engineOf(b, 0).InFlight(p.Decision.ID))
	s.release()
	assert.Zero(t, engineOf(b, 0).InFlight(p.Decision.ID))
}
