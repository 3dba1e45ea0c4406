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

func trappingBalancer(t *testing.T, spec string, fail *bool, opts ...Option) *Balancer {
	b, err := newBalancer(context.Background(), func(_ context.Context, salt uint64) (engine.Machine, string, error) {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		return trapping{engine.New(p, engine.Config{Salt: salt}), fail}, p.Spec(), nil
	}, spec, opts)
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

// What an earlier machine counted, or none did, is not taken off what the present one counts.
func TestPlacementsReportToTheMachineThatCountedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		b := trappingBalancer(t, "least_loaded seed=1", &fail)
		place := func() *Placement {
			p, err := b.Decide(context.Background(), Query{Tried: []string{"b"}})
			require.NoError(t, err)
			return p
		}
		inFlight := func() uint32 {
			return b.shards[0].machine.(trapping).Machine.(*engine.Engine).InFlight(engine.IDOf("a"))
		}
		before := []*Placement{place(), place(), place()}
		fail = true
		before = append(before, place())
		require.Equal(t, engine.CauseTrap, before[3].Decision.Cause)
		time.Sleep(time.Second)
		after := []*Placement{place(), place(), place(), place(), place()}
		require.Equal(t, uint32(5), inFlight())
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
	b, err := newBalancer(context.Background(), func(_ context.Context, salt uint64) (engine.Machine, string, error) {
		p, err := policy.Parse("random seed=1")
		return deaf{engine.New(p, engine.Config{Salt: salt}), &heard, salt == 7}, "random seed=1", err
	}, "random seed=1", []Option{WithShards(3), WithSeed(7)})
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}}))
	assert.ErrorIs(t, b.RecordLoad("a", engine.LoadReport{QPS: 1}), ErrTrap)
	assert.Equal(t, 2, heard)
	assert.NoError(t, b.Close(context.Background()))
}
