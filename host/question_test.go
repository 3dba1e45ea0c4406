package host_test

import (
	"context"
	"errors"
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
	"github.com/headroom-lb/headroom/host"
)

// slowly answers after a time that is the endpoint's own: e3 after 3 ms times step.
func slowly(step time.Duration, asked *atomic.Int64) host.ProbeFunc {
	return func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		asked.Add(1)
		var n int
		_, _ = fmt.Sscanf(ep.Name, "e%d", &n)
		select {
		case <-time.After(time.Duration(n) * step):
			return engine.Reading{RIF: 1, Latency: engine.Duration(10-n) * engine.Millisecond}, nil
		case <-ctx.Done():
			return engine.Reading{}, ctx.Err()
		}
	}
}

func TestASyncQueryDecidesOnItsOwnAnswers(t *testing.T) {
	var asked atomic.Int64
	p := &host.Prober{Probe: slowly(time.Millisecond, &asked)}
	probing(t, "prequal seed=1 mode=sync", 3, p, func(b *host.Balancer) {
		for range 50 {
			began := time.Now()
			d := decide(t, b)
			assert.Equal(t, time.Millisecond, time.Since(began), "e0 and e1 answer; nobody waits for e2")
			assert.Equal(t, engine.IDOf("e1"), d.ID, "the faster of the two, though e2 is faster still")
			assert.Equal(t, engine.RegimeCold, d.Regime)
			assert.Equal(t, engine.Duration(time.Millisecond), d.Age, "since the probes were sent")
			time.Sleep(5 * time.Millisecond)
		}
		s := b.Stats()
		assert.Equal(t, int64(150), asked.Load())
		assert.Equal(t, host.ProbeStats{Sent: 150, Answered: 150, Late: 50}, s.Probes)
		assert.Equal(t, engine.Counters{Decisions: 50, Readings: 150, ProbesDue: 150}, s.Counters, "late answers are readings")
		assert.Equal(t, uint32(3), s.Fit.Probes)
		assert.Empty(t, b.Entries())
		time.Sleep(time.Minute)
		assert.Equal(t, int64(150), asked.Load(), "without queries nobody is probed")
	})
}

func TestADeadReplicaCostsASyncQueryTheWaitAndNoMore(t *testing.T) {
	var asked atomic.Int64
	p := &host.Prober{Probe: func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		if asked.Add(1); ep.Name != "e0" {
			<-ctx.Done()
			return engine.Reading{}, ctx.Err()
		}
		return engine.Reading{RIF: 1, Latency: engine.Millisecond}, nil
	}}
	probing(t, "prequal seed=1 mode=sync probes=3 wait=3", 3, p, func(b *host.Balancer) {
		began := time.Now()
		d := decide(t, b)
		assert.Equal(t, host.DefaultProbeWait, time.Since(began))
		assert.Equal(t, engine.IDOf("e0"), d.ID)
		assert.Equal(t, uint32(1), d.Offered, "decided with what had come")
		synctest.Wait()
		assert.Equal(t, host.ProbeStats{Sent: 3, Answered: 1, Failed: 2}, b.Stats().Probes, "probes end with the wait")
	})
}

// A probe that fails at once is not waited for.
func TestAFailedProbeEndsTheWaiting(t *testing.T) {
	p := &host.Prober{Probe: func(context.Context, host.Endpoint) (engine.Reading, error) {
		return engine.Reading{}, errors.New("refused")
	}}
	probing(t, "prequal seed=1 mode=sync", 5, p, func(b *host.Balancer) {
		began := time.Now()
		d := decide(t, b)
		assert.Zero(t, time.Since(began))
		assert.Equal(t, engine.RegimeFallback, d.Regime)
		assert.Equal(t, engine.CauseEmpty, d.Cause)
	})
}

func TestAnAnswerIsEitherInTimeOrAReading(t *testing.T) {
	p := &host.Prober{Concurrency: 8, Probe: func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		time.Sleep(time.Duration(len(ep.Name)) * time.Microsecond)
		return engine.Reading{RIF: 2, Latency: engine.Millisecond}, nil
	}}
	b, err := host.NewNativeBalancer(policy.Parse, "prequal seed=1 mode=sync probes=4 wait=1", host.WithShards(2))
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints(endpoints(40)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, b) }()
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 100 {
				pl, err := b.Decide(ctx, host.Query{Tried: []string{"e1", "e2"}})
				if assert.NoError(t, err) {
					assert.NotContains(t, []string{"e1", "e2"}, pl.Endpoint.Name)
					pl.Done(engine.OutcomeSuccess)
				}
			}
		})
	}
	callers.Wait()
	require.Eventually(t, func() bool {
		s := b.Stats()
		return s.Probes.Sent == s.Probes.Answered+s.Probes.Failed && s.Counters.Readings == s.Probes.Answered
	}, 5*time.Second, time.Millisecond, "%+v", b.Stats())
	assert.Equal(t, uint64(1600), b.Stats().Counters.Decisions)
	cancel()
	<-ended
	require.NoError(t, b.Close(context.Background()))
}

func TestASyncQueryThatIsCancelledReturnsAtOnce(t *testing.T) {
	p := &host.Prober{Probe: func(ctx context.Context, _ host.Endpoint) (engine.Reading, error) {
		<-ctx.Done()
		return engine.Reading{}, ctx.Err()
	}}
	probing(t, "prequal seed=1 mode=sync", 3, p, func(b *host.Balancer) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := b.Decide(ctx, host.Query{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Millisecond, time.Since(began))
		s := b.Stats()
		assert.Equal(t, uint64(1), s.Errors)
		assert.Zero(t, s.InFlight+int64(s.Decisions))
	})
}

func TestProbesForQueriesAreBounded(t *testing.T) {
	var open, most atomic.Int64
	p := &host.Prober{Concurrency: 4, Probe: func(ctx context.Context, _ host.Endpoint) (engine.Reading, error) {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		time.Sleep(2 * time.Millisecond)
		return engine.Reading{RIF: 1}, nil
	}}
	probing(t, "prequal seed=1 mode=sync", 30, p, func(b *host.Balancer) {
		var wg sync.WaitGroup
		began := time.Now()
		for range 100 {
			wg.Go(func() { decide(t, b) })
		}
		wg.Wait()
		assert.LessOrEqual(t, time.Since(began), host.DefaultProbeWait)
		time.Sleep(10 * time.Millisecond)
		s := b.Stats()
		assert.LessOrEqual(t, most.Load(), int64(4))
		assert.Positive(t, s.Probes.Shed)
		assert.Equal(t, uint64(300), s.Probes.Sent+s.Probes.Shed)
	})
}

func TestASyncRetryProbesOnlyWhoIsLeft(t *testing.T) {
	var asked sync.Map
	p := &host.Prober{Probe: func(_ context.Context, ep host.Endpoint) (engine.Reading, error) {
		asked.Store(ep.Name, true)
		return engine.Reading{RIF: 1}, nil
	}}
	probing(t, "prequal seed=1 mode=sync probes=4", 6, p, func(b *host.Balancer) {
		pl, err := b.Decide(context.Background(), host.Query{Tried: []string{"e0", "e1", "e2", "who"}})
		require.NoError(t, err)
		pl.Done(engine.OutcomeSuccess)
		assert.Equal(t, uint32(3), pl.Decision.Offered, "redrawn until the three that are left were probed")
		for _, name := range []string{"e0", "e1", "e2"} {
			_, ok := asked.Load(name)
			assert.False(t, ok, name)
		}
		_, err = b.Decide(context.Background(), host.Query{Tried: []string{"e0", "e1", "e2", "e3", "e4", "e5"}})
		assert.ErrorIs(t, err, engine.ErrNoneEligible)
	})
}

func TestHintsReachTheProbesOfTheirQueryOnly(t *testing.T) {
	hints := make(chan string, 100)
	p := &host.Prober{Probe: func(ctx context.Context, _ host.Endpoint) (engine.Reading, error) {
		hints <- host.Hint(ctx)
		return engine.Reading{RIF: 1}, nil
	}}
	probing(t, "prequal seed=1 mode=sync", 6, p, func(b *host.Balancer) {
		for _, hint := range []string{"cart-17", ""} {
			pl, err := b.Decide(context.Background(), host.Query{Hint: hint})
			require.NoError(t, err)
			pl.Done(engine.OutcomeSuccess)
			for range 3 {
				assert.Equal(t, hint, <-hints)
			}
		}
	})
}

func TestASyncBalancerWithoutAProberFallsBack(t *testing.T) {
	b, err := host.NewNativeBalancer(policy.Parse, "prequal seed=1 mode=sync")
	require.NoError(t, err)
	_, err = b.Decide(context.Background(), host.Query{})
	require.ErrorIs(t, err, engine.ErrNoCandidates)
	require.NoError(t, b.SetEndpoints(endpoints(3)))
	assert.Equal(t, engine.CauseEmpty, decide(t, b).Cause)
	require.NoError(t, b.Close(context.Background()))
	for _, wait := range []time.Duration{0, -1, time.Hour} {
		_, err := host.NewNativeBalancer(policy.Parse, "random", host.WithProbeWait(wait))
		assert.ErrorContains(t, err, "want more than 0, at most 1m")
	}
}
