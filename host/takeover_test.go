package host

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// before12 is a source of guests that know nothing of lb_in_flight.
func before12(spec string) Source {
	fail := new(bool)
	return made(spec, func(e *engine.Engine, _ uint64) engine.Machine { return old{trapping{e, fail}} })
}

// beneath is the native engine under what tests and host put around it.
func beneath(t *testing.T, m engine.Machine) *engine.Engine {
	t.Helper()
	for {
		switch x := m.(type) {
		case *engine.Engine:
			return x
		case native:
			m = x.Engine
		case old:
			m = x.Machine
		case trapping:
			m = x.Machine
		case *recorded:
			m = x.Machine
		default:
			require.FailNow(t, "no engine beneath", "%T", m)
		}
	}
}

// open is what a shard's machine counts in flight on a and b.
func open(t *testing.T, s *shard) (counts [2]uint32) {
	t.Helper()
	s.look(func(m engine.Machine) error {
		e := beneath(t, m)
		counts = [2]uint32{e.InFlight(engine.IDOf("a")), e.InFlight(engine.IDOf("b"))}
		return nil
	})
	return counts
}

func on(t *testing.T, b *Balancer, n int, other string) (ps []*Placement) {
	t.Helper()
	for range n {
		ps = append(ps, decide(t, b, Query{Tried: []string{other}}))
	}
	return ps
}

func done(ps []*Placement) {
	for _, p := range ps {
		p.Done(engine.OutcomeSuccess)
	}
}

// A canary's queries are its own: what is open on the live shards is none of its business, whether it
// can be told so by name or not.
func TestACanaryCountsItsOwnQueriesOnly(t *testing.T) {
	const spec = "prequal seed=1 min_pool=1"
	for name, src := range map[string]Source{"told by name": natively(spec), "of before 1.2": before12(spec)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nativeOf(t, spec)
				require.NoError(t, b.Record("a", engine.Reading{RIF: 3, Latency: 7}))
				before := on(t, b, 3, "b")
				require.NoError(t, b.Canary(ctx, src, wholeShare))
				live, canary := b.live.Load().shards[0], b.canary.Load().shards[0]
				assert.Equal(t, [2]uint32{}, open(t, canary), "nothing of it is the canary's")
				canary.look(func(m engine.Machine) error {
					es, err := m.Entries(b.Now(), nil)
					require.NoError(t, err)
					require.Len(t, es, 1, "but the readings are handed over")
					assert.EqualValues(t, 3, es[0].RawRIF)
					return nil
				})
				during := on(t, b, 2, "a")
				assert.Equal(t, [2]uint32{0, 2}, open(t, canary))
				assert.Equal(t, [2]uint32{3, 0}, open(t, live))

				require.NoError(t, b.Promote(ctx))
				assert.Equal(t, [2]uint32{3, 0}, open(t, live), "the live state goes on")
				done(during)
				assert.Equal(t, [2]uint32{3, 0}, open(t, live))
				done(before)
				assert.Equal(t, [2]uint32{}, open(t, live))
				assert.NoError(t, b.Close(ctx))
			})
		})
	}
}

// A guest of before 1.2 and of another policy counts from nothing, and keeps the readings.
func TestAnOldGuestOfAnotherPolicyKeepsTheReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "prequal seed=1 min_pool=1")
		require.NoError(t, b.Record("a", engine.Reading{RIF: 3, Latency: 7}))
		before := on(t, b, 2, "b")
		require.NoError(t, b.Swap(ctx, before12("prequal seed=2 pool=8")))
		live := b.live.Load().shards[0]
		assert.Len(t, b.Entries(), 1)
		after := on(t, b, 3, "b")
		done(before)
		assert.Equal(t, [2]uint32{3, 0}, open(t, live), "what an earlier machine counted is taken off nobody's")
		done(after)
		assert.Equal(t, [2]uint32{}, open(t, live))
		assert.NoError(t, b.Close(ctx))
	})
}

// A comparison looks on: the live machine's counts and who ends where are not its business.
func TestAComparisonLeavesTheLiveCountsAlone(t *testing.T) {
	const spec = "least_loaded seed=1"
	for name, other := range map[string]Source{"told by name": natively(spec), "of before 1.2": before12(spec)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := balancerOf(t, before12(spec))
				live := b.live.Load().shards[0]
				before := on(t, b, 2, "b")
				require.NoError(t, b.Swap(ctx, before12("least_loaded seed=2"))) // which does not count them
				after := on(t, b, 3, "b")
				require.Equal(t, [2]uint32{3, 0}, open(t, live))
				_, err := b.Compare(ctx, other)
				require.NoError(t, err)
				done(before)
				assert.Equal(t, [2]uint32{3, 0}, open(t, live))
				done(after)
				assert.Equal(t, [2]uint32{}, open(t, live))
				assert.NoError(t, b.Close(ctx))
			})
		})
	}
}

// stubborn refuses to be told what is in flight.
type stubborn struct{ trapping }

func (stubborn) SetInFlight([]engine.InFlight) error { return engine.ErrCapacity }

// A guest that refuses to be told of queries in flight serves like one that cannot be told.
func TestAGuestThatRefusesCountsServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		src := made("least_loaded seed=1", func(e *engine.Engine, _ uint64) engine.Machine { return stubborn{trapping{e, &fail}} })
		b := balancerOf(t, src)
		before := on(t, b, 3, "b")
		require.NoError(t, b.Swap(ctx, src), "its block has the counts")
		fail = true
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		time.Sleep(time.Second)
		p := decide(t, b, Query{})
		assert.Equal(t, engine.RegimeDirect, p.Decision.Regime, "another guest sits")
		done(append(before, p))
		assert.NoError(t, b.Close(ctx))
	})
}

// prophetic has readings of the future.
type prophetic struct{ *engine.Engine }

func (m prophetic) Entries(now engine.Instant, dst []engine.Entry) ([]engine.Entry, error) {
	future := engine.Instant(1) << 60
	return append(dst, engine.Entry{ID: engine.IDOf("a"), At: future, Asked: future, RawRIF: 3, RawLatency: 4}), nil
}

// A guest's word on when its readings came stops no other machine's clock.
func TestReadingsOfTheFutureAreOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := balancerOf(t, made("prequal seed=1", func(e *engine.Engine, _ uint64) engine.Machine { return prophetic{e} }))
		require.NoError(t, b.Swap(ctx, natively("prequal seed=2")))
		es := b.Entries()
		require.Len(t, es, 1)
		assert.LessOrEqual(t, es[0].At, b.Now())
		assert.LessOrEqual(t, es[0].Asked, b.Now())
		time.Sleep(time.Hour)
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		assert.Empty(t, b.Entries(), "it ages like any other")
		assert.NoError(t, b.Close(ctx))
	})
}
