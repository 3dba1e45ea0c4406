package observe_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
)

func shown(b *host.Balancer, e *observe.Endpoints) map[string]observe.EndpointCounts {
	out := map[string]observe.EndpointCounts{}
	for _, c := range observe.Look(b, e).ByEndpoint {
		out[c.Endpoint] = c
	}
	return out
}

// send has one endpoint observed without a balancer's choice.
func send(e *observe.Endpoints, name string, n int, o engine.Outcome) {
	for range n {
		e.Observe(ctx, host.Query{}, &host.Placement{Endpoint: host.Endpoint{Name: name}}, nil)(o, 0)
	}
}

func TestTheBusiestAreShownByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := observe.NewEndpoints(2)
		b := balancerOf(t, "random seed=1")
		require.NoError(t, b.SetEndpoints(append(fleet(0, 4), host.Endpoint{Name: observe.Other}, host.Endpoint{Name: "bad\xff"})))
		send(e, "r0", 10, engine.OutcomeSuccess)
		send(e, "r1", 30, engine.OutcomeFailure)
		send(e, "r2", 20, engine.OutcomeOverloaded)
		send(e, observe.Other, 100, engine.OutcomeCancelled)
		send(e, "bad\xff", 100, engine.OutcomeSuccess)
		got := shown(b, e)
		assert.Equal(t, map[string]observe.EndpointCounts{
			"r1": {"r1", 30, 30}, "r2": {"r2", 20, 20}, "other": {"other", 210, 0},
		}, got)

		send(e, "r0", 100, engine.OutcomeFailure)
		assert.NotContains(t, shown(b, e), "r0", "a place does not change hands at once")
		time.Sleep(time.Minute)
		got = shown(b, e)
		assert.Contains(t, got, "r0", "busier by far than r2 for a minute")
		assert.Equal(t, observe.EndpointCounts{Endpoint: "r0"}, got["r0"], "what it got before is other's")

		shown(b, e)
		send(e, "r0", 20, engine.OutcomeSuccess)
		send(e, "r1", 20, engine.OutcomeSuccess)
		send(e, "r3", 40, engine.OutcomeSuccess)
		time.Sleep(time.Minute)
		assert.NotContains(t, shown(b, e), "r3", "not more than twice as busy")
		send(e, "r0", 20, engine.OutcomeSuccess)
		send(e, "r1", 19, engine.OutcomeSuccess)
		send(e, "r3", 41, engine.OutcomeSuccess)
		time.Sleep(time.Minute)
		got = shown(b, e)
		assert.Contains(t, got, "r3")
		assert.Contains(t, got, "r0")
		assert.NotContains(t, got, "r1", "the least busy goes")

		require.NoError(t, b.SetEndpoints(fleet(0, 1)))
		got = shown(b, e)
		assert.Len(t, got, 2)
		assert.EqualValues(t, 520, got["other"].Queries+got["r0"].Queries)
	})
}

// TestAnEndThatComesLateCounts: the endpoint has left, and its counts with it, but for what is open.
func TestAnEndThatComesLateCounts(t *testing.T) {
	e := observe.NewEndpoints(1)
	b := balancerOf(t, "random seed=1")
	require.NoError(t, b.SetEndpoints(fleet(0, 1)))
	end := e.Observe(ctx, host.Query{}, &host.Placement{Endpoint: host.Endpoint{Name: "r0"}}, nil)
	require.NoError(t, b.SetEndpoints(nil))
	assert.Equal(t, map[string]observe.EndpointCounts{"other": {"other", 1, 0}}, shown(b, e))
	end(engine.OutcomeFailure, 0)
	assert.Equal(t, map[string]observe.EndpointCounts{"other": {"other", 1, 1}}, shown(b, e))
}

// TestNoCountFalls: whatever order endpoints come, go and get busy in, a series that is there at two
// looks has not fallen, the sum is exact, and there are never more than n+1.
func TestNoCountFalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			n := rapid.IntRange(1, 4).Draw(rt, "n")
			e := observe.NewEndpoints(n)
			b := balancerOf(t, "random seed=1")
			var queries, failures uint64
			last := map[string]observe.EndpointCounts{}
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				switch rapid.IntRange(0, 3).Draw(rt, "do") {
				case 0:
					require.NoError(rt, b.SetEndpoints(fleet(rapid.IntRange(0, 6).Draw(rt, "from"), rapid.IntRange(0, 6).Draw(rt, "size"))))
				case 1, 2:
					k := rapid.IntRange(1, 50).Draw(rt, "k")
					send(e, fmt.Sprintf("r%d", rapid.IntRange(0, 12).Draw(rt, "r")), k, engine.OutcomeFailure)
					queries, failures = queries+uint64(k), failures+uint64(k)
				case 3:
					time.Sleep(time.Minute)
				}
				now, sum := shown(b, e), observe.EndpointCounts{}
				require.LessOrEqual(rt, len(now), n+1)
				require.Contains(rt, now, observe.Other)
				for name, c := range now {
					sum.Queries, sum.Failures = sum.Queries+c.Queries, sum.Failures+c.Failures
					if was, ok := last[name]; ok && name == observe.Other {
						require.GreaterOrEqual(rt, c.Queries, was.Queries)
						require.GreaterOrEqual(rt, c.Failures, was.Failures)
					}
				}
				require.Equal(rt, failures, sum.Failures)
				require.Equal(rt, queries, sum.Queries)
				last = now
			}
		})
	})
}

func TestEndpointsAreCountedConcurrently(t *testing.T) {
	e := observe.NewEndpoints(3)
	b := balancerOf(t, "random seed=1", host.WithObserver(e.Observe))
	require.NoError(t, b.SetEndpoints(fleet(0, 10)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if p, err := b.Decide(ctx, host.Query{}); assert.NoError(t, err) {
					p.Done(engine.OutcomeFailure)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 50 {
			assert.NoError(t, b.SetEndpoints(fleet(i, 10)))
			shown(b, e)
		}
	})
	wg.Wait()
	var sum observe.EndpointCounts
	for _, c := range shown(b, e) {
		sum.Queries, sum.Failures = sum.Queries+c.Queries, sum.Failures+c.Failures
	}
	assert.EqualValues(t, 4000, sum.Queries)
	assert.EqualValues(t, 4000, sum.Failures)
}
