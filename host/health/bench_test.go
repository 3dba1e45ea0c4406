package health

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// BenchmarkQuery is what a monitor adds to one query: an admission and a report.
func BenchmarkQuery(b *testing.B) {
	for _, n := range []int{8, 10_000} {
		f := newFleet(b, Config{Circuit: &Circuit{}, Outlier: &Outlier{}, SlowStart: &SlowStart{}})
		all := names(n)
		f.set(all...)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.query(all[i%n], engine.OutcomeSuccess)
			}
		})
		b.Run(fmt.Sprintf("n=%d/goroutines=64", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			var next atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				for i := int(next.Add(1)) * 7919; pb.Next(); i++ {
					f.query(all[i%n], engine.OutcomeSuccess)
				}
			})
		})
		b.Run(fmt.Sprintf("n=%d/goroutines=64/one", n), func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					f.query(all[0], engine.OutcomeSuccess)
				}
			})
		})
	}
}

// BenchmarkCheck is what the monitor does for one check: n/5 of them are due each second by default.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			f := newFleet(b, Config{Active: &Active{Check: (&switchboard{}).check}})
			f.set(names(n)...)
			at := engine.Instant(0)
			for i := 0; b.Loop(); i++ {
				f.m.mu.Lock()
				at += 1000
				e := f.m.order[i%n]
				f.m.record(e, at, nil)
				f.m.judge(e, at)
				f.m.settle(at)
				f.m.mu.Unlock()
			}
		})
	}
}

// BenchmarkPanic turns a whole fleet over: every verdict is worked out and told.
func BenchmarkPanic(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			f := newFleet(b, Config{Active: &Active{Check: (&switchboard{}).check, Unhealthy: 1, Healthy: 1}, Panic: 100})
			f.set(names(n)...)
			errs := []error{errDown, nil}
			for i := 0; b.Loop(); i++ {
				f.m.mu.Lock()
				f.m.record(f.m.order[0], engine.Instant(i), errs[i%2])
				f.m.judge(f.m.order[0], engine.Instant(i))
				f.m.settle(engine.Instant(i))
				f.m.mu.Unlock()
			}
		})
	}
}

// BenchmarkSweep compares the success rates of a fleet, once per Outlier.Interval.
func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			f := newFleet(b, Config{Outlier: &Outlier{}})
			f.set(names(n)...)
			for b.Loop() {
				f.m.mu.Lock()
				for _, e := range f.m.order {
					e.tally = tally{ok: 200, failed: uint64(e.serial % 7)}
				}
				f.m.sweepOutliers(1)
				f.m.settle(1)
				f.m.mu.Unlock()
			}
		})
	}
}
