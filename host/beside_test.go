package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// gated is a machine that takes its time for every decision.
type gated struct {
	engine.Machine
	wait func()
}

func (m gated) Decide(q *engine.Query, d *engine.Decision) error {
	m.wait()
	return m.Machine.Decide(q, d)
}

// gatedSource waits in decisions once it is armed, but not in those of its trial. It gives the last
// engine that was made.
func gatedSource(spec string, armed *atomic.Bool, wait func()) (Source, func() *engine.Engine) {
	var last atomic.Pointer[engine.Engine]
	src := made(spec, func(e *engine.Engine, _ uint64) engine.Machine {
		last.Store(e)
		return gated{e, func() {
			if armed.Load() {
				wait()
			}
		}}
	})
	return src, last.Load
}

func onBoth(e *engine.Engine) [2]uint32 {
	return [2]uint32{e.InFlight(engine.IDOf("a")), e.InFlight(engine.IDOf("b"))}
}

// A compared machine that hangs keeps nobody waiting. It misses decisions, which are counted, and when it goes on
// it starts from the live state.
func TestASlowComparedMachineHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const spec = "least_loaded seed=1"
		b := nativeOf(t, spec, WithTwin(policy.Parse))
		gate := make(chan struct{})
		var armed atomic.Bool
		src, last := gatedSource(spec, &armed, func() { <-gate })
		c, err := b.Compare(ctx, src)
		require.NoError(t, err)
		synctest.Wait()
		armed.Store(true)
		const n = 3 * mostWaiting
		began := time.Now()
		for range n {
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		}
		held := on(t, b, 3, "b")
		assert.Equal(t, began, time.Now(), "no live decision waits")
		assert.Zero(t, c.Report().Decisions)
		assert.Greater(t, c.Report().Missed, uint64(n/3))
		assert.Positive(t, b.Stats().Comparison.Missed)

		close(gate)
		synctest.Wait()
		caughtUp := c.Report()
		assert.EqualValues(t, n+3, caughtUp.Decisions+caughtUp.Missed, "every decision is one or the other")
		held = append(held, on(t, b, 2, "a")...)
		synctest.Wait()
		r := c.Report()
		assert.Equal(t, caughtUp.Decisions+2, r.Decisions)
		assert.Equal(t, caughtUp.Missed, r.Missed)
		assert.Zero(t, r.Different, "it starts from the live state, so it is of one mind with it")
		assert.Equal(t, [2]uint32{3, 2}, onBoth(last()))
		done(held)
		synctest.Wait()
		assert.Equal(t, [2]uint32{}, onBoth(last()))
		require.NoError(t, b.Close(ctx))
	})
}

// Stop waits for what was decided before, as long as its context lasts.
func TestStopComparesWhatWasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "random seed=1")
		var armed atomic.Bool
		src, _ := gatedSource("random seed=1", &armed, func() { time.Sleep(10 * time.Millisecond) })
		for _, last := range []time.Duration{time.Minute, time.Second} {
			armed.Store(false)
			c, err := b.Compare(ctx, src)
			require.NoError(t, err)
			synctest.Wait()
			armed.Store(true)
			for range 200 {
				decide(t, b, Query{}).Done(engine.OutcomeSuccess)
			}
			limited, cancel := context.WithTimeout(ctx, last)
			c.Stop(limited)
			cancel()
			assert.InDelta(t, min(200, last/(10*time.Millisecond)), c.Report().Decisions, 1)
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		}
		require.NoError(t, b.Close(ctx))
	})
}

// Whatever happens to a compared machine, in the end it has nothing in flight.
func TestAComparedMachineCountsItsOwnQueries(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			b := nativeOf(t, "least_loaded seed=1")
			var armed atomic.Bool
			armed.Store(true)
			slowness := time.Duration(0)
			src, last := gatedSource("random seed=7", &armed, func() { time.Sleep(slowness) })
			c, err := b.Compare(ctx, src)
			require.NoError(t, err)
			slowness = time.Duration(seed-1) * 300 * time.Microsecond
			names := []string{"a", "b", "c", "d"}
			var ps []*Placement
			for i := range 20_000 {
				if i%500 == 0 {
					eps := []Endpoint{{Name: "a"}}
					for _, name := range names[1:] {
						if r.IntN(3) > 0 {
							eps = append(eps, Endpoint{Name: name})
						}
					}
					require.NoError(t, b.SetEndpoints(eps))
				}
				ps = append(ps, decide(t, b, Query{}))
				if k := r.IntN(len(ps)); r.IntN(40) < len(ps) {
					ps[k].Done(engine.OutcomeSuccess)
					ps = append(ps[:k], ps[k+1:]...)
				}
				time.Sleep(100 * time.Microsecond)
			}
			done(ps)
			time.Sleep(time.Minute)
			decide(t, b, Query{}).Done(engine.OutcomeSuccess) // it catches up, if it was behind
			time.Sleep(time.Minute)                           // the machine beside takes its time for this one too
			synctest.Wait()
			rep := c.Report()
			require.NoError(t, rep.Failure)
			assert.Equal(t, seed > 1, rep.Missed > 0, "%d missed", rep.Missed)
			for _, name := range names {
				assert.Zero(t, last().InFlight(engine.IDOf(name)), name)
			}
			assert.Empty(t, b.live.Load().shards[0].beside.open)
			require.NoError(t, b.Close(ctx))
		})
	}
}

// refusing refuses every query.
type refusing struct{ engine.Machine }

func (refusing) Decide(*engine.Query, *engine.Decision) error { return engine.ErrNoneEligible }

// What the live machine refuses nobody runs, whatever the other one says.
func TestWhatIsRefusedIsInFlightNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := balancerOf(t, made("random seed=1", func(e *engine.Engine, _ uint64) engine.Machine { return refusing{e} }))
		src, last := gatedSource("least_loaded seed=1", new(atomic.Bool), nil)
		c, err := b.Compare(ctx, src)
		require.NoError(t, err)
		for range 5 {
			_, err := b.Decide(ctx, Query{})
			require.ErrorIs(t, err, engine.ErrNoneEligible)
		}
		synctest.Wait()
		r := c.Report()
		assert.EqualValues(t, 5, r.Different)
		assert.Equal(t, "", r.Samples[0].LiveEndpoint)
		assert.Contains(t, "ab", r.Samples[0].OtherEndpoint)
		assert.Equal(t, [2]uint32{}, onBoth(last()))
		require.NoError(t, b.Close(ctx))
	})
}

// A disagreement names endpoints as they were called, though they have left.
func TestADisagreementKeepsItsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nativeOf(t, "round_robin seed=1", WithTwin(policy.Parse))
		c, err := b.Compare(ctx, made("random seed=1", func(e *engine.Engine, _ uint64) engine.Machine { return contrary{e} }))
		require.NoError(t, err)
		p := decide(t, b, Query{})
		synctest.Wait()
		require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "z"}}))
		x := c.Report().Samples
		require.Len(t, x, 1)
		assert.Equal(t, [2]string{p.Endpoint.Name, map[string]string{"a": "b", "b": "a"}[p.Endpoint.Name]}, [2]string{x[0].LiveEndpoint, x[0].OtherEndpoint})
		p.Done(engine.OutcomeSuccess)
		require.NoError(t, b.Close(ctx))
	})
}

// contrary decides for the one that round robin of the same seed would not take first.
type contrary struct{ *engine.Engine }

func (m contrary) Decide(q *engine.Query, d *engine.Decision) error {
	rr, err := policy.Parse("round_robin seed=1")
	if err != nil {
		return err
	}
	e := engine.New(rr, engine.Config{})
	if err := e.SetCandidates(q.Now, []engine.Candidate{{ID: engine.IDOf("a")}, {ID: engine.IDOf("b")}}); err != nil {
		return err
	}
	var first engine.Decision
	if err := e.Decide(&engine.Query{Now: q.Now}, &first); err != nil {
		return err
	}
	avoid := *q
	avoid.Tried = []engine.ID{first.ID}
	return m.Engine.Decide(&avoid, d)
}

// A compared machine that refuses a fleet that the live one took has failed; one that panics too.
func TestAComparedMachineThatCannotFollowIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		src  Source
		want error
	}{
		"it refuses the fleet": {made("random", func(e *engine.Engine, _ uint64) engine.Machine { return unwilling{e} }), engine.ErrCapacity},
		"it panics":            {FromPolicies(panicking("random", "changed"), "random"), ErrTrap},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nativeOf(t, "round_robin seed=1")
				require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}}))
				cmp, err := b.Compare(ctx, c.src)
				require.NoError(t, err)
				synctest.Wait()
				require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}, {Name: "panic"}}))
				synctest.Wait()
				assert.ErrorIs(t, cmp.Report().Failure, c.want)
				decide(t, b, Query{}).Done(engine.OutcomeSuccess)
				assert.Zero(t, cmp.Report().Missed, "it is not behind, it is gone")
				require.NoError(t, b.Close(ctx))
			})
		})
	}
}

// panics is a policy that panics in a call, if a replica called "panic" is there or the key is that.
type panics struct {
	engine.Policy
	set  *engine.Set
	call string
}

func panicking(spec, call string) Parse {
	return func(string) (engine.Policy, error) {
		p, err := policy.Parse(spec)
		return &panics{Policy: p, call: call}, err
	}
}

func (p *panics) Bind(fixed []uint64, s *engine.Set, first bool) {
	p.set = s
	p.Policy.Bind(fixed, s, first)
}

func (p *panics) check(call string) {
	if _, there := p.set.Slot(engine.IDOf("panic")); there && call == p.call {
		panic(fmt.Sprint("in ", call))
	}
}

func (p *panics) Changed() { p.check("changed"); p.Policy.Changed() }

func (p *panics) Decide(now engine.Instant, k engine.Key) error {
	if k == engine.KeyOf("panic") && p.call == "decide" {
		panic("in decide")
	}
	return p.Policy.Decide(now, k)
}

func (p *panics) Observe(now engine.Instant, slot uint32, r engine.Report) {
	p.check("observe")
	p.Policy.Observe(now, slot, r)
}

func (p *panics) Record(now engine.Instant, slot uint32, r engine.Reading) engine.Admission {
	p.check("record")
	return p.Policy.Record(now, slot, r)
}

func (p *panics) Forget(slot uint32, asked engine.Instant) {
	p.check("forget")
	p.Policy.Forget(slot, asked)
}

func (p *panics) RecordLoad(now engine.Instant, slot uint32, l engine.LoadReport) {
	p.check("load")
	p.Policy.RecordLoad(now, slot, l)
}

func (p *panics) Entries(now engine.Instant, dst []engine.Entry) []engine.Entry {
	p.check("entries")
	return p.Policy.Entries(now, dst)
}

func (p *panics) Inspect(c *engine.Counters, f *engine.Fit) {
	p.check("inspect")
	p.Policy.Inspect(c, f)
}

// A policy of one's own that panics is a machine that failed: the query is placed, the machine replaced, and
// nothing is left in flight.
func TestAPolicyThatPanicsIsAMachineThatFailed(t *testing.T) {
	fleet := []Endpoint{{Name: "a"}, {Name: "panic"}}
	for call, provoke := range map[string]func(t *testing.T, b *Balancer){
		"decide": func(t *testing.T, b *Balancer) {
			p := decide(t, b, Query{Key: "panic"})
			assert.Equal(t, engine.CauseTrap, p.Decision.Cause)
			p.Done(engine.OutcomeSuccess)
		},
		"changed": func(t *testing.T, b *Balancer) { assert.NoError(t, b.SetStatus("a", engine.StatusDraining)) },
		"observe": func(t *testing.T, b *Balancer) { decide(t, b, Query{}).Done(engine.OutcomeSuccess) },
		"record":  func(t *testing.T, b *Balancer) { assert.ErrorIs(t, b.Record("a", engine.Reading{}), ErrTrap) },
		"load":    func(t *testing.T, b *Balancer) { assert.ErrorIs(t, b.RecordLoad("a", engine.LoadReport{}), ErrTrap) },
		"forget":  func(t *testing.T, b *Balancer) { b.Forget("a") },
		"entries": func(t *testing.T, b *Balancer) { assert.Empty(t, b.Entries()) },
		"inspect": func(t *testing.T, b *Balancer) { _ = b.Stats() },
	} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan error, 100)
				b := balancerOf(t, FromPolicies(panicking("least_loaded seed=1", call), "mine"), WithTrapHandler(func(err error) { told <- err }))
				_ = b.SetEndpoints(fleet)
				held := decide(t, b, Query{})
				provoke(t, b)
				err := <-told
				assert.ErrorIs(t, err, ErrTrap)
				assert.ErrorContains(t, err, "the policy panicked: in "+call)
				require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}}))
				time.Sleep(time.Minute)
				p := decide(t, b, Query{})
				assert.Equal(t, engine.RegimeDirect, p.Decision.Regime, "another machine decides")
				p.Done(engine.OutcomeSuccess)
				held.Done(engine.OutcomeSuccess)
				assert.Zero(t, b.InFlight())
				assert.NoError(t, b.Close(ctx))
			})
		})
	}
	t.Run("parse", func(t *testing.T) {
		b := nativeOf(t, "random seed=1")
		err := b.Swap(ctx, FromPolicies(func(string) (engine.Policy, error) { panic("no") }, "mine"))
		assert.ErrorIs(t, err, ErrTrap)
		assert.NoError(t, b.Close(ctx))
	})
}

// An observer's panic is its caller's to deal with. The placement that the caller does not get is not left open.
func TestAnObserverThatPanicsLeavesNothingOpen(t *testing.T) {
	b := nativeOf(t, "random seed=1", WithObserver(func(context.Context, Query, *Placement, error) func(engine.Outcome, time.Duration) {
		panic("observer")
	}))
	assert.PanicsWithValue(t, "observer", func() { _, _ = b.Decide(ctx, Query{}) })
	assert.Zero(t, b.InFlight())
	assert.NoError(t, b.Close(ctx))
}
