package host_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// What a query costs the collector is its placement and nothing else, and what is told of a replica nothing at all.
func TestWhatABalancerAllocates(t *testing.T) {
	for _, spec := range []string{"prequal seed=1", "least_loaded seed=1", "weighted_round_robin seed=1"} {
		for kind, b := range kinds(t, spec, host.WithShards(2), host.WithoutSpare()) {
			require.NoError(t, b.SetEndpoints(endpoints(50)))
			names := make([]string, 50)
			for i := range names {
				names[i] = fmt.Sprint("e", i)
			}
			i := 0
			name := func() string { i++; return names[i%50] }
			ctx := context.Background()
			q := host.Query{Key: "somebody", Tried: []string{"e1", "who"}}
			for what, c := range map[string]struct {
				f    func() error
				most float64
			}{
				"decide and done": {func() error {
					p, err := b.Decide(ctx, q)
					if err == nil {
						p.Done(engine.OutcomeSuccess)
					}
					return err
				}, 1},
				"record":      {func() error { return b.Record(name(), engine.Reading{RIF: uint32(i % 7), Latency: engine.Duration(i)}) }, 0},
				"record load": {func() error { return b.RecordLoad(name(), engine.LoadReport{QPS: 9, Utilization: 5000}) }, 0},
				"forget":      {func() error { b.Forget(name()); return nil }, 0},
			} {
				allocs := testing.AllocsPerRun(2000, func() {
					if err := c.f(); err != nil {
						panic(err)
					}
				})
				assert.LessOrEqual(t, allocs, c.most, "%s, %s, %s", kind, spec, what)
			}
		}
	}
}
