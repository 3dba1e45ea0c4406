package host_test

import (
	"context"
	"errors"
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

// probing runs a prober for a native Prequal balancer in a bubble of virtual time.
func probing(t *testing.T, spec string, n int, p *host.Prober, test func(b *host.Balancer)) {
	synctest.Test(t, func(t *testing.T) {
		b, err := host.NewNativeBalancer(policy.Parse, spec)
		require.NoError(t, err)
		require.NoError(t, b.SetEndpoints(endpoints(n)))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx, b) }()
		synctest.Wait()
		test(b)
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, b.Close(context.Background()))
	})
}

func decide(t *testing.T, b *host.Balancer) engine.Decision {
	t.Helper()
	p, err := b.Decide(context.Background(), host.Query{})
	require.NoError(t, err)
	p.Done(engine.OutcomeSuccess)
	return p.Decision
}

func TestProberAsksWhatTheEngineSaysIsDue(t *testing.T) {
	var asked atomic.Int64
	p := &host.Prober{Probe: func(_ context.Context, ep host.Endpoint) (engine.Reading, error) {
		asked.Add(1)
		time.Sleep(time.Millisecond)
		return engine.Reading{RIF: 1, Latency: 5 * engine.Millisecond}, nil
	}}
	probing(t, "prequal seed=1 idle=0", 100, p, func(b *host.Balancer) {
		for range 100 {
			decide(t, b)
			time.Sleep(2 * time.Millisecond)
		}
		assert.Equal(t, int64(300), asked.Load(), "three probes a query")
		s := b.Stats()
		assert.Equal(t, host.ProbeStats{Sent: 300, Answered: 300}, s.Probes)
		assert.Less(t, s.ByRegime[engine.RegimeFallback], uint64(3), "only the first queries are blind")
		for _, e := range b.Entries() {
			assert.Equal(t, engine.Instant(engine.Millisecond), e.At-e.Asked, "an entry knows when it was asked")
		}
	})
}

func TestAFailedProbeDropsTheEntry(t *testing.T) {
	var failing atomic.Bool
	p := &host.Prober{Probe: func(context.Context, host.Endpoint) (engine.Reading, error) {
		if failing.Load() {
			return engine.Reading{}, errors.New("refused")
		}
		return engine.Reading{RIF: 1, Latency: engine.Millisecond}, nil
	}}
	probing(t, "prequal seed=1 idle=0 reuse=1000 max_age=60m", 3, p, func(b *host.Balancer) {
		decide(t, b)
		synctest.Wait()
		require.NotEmpty(t, b.Entries())
		failing.Store(true)
		for range 3 {
			decide(t, b)
			synctest.Wait()
		}
		assert.Empty(t, b.Entries())
		assert.Positive(t, b.Stats().Probes.Failed)
	})
}

func TestAHungReplicaCostsItsShareAndNoMore(t *testing.T) {
	var mu sync.Mutex
	open, most := map[string]int{}, 0
	p := &host.Prober{Timeout: 50 * time.Millisecond, PerEndpoint: 2, Concurrency: 8, Probe: func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		if ep.Name != "e0" {
			return engine.Reading{RIF: 1, Latency: engine.Millisecond}, nil
		}
		mu.Lock()
		open[ep.Name]++
		most = max(most, open[ep.Name])
		mu.Unlock()
		<-ctx.Done()
		mu.Lock()
		open[ep.Name]--
		mu.Unlock()
		return engine.Reading{}, ctx.Err()
	}}
	probing(t, "prequal seed=1 idle=0", 4, p, func(b *host.Balancer) {
		for range 200 {
			decide(t, b)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		s := b.Stats()
		assert.Equal(t, 2, most, "probes outstanding for one endpoint")
		assert.Positive(t, s.Probes.Shed)
		assert.Equal(t, s.Probes.Sent, s.Probes.Answered+s.Probes.Failed)
		assert.Greater(t, s.Probes.Answered, uint64(300), "the others go on being probed")
	})
}

func TestABalancerWithoutTrafficKeepsAFewReadings(t *testing.T) {
	p := &host.Prober{Probe: func(context.Context, host.Endpoint) (engine.Reading, error) {
		return engine.Reading{RIF: 1, Latency: engine.Millisecond}, nil
	}}
	probing(t, "prequal seed=1", 10, p, func(b *host.Balancer) {
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.GreaterOrEqual(t, len(b.Entries()), 2)
		assert.InDelta(t, 240, b.Stats().Probes.Sent, 12, "two every half second")
		assert.NotEqual(t, engine.RegimeFallback, decide(t, b).Regime)
	})
}

func TestOneProberServesABalancer(t *testing.T) {
	p := &host.Prober{Probe: func(context.Context, host.Endpoint) (engine.Reading, error) { return engine.Reading{}, nil }}
	probing(t, "prequal seed=1", 3, p, func(b *host.Balancer) {
		assert.ErrorIs(t, p.Run(context.Background(), b), host.ErrProberRuns)
	})
}

// burst has so many queries decide at once, and says how many probes were shed meanwhile.
func burst(t *testing.T, b *host.Balancer, n int) uint64 {
	before := b.Stats().Probes.Shed
	var all sync.WaitGroup
	for range n {
		all.Go(func() { decide(t, b) })
	}
	all.Wait()
	synctest.Wait()
	return b.Stats().Probes.Shed - before
}

// A prober serves whatever policy is live: its bounds are those of the probes, not those of the policy that it met first.
func TestAProberFollowsAChangeOfPolicy(t *testing.T) {
	p := &host.Prober{Probe: func(context.Context, host.Endpoint) (engine.Reading, error) {
		time.Sleep(time.Millisecond)
		return engine.Reading{RIF: 1, Latency: engine.Millisecond}, nil
	}}
	const async, awaited = "prequal seed=1 idle=0", "prequal seed=1 mode=sync"
	for _, first := range []string{async, awaited} {
		probing(t, first, 3, p, func(b *host.Balancer) {
			for range 2 {
				require.NoError(t, b.Swap(context.Background(), host.FromPolicies(policy.Parse, awaited)))
				assert.Zero(t, burst(t, b, 60), "each of three replicas is asked for 60 queries")
				time.Sleep(time.Second)
				require.NoError(t, b.Swap(context.Background(), host.FromPolicies(policy.Parse, async)))
				assert.EqualValues(t, 60*3-3*4, burst(t, b, 60), "a pool needs no more than four at a time from each")
				time.Sleep(time.Second)
			}
		})
	}
}
