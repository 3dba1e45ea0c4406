package sim

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// settled is a world in its stride.
func settled(t testing.TB, sc Scenario, spec string, after int64) *World {
	t.Helper()
	w, err := NewWorld(sc, spec, native)
	require.NoError(t, err)
	require.NoError(t, w.Run(after))
	return w
}

// The loop allocates nothing once a world has met its busiest moment; a slice may still have to
// grow to a new one, which is rare. What policies do in here is the engine's own promise.
func TestTheLoopAllocatesNothing(t *testing.T) {
	specs := []string{"prequal", "weighted_round_robin", "prequal mode=sync", "c3", "linear", "yarp_power_of_two", "least_loaded", Omniscient}
	if testing.Short() {
		specs = specs[:2]
	}
	for _, spec := range specs {
		sc := small(T1())
		sc.ProbeLoss, sc.Tick = 100, 50*Millisecond
		w := settled(t, sc, spec, 12*Second)
		_, err := w.Measure(w.now, w.now+100*Second)
		require.NoError(t, err)
		was := w.Events()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, w.Run(15*Second))
		runtime.ReadMemStats(&after)
		events := w.Events() - was
		assert.Less(t, (after.Mallocs-before.Mallocs)*1000, events, "%s: %d allocations in %d events", spec, after.Mallocs-before.Mallocs, events)
	}
}

// BenchmarkEvents says how many events of a world a core gets through in a second, and what memory
// the world takes: the reference is 100 by 100, and what follows tells how the cost of an event grows
// with the fleet, with a tenth as many clients as replicas and otherwise.
func BenchmarkEvents(b *testing.B) {
	for _, size := range []struct{ replicas, clients int }{{100, 100}, {100, 10}, {1000, 100}, {10_000, 100}, {10_000, 1000}} {
		for _, spec := range []string{"prequal", "random"} {
			b.Run(fmt.Sprintf("%s/%dx%d", spec, size.replicas, size.clients), func(b *testing.B) {
				sc := T1()
				sc.Replicas, sc.Clients = size.replicas, size.clients
				before := inUse(b)
				w := settled(b, sc, spec, 2*Second)
				taken := inUse(b) - before
				was := w.Events()
				step := 100 * Second / int64(10*size.replicas)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					require.NoError(b, w.Run(w.Now()+step))
				}
				events := float64(w.Events() - was)
				b.ReportMetric(events/b.Elapsed().Seconds()/1e6, "Mevents/s")
				b.ReportMetric(b.Elapsed().Seconds()*1e9/events, "ns/event")
				b.ReportMetric(taken/1e6, "MB")
			})
		}
	}
}

// inUse is how many bytes are in use.
func inUse(b *testing.B) float64 {
	b.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
