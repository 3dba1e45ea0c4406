package health

import (
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// Full is the share of an endpoint that has all of its weight.
const Full = 10_000

// steps is in how many steps a ramp climbs: each may rebuild the tables of a policy.
const steps = 20

// grid is the distance of the instants at which ramps climb. It is the same for all endpoints, so
// that a fleet that starts together changes in one go.
func (s *SlowStart) grid() time.Duration { return s.Window / steps }

// share is how much of its weight an endpoint has that came into service at began, in parts per
// 10,000. It is whole numbers throughout: every machine climbs alike.
func (s *SlowStart) share(began, at engine.Instant) uint32 {
	grid := int64(s.grid())
	elapsed := max(0, int64(at)/grid*grid-int64(began))
	if elapsed >= int64(s.Window) {
		return Full
	}
	floor := uint64(s.Floor) * (Full / 100)
	climbed := root(uint64(elapsed)*Full/uint64(s.Window), s.Aggression)
	return uint32(floor + (Full-floor)*climbed/Full)
}

// next is the first instant after at on which a ramp climbs.
func (s *SlowStart) next(at engine.Instant) engine.Instant {
	grid := int64(s.grid())
	return engine.Instant((int64(at)/grid + 1) * grid)
}

// root is Full * (x/Full)^(1/degree), rounded down, for x up to Full and a degree of 1 to 4.
func root(x uint64, degree int) uint64 {
	target := x
	for range degree - 1 {
		target *= Full // at most Full^4, which fits
	}
	low, high := uint64(0), uint64(Full)
	for low < high {
		mid := (low + high + 1) / 2
		power := uint64(1)
		for range degree {
			power *= mid
		}
		if power <= target {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
