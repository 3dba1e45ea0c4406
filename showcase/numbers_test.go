package showcase

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headroom-lb/headroom/showcase/pages"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// What no one has measured is no 0.0 ms.
func TestNumbersWithoutAnswers(t *testing.T) {
	none := sim.Summary{Spec: "random seed=1", Replicas: []sim.ReplicaView{{Latency: -1}}}
	late := none
	late.P50, late.P99 = 20*sim.Millisecond, sim.Calm().Deadline
	var v pages.View
	fillNumbers(&v, none, late)
	rows := map[string]pages.Metric{}
	for _, m := range v.Metrics {
		rows[m.Name] = m
	}
	assert.Equal(t, pages.Metric{Name: "median latency", A: "–", B: "20 ms"}, rows["median latency"])
	assert.Equal(t, pages.Metric{Name: "99th percentile", A: "–", B: "timeout"}, rows["99th percentile"])
	assert.Contains(t, rows, "decisions, blind (fallback)")
	for _, r := range v.Fleet {
		assert.Equal(t, "–", r.LatencyA)
	}
}
