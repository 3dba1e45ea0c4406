package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// In steady traffic less than one decision in a thousand falls back, from 50 to 100,000 queries a
// second. Time is simulated: probes take half a millisecond, queries 20.
func TestSteadyTrafficHardlyFallsBack(t *testing.T) {
	for _, c := range []struct {
		rate, shards, replicas int
		settings               string
		probes                 int // outstanding; 0 for as many as a prober lets out by itself
	}{
		{rate: 50, shards: 1, replicas: 100}, {rate: 500, shards: 1, replicas: 100},
		{rate: 5_000, shards: 1, replicas: 100}, {rate: 100_000, shards: 1, replicas: 100},
		{rate: 50, shards: 8, replicas: 100}, {rate: 5_000, shards: 8, replicas: 1000}, {rate: 100_000, shards: 8, replicas: 1000},
		// 300,000 probes a second are more than most can afford, and more than are needed.
		{rate: 100_000, shards: 1, replicas: 100, settings: " probe_rate=0.3 remove_rate=0.1", probes: 32},
	} {
		t.Run(fmt.Sprintf("%d a second, %d shards, %d replicas%s", c.rate, c.shards, c.replicas, c.settings), func(t *testing.T) {
			if testing.Short() && c.rate > 5_000 {
				t.Skip("100,000 queries; the full run places them")
			}
			if racing && c.rate > 10_000 {
				// A shard is held some ten times as long there, while the clock of the bubble stands: queries find it taken
				// that would not have met it, and go to one without a pool.
				t.Logf("under the race detector: 10,000 queries a second and not %d", c.rate)
				c.rate = 10_000
			}
			synctest.Test(t, func(t *testing.T) {
				b := balancerOf(t, natively("prequal seed=1"+c.settings), WithShards(c.shards))
				eps := make([]Endpoint, c.replicas)
				for i := range eps {
					eps[i].Name = fmt.Sprint(i)
				}
				require.NoError(t, b.SetEndpoints(eps))
				running, stop := context.WithCancel(ctx)
				prober := &Prober{Concurrency: c.probes, Probe: func(context.Context, Endpoint) (engine.Reading, error) {
					time.Sleep(500 * time.Microsecond)
					return engine.Reading{RIF: rand.Uint32N(20), Latency: engine.Duration(1 + rand.IntN(1e7))}, nil
				}}
				var all sync.WaitGroup
				all.Go(func() { _ = prober.Run(running, b) })
				pass := func(d time.Duration) {
					gap := time.Second / time.Duration(c.rate)
					for range int(d / gap) {
						p := decide(t, b, Query{})
						time.AfterFunc(20*time.Millisecond, func() { p.Done(engine.OutcomeSuccess) })
						time.Sleep(gap)
					}
				}
				pass(time.Second) // the pools fill
				before := b.Stats()
				pass(max(time.Second, 2000*time.Second/time.Duration(c.rate)))
				after := b.Stats()
				decided := after.Decisions - before.Decisions
				fell := after.ByRegime[engine.RegimeFallback] - before.ByRegime[engine.RegimeFallback]
				t.Logf("%d of %d decisions fell back; %.2f probes a query, %d shed", fell, decided,
					float64(after.Probes.Answered-before.Probes.Answered)/float64(decided), after.Probes.Shed-before.Probes.Shed)
				spread := uint64(0)
				for _, s := range b.live.Load().shards[1:] {
					s.look(func(engine.Machine) error { spread += s.served; return nil })
				}
				if c.rate <= 5_000 {
					assert.Less(t, float64(spread), 0.01*float64(after.Decisions), "low traffic stays on one shard")
				}
				assert.Less(t, float64(fell), 0.001*float64(decided))
				stop()
				time.Sleep(time.Second)
				all.Wait()
				require.NoError(t, b.Close(ctx))
			})
		})
	}
}
