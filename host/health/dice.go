package health

import (
	"math/rand/v2"

	"github.com/headroom-lb/headroom/engine"
)

// dice draws the jitter of one endpoint, so that what others do does not change it.
type dice struct{ pcg rand.PCG }

func newDice(seed uint64, name string, use uint64) dice {
	var d dice
	d.pcg.Seed(seed+use, uint64(engine.IDOf(name)))
	return d
}

// upTo is uniform in [0, most].
func (d *dice) upTo(most engine.Duration) engine.Duration {
	return engine.Duration(rand.New(&d.pcg).Int64N(int64(most) + 1))
}

// around is uniform within percent of span, to either side.
func (d *dice) around(span engine.Duration, percent int) engine.Duration {
	side := part(span, percent)
	return span - side + d.upTo(2*side)
}

// below is span, or less by up to percent of it.
func (d *dice) below(span engine.Duration, percent int) engine.Duration {
	return span - d.upTo(part(span, percent))
}

func part(span engine.Duration, percent int) engine.Duration {
	return span / 100 * engine.Duration(percent)
}
