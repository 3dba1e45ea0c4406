package policy

import "github.com/headroom-lb/headroom/engine/probe"

// hotCold is the hot-cold lexicographic rule (paper, section 4) as a [probe.Rank]: cold
// before hot; cold by latency; hot by RIF, then latency. Hot values too large for a key are
// cut so that they tie.
func hotCold(rif uint32, latency uint64, threshold uint32) uint64 {
	const hot, rifAt, latAt = 1 << 63, 39, 6
	if rif <= threshold {
		return latency << latAt
	}
	if rif >= probe.ToldRIF {
		return hot | probe.ToldRIF<<rifAt | probe.ToldLatency<<latAt
	}
	return hot | uint64(rif)<<rifAt | min(latency, probe.ToldLatency)<<latAt
}
