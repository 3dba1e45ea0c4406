package policy_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// fixture is the fleet of the seed library's benchmarks: weights 1 to 4, i mod 17 queries in
// flight on the i-th member where loaded, and 997 keys.
func fixture(tb testing.TB, spec string, n int, loaded bool) (*engine.Engine, []engine.Key) {
	tb.Helper()
	e := start(tb, spec, tabled(n))
	if loaded {
		setInFlight(tb, e, n, func(i int) uint32 { return uint32(i % 17) })
	}
	keys := make([]engine.Key, 997)
	for i := range keys {
		keys[i] = engine.KeyOf(fmt.Sprintf("request-%05d", i))
	}
	return e, keys
}

// setInFlight writes counts of queries in flight through a snapshot: the last n rows of the
// block, of which each starts with its count.
func setInFlight(tb testing.TB, e *engine.Engine, n int, load func(i int) uint32) {
	tb.Helper()
	block, err := e.Snapshot(nil)
	if err != nil {
		tb.Fatal(err)
	}
	rows := block[len(block)-8*n:]
	for i := range n {
		l := load(i)
		copy(rows[8*i:], []byte{byte(l), byte(l >> 8), byte(l >> 16), byte(l >> 24)})
	}
	if err := e.Restore(block); err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkDecideByKey(b *testing.B) {
	for _, name := range hashSpecs {
		for _, n := range []int{8, 64, 512, 4096} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				e, keys := fixture(b, name, n, true)
				var d engine.Decision
				q := engine.Query{}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					q.Key = keys[i]
					if i++; i == len(keys) {
						i = 0
					}
					if err := e.Decide(&q, &d); err != nil {
						b.Fatal(err)
					}
					_ = e.Report(0, engine.Report{ID: d.ID})
				}
			})
		}
	}
}
