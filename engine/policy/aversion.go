package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// Error aversion: the paper leaves its own rule unstated (section 4, sinkholing). Ours weighs
// failures apart from latency. Each client keeps, per replica, an average of its own queries'
// failures; a reading's latency is ranked as (1 + 100 x average) times what it is, and so is its
// RIF with the next query in it, since a hundred times no RIF would be none; a failure drops the
// replica's entry; each reading forgives one percent, so that a replica that nobody trusts
// comes back by itself.
const (
	errorOne    = 1 << 16 // an average of one, every query failed
	errorWeight = 100
)

// learn moves a replica's error average by a fifth towards an outcome.
func learn(average uint64, failed bool) uint64 {
	if failed {
		return (4*average + errorOne) / 5
	}
	return 4 * average / 5
}

// forgive takes one percent off.
func forgive(average uint64) uint64 { return average * 99 / 100 }

// averse is a reading as ranked for a replica with an error average.
func averse(average uint64, rif uint32, latency engine.Duration) (uint32, engine.Duration) {
	factor := errorOne + errorWeight*average
	r := (uint64(rif)+1)*factor>>16 - 1
	if latency == engine.UnknownLatency {
		// Unknown ranks as the median: too good for a replica known to fail.
		if factor >= 2*errorOne {
			latency = engine.MaxLatency
		}
		return uint32(min(r, uint64(engine.NoThreshold-1))), latency
	}
	hi, lo := bits.Mul64(uint64(latency), factor)
	l := lo>>16 | hi<<48
	if hi>>16 != 0 || l > uint64(engine.MaxLatency) {
		l = uint64(engine.MaxLatency)
	}
	return uint32(min(r, uint64(engine.NoThreshold-1))), engine.Duration(l)
}
