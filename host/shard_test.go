package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// trapping is a machine that fails when told to.
type trapping struct {
	engine.Machine
	fail *bool
}

func (m trapping) Decide(q *engine.Query, d *engine.Decision) error {
	if *m.fail {
		*m.fail = false
		return ErrTrap
	}
	return m.Machine.Decide(q, d)
}

// made is a source of machines that a test makes itself; they count as guests of our own module.
func made(spec string, wrap func(e *engine.Engine, salt uint64) engine.Machine) Source {
	return Source{spec: spec, guest: true, prepare: func(context.Context) (blank, error) { return madeBlank{wrap}, nil }}
}

type madeBlank struct {
	wrap func(e *engine.Engine, salt uint64) engine.Machine
}

func (b madeBlank) configured(spec string, salt uint64) (engine.Machine, string, error) {
	p, err := policy.Parse(spec)
	if err != nil {
		return nil, "", err
	}
	return b.wrap(engine.New(p, engine.Config{Salt: salt}), salt), p.Spec(), nil
}

func (madeBlank) Close(context.Context) error { return nil }

func trappingBalancer(t *testing.T, spec string, fail *bool, opts ...Option) *Balancer {
	return balancerOf(t, made(spec, func(e *engine.Engine, _ uint64) engine.Machine { return trapping{e, fail} }), opts...)
}

func balancerOf(t *testing.T, src Source, opts ...Option) *Balancer {
	b, err := newBalancer(context.Background(), src, opts)
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}}))
	return b
}

func TestATrapHandlerMayAskTheBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		var b *Balancer
		told := make(chan uint64, 1)
		b = trappingBalancer(t, "random seed=1", &fail, WithTrapHandler(func(error) { told <- b.Stats().Traps }))
		fail = true
		p, err := b.Decide(context.Background(), Query{})
		require.NoError(t, err)
		assert.Equal(t, engine.CauseTrap, p.Decision.Cause)
		assert.Equal(t, uint64(1), <-told)
		p.Done(engine.OutcomeSuccess)
		assert.NoError(t, b.Close(context.Background()))
	})
}

func TestAQueryThatIsAskingWhenTheBalancerClosesIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		b := trappingBalancer(t, "prequal seed=1 mode=sync", &fail, WithProbeWait(time.Second))
		ctx, stop := context.WithCancel(context.Background())
		silent := &Prober{Probe: func(ctx context.Context, _ Endpoint) (engine.Reading, error) {
			<-ctx.Done()
			return engine.Reading{}, ctx.Err()
		}}
		go func() { _ = silent.Run(ctx, b) }()
		synctest.Wait()
		refused := make(chan error, 1)
		go func() {
			_, err := b.Decide(context.Background(), Query{})
			refused <- err
		}()
		synctest.Wait()
		short, done := context.WithTimeout(context.Background(), time.Millisecond)
		defer done()
		assert.ErrorIs(t, b.Close(short), context.DeadlineExceeded)
		assert.ErrorIs(t, <-refused, ErrClosed)
		stop()
		synctest.Wait()
	})
}

// old is a guest that knows nothing of queries in flight.
type old struct{ trapping }

func (old) SetInFlight([]engine.InFlight) error { return ErrOldGuest }

// What is open is taken over by the machine that follows. Where that cannot be told, what an
// earlier machine counted is not taken off what the present one counts.
func TestOpenPlacementsOutliveTheirMachine(t *testing.T) {
	for name, c := range map[string]struct {
		knows  bool
		after  uint32
		policy []Option
	}{
		"a guest that is told":    {true, 9, nil},
		"with a stand-in":         {true, 9, []Option{WithTwin(policy.Parse)}},
		"a guest of before":       {false, 5, nil},
		"before, with a stand-in": {false, 9, []Option{WithTwin(policy.Parse)}}, // its block has the counts
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fail := false
				b := balancerOf(t, made("least_loaded seed=1", func(e *engine.Engine, _ uint64) engine.Machine {
					if c.knows {
						return trapping{e, &fail}
					}
					return old{trapping{e, &fail}}
				}), c.policy...)
				place := func() *Placement {
					p, err := b.Decide(context.Background(), Query{Tried: []string{"b"}})
					require.NoError(t, err)
					return p
				}
				inFlight := func() uint32 {
					m := b.live.Load().shards[0].machine
					if o, ok := m.(old); ok {
						m = o.trapping
					}
					return m.(trapping).Machine.(*engine.Engine).InFlight(engine.IDOf("a"))
				}
				before := []*Placement{place(), place(), place()}
				fail = true
				before = append(before, place())
				require.Equal(t, engine.CauseTrap, before[3].Decision.Cause)
				time.Sleep(time.Second)
				after := []*Placement{place(), place(), place(), place(), place()}
				require.Equal(t, c.after, inFlight())
				for _, p := range before {
					p.Done(engine.OutcomeSuccess)
				}
				assert.Equal(t, uint32(5), inFlight())
				for _, p := range after {
					p.Done(engine.OutcomeSuccess)
				}
				assert.Zero(t, inFlight())
				assert.Zero(t, b.Stats().InFlight)
				assert.NoError(t, b.Close(context.Background()))
			})
		})
	}
}

// deaf traps when it is told of load.
type deaf struct {
	engine.Machine
	heard *int
	deaf  bool
}

func (m deaf) RecordLoad(engine.Instant, engine.ID, engine.LoadReport) error {
	if m.deaf {
		return ErrTrap
	}
	*m.heard++
	return nil
}

func TestALoadReportReachesTheShardsAfterOneThatTraps(t *testing.T) {
	heard := 0
	b := balancerOf(t, made("random seed=1", func(e *engine.Engine, salt uint64) engine.Machine {
		return deaf{e, &heard, salt == 7}
	}), WithShards(3), WithSeed(7))
	assert.ErrorIs(t, b.RecordLoad("a", engine.LoadReport{QPS: 1}), ErrTrap)
	assert.Equal(t, 2, heard)
	assert.NoError(t, b.Close(context.Background()))
}
