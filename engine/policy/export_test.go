package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// YARPPhase is when in an interval a machine asks a replica, worked out anew, for a fleet in
// which no two phases collide.
func YARPPhase(e *engine.Engine, id engine.ID, n int, poll engine.Duration) uint64 {
	const headTie = 7 // of the state block
	return hash.Mix(uint64(id)^e.Block()[headTie]) % (uint64(poll) - uint64(n))
}
