package host_test

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
	"github.com/headroom-lb/headroom/host"
)

func endpoints(n int) []host.Endpoint {
	eps := make([]host.Endpoint, n)
	for i := range eps {
		eps[i] = host.Endpoint{Name: fmt.Sprint("e", i), Addr: fmt.Sprint("http://10.0.0.", i)}
	}
	return eps
}

// kinds makes the same balancer over the module and over native engines.
func kinds(t *testing.T, spec string, opts ...host.Option) map[string]*host.Balancer {
	t.Helper()
	guest, err := host.NewBalancer(context.Background(), module, spec, opts...)
	require.NoError(t, err)
	native, err := host.NewNativeBalancer(policy.Parse, spec, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		assert.NoError(t, guest.Close(ctx))
		assert.NoError(t, native.Close(ctx))
	})
	return map[string]*host.Balancer{"guest": guest, "native": native}
}

func TestBalancerPlacesByName(t *testing.T) {
	ctx := context.Background()
	for kind, b := range kinds(t, "round_robin seed=0") {
		t.Run(kind, func(t *testing.T) {
			_, err := b.Decide(ctx, host.Query{})
			assert.ErrorIs(t, err, engine.ErrNoCandidates)
			require.NoError(t, b.SetEndpoints(endpoints(3)))
			var names []string
			for range 4 {
				p, err := b.Decide(ctx, host.Query{})
				require.NoError(t, err)
				names = append(names, p.Endpoint.Name)
				assert.Equal(t, engine.RegimeDirect, p.Decision.Regime)
				p.Done(engine.OutcomeSuccess)
				p.Done(engine.OutcomeFailure) // ignored
			}
			assert.ElementsMatch(t, []string{"e0", "e1", "e2"}, names[:3])
			assert.Equal(t, names[0], names[3])
			p, err := b.Decide(ctx, host.Query{Tried: []string{"e1", "e2", "who"}})
			require.NoError(t, err)
			assert.Equal(t, "e0", p.Endpoint.Name)
			p.Done(engine.OutcomeCancelled)
			require.NoError(t, b.SetStatus("e0", engine.StatusDraining))
			require.NoError(t, b.SetStatus("e2", engine.StatusUnavailable))
			_, err = b.Decide(ctx, host.Query{Tried: []string{"e1"}})
			assert.ErrorIs(t, err, engine.ErrNoneEligible)
			assert.ErrorIs(t, b.SetStatus("who", engine.StatusReady), engine.ErrUnknownID)
			assert.Equal(t, engine.StatusDraining, b.Endpoints()[0].Status)
			s := b.Stats()
			assert.Equal(t, uint64(5), s.Decisions)
			assert.Equal(t, uint64(2), s.Errors)
			assert.Equal(t, [4]uint64{4, 0, 0, 1}, s.Outcomes)
			assert.Zero(t, s.InFlight)
		})
	}
}

func TestBalancerKeepsTheOldSetWhenANewOneIsRefused(t *testing.T) {
	for kind, b := range kinds(t, "prequal seed=1 fit=strict", host.WithShards(3)) {
		t.Run(kind, func(t *testing.T) {
			assert.ErrorIs(t, b.SetEndpoints(endpoints(5)), engine.ErrConfig)
			assert.Empty(t, b.Endpoints())
			require.NoError(t, b.SetEndpoints(endpoints(40)))
			twice := append(endpoints(2), host.Endpoint{Name: "e1"})
			err := b.SetEndpoints(twice)
			assert.ErrorIs(t, err, engine.ErrDuplicateID)
			assert.EqualError(t, err, `duplicate endpoint: "e1" stands twice, at 1 and 2`)
			assert.ErrorIs(t, b.SetEndpoints([]host.Endpoint{{}}), host.ErrEndpoint)
			alike := endpoints(40)
			alike[3].Locality, alike[7].Locality = "zone-17672", "zone-51913"
			err = b.SetEndpoints(alike)
			assert.ErrorIs(t, err, engine.ErrTopology)
			assert.EqualError(t, err, `inconsistent topology: localities "zone-17672" and "zone-51913" hash alike; rename one`)
			assert.Len(t, b.Endpoints(), 40)
			p, err := b.Decide(context.Background(), host.Query{})
			require.NoError(t, err)
			p.Done(engine.OutcomeSuccess)
		})
	}
}

func TestReadingsSurviveAReload(t *testing.T) {
	for kind, b := range kinds(t, "prequal seed=1 reuse=100 remove_rate=0") {
		t.Run(kind, func(t *testing.T) {
			require.NoError(t, b.SetEndpoints(endpoints(4)))
			for i := range 3 {
				require.NoError(t, b.Record(fmt.Sprint("e", i), engine.Reading{RIF: uint32(i), Latency: engine.Duration(i+1) * engine.Millisecond}))
			}
			assert.ErrorIs(t, b.Record("who", engine.Reading{}), engine.ErrUnknownID)
			eps := endpoints(4)
			eps[0], eps[3] = eps[3], eps[0]
			require.NoError(t, b.SetEndpoints(append(eps, host.Endpoint{Name: "new"})))
			var held []string
			for _, e := range b.Entries() {
				held = append(held, e.Endpoint)
			}
			assert.ElementsMatch(t, []string{"e0", "e1"}, held[:2], "five endpoints hold a pool of two; the oldest went")
			b.Forget("e2")
			assert.LessOrEqual(t, len(b.Entries()), 2)
		})
	}
}

func TestSpecsAreRefusedWithTheirReason(t *testing.T) {
	for _, spec := range []string{"prequel", "prequal pool=99", ""} {
		_, native := host.NewNativeBalancer(policy.Parse, spec)
		_, guest := host.NewBalancer(context.Background(), module, spec)
		require.ErrorIs(t, native, engine.ErrConfig)
		require.ErrorIs(t, guest, engine.ErrConfig)
		assert.Equal(t, native.Error(), guest.Error())
	}
	_, err := host.NewNativeBalancer(policy.Parse, "random", host.WithShards(0))
	assert.EqualError(t, err, "0 shards: want 1 to 256")
}

func TestUnseededBalancersDiffer(t *testing.T) {
	first := func(spec string, opts ...host.Option) string {
		b, err := host.NewNativeBalancer(policy.Parse, spec, opts...)
		require.NoError(t, err)
		require.NoError(t, b.SetEndpoints(endpoints(100)))
		out := ""
		for range 8 {
			p, err := b.Decide(context.Background(), host.Query{})
			require.NoError(t, err)
			out += p.Endpoint.Name + " "
		}
		return out
	}
	assert.NotEqual(t, first("random"), first("random"))
	assert.Equal(t, first("random seed=1"), first("random seed=1"))
	assert.NotEqual(t, first("random seed=1"), first("random seed=1", host.WithSeed(2)))
	assert.Equal(t, first("random", host.WithSeed(2)), first("random", host.WithSeed(2)))
}

func TestCloseWaitsForOpenPlacements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := host.NewNativeBalancer(policy.Parse, "random seed=1")
		require.NoError(t, err)
		require.NoError(t, b.SetEndpoints(endpoints(2)))
		p, err := b.Decide(context.Background(), host.Query{})
		require.NoError(t, err)
		closed := make(chan error, 1)
		go func() { closed <- b.Close(context.Background()) }()
		synctest.Wait()
		_, err = b.Decide(context.Background(), host.Query{})
		require.ErrorIs(t, err, host.ErrClosed)
		time.Sleep(time.Hour)
		require.Empty(t, closed, "closed over an open placement")
		p.Done(engine.OutcomeSuccess)
		synctest.Wait()
		require.NoError(t, <-closed)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = b.Decide(ctx, host.Query{})
		assert.ErrorIs(t, err, context.Canceled)
	})
}

// However many callers there are, a reading informs no more decisions than its uses, and
// every placement that ends leaves nothing in flight.
func TestConcurrentCallersNeverOverspendReadings(t *testing.T) {
	for _, shards := range []int{1, 4} {
		for kind, b := range kinds(t, "prequal seed=3 reuse=2 remove_rate=0 min_pool=1 pool=64 max_age=60m", host.WithShards(shards)) {
			t.Run(fmt.Sprint(kind, "/", shards), func(t *testing.T) {
				require.NoError(t, b.SetEndpoints(endpoints(64)))
				var readings, informed atomic.Int64
				var wg sync.WaitGroup
				for g := range 16 {
					wg.Go(func() {
						for i := range 400 {
							if i%4 == 0 {
								readings.Add(1)
								assert.NoError(t, b.Record(fmt.Sprint("e", (g*7+i)%64), engine.Reading{RIF: uint32(i % 5), Latency: engine.Duration(i) * 1000}))
							}
							p, err := b.Decide(context.Background(), host.Query{})
							if !assert.NoError(t, err) {
								return
							}
							if p.Decision.Regime != engine.RegimeFallback {
								informed.Add(1)
							}
							p.Done(engine.OutcomeSuccess)
						}
					})
				}
				wg.Wait()
				assert.LessOrEqual(t, informed.Load(), 2*readings.Load())
				assert.Positive(t, informed.Load())
				s := b.Stats()
				assert.Equal(t, uint64(16*400), s.Decisions)
				assert.Zero(t, s.InFlight)
				assert.Zero(t, s.Traps)
			})
		}
	}
}

func TestInstanceDecidesWithoutAllocating(t *testing.T) {
	for _, spec := range []string{"prequal seed=1", "random seed=1", "least_loaded"} {
		in := guest(t, spec)
		cs := replicas(50)
		require.NoError(t, in.SetCandidates(0, cs))
		now := engine.Instant(1 << 40) // beyond what an i32 holds
		probes := make([]engine.ID, 0, 64)
		var d engine.Decision
		q, retry := engine.Query{}, engine.Query{Tried: []engine.ID{cs[1].ID}}
		before := in.MemorySize()
		i := 0
		allocs := testing.AllocsPerRun(3000, func() {
			i++
			now += 1000
			q.Now, retry.Now = now, now
			_, err := in.Record(now, cs[i%50].ID, engine.Reading{RIF: uint32(i % 7), Latency: engine.Duration(i % 1000), Asked: now})
			if err == nil {
				err = in.Decide(&q, &d)
			}
			if err == nil {
				err = in.Decide(&retry, &d)
			}
			if err == nil {
				err = in.Report(now, engine.Report{ID: d.ID})
			}
			if err == nil {
				probes, err = in.Probes(now, probes[:0])
			}
			if err != nil {
				panic(err)
			}
		})
		assert.Zero(t, allocs, spec)
		assert.Equal(t, before, in.MemorySize(), "a guest that decides does not grow")
	}
}
