package replicaproc

import (
	"math/rand/v2"
	"time"
)

// neighbour alternates between quiet and noisy spells of exponential length.
type neighbour struct {
	noisy bool
	until time.Time
}

// at tells whether the neighbour is noisy at an instant, which must not go backwards.
func (n *neighbour) at(now time.Time, s Settings, r *rand.Rand) bool {
	switch s.SlowShare {
	case 0:
		n.until = time.Time{}
		return false
	case 1:
		n.until = time.Time{}
		return true
	}
	noisyMean := float64(s.SlowSpell)
	quietMean := noisyMean * (1 - s.SlowShare) / s.SlowShare
	if n.until.IsZero() {
		n.until = now
		n.noisy = r.Float64() >= s.SlowShare // the first turn below flips it
	}
	for !now.Before(n.until) {
		n.noisy = !n.noisy
		mean := quietMean
		if n.noisy {
			mean = noisyMean
		}
		// At least a microsecond, so that many short spells cannot hold up the loop.
		n.until = n.until.Add(max(time.Microsecond, time.Duration(r.ExpFloat64()*mean)))
	}
	return n.noisy
}
