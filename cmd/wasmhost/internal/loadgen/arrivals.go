// Package loadgen sends open-loop load: every query has an instant at which it is meant to leave, and its latency
// counts from there, so that a slow system cannot slow its own load down.
package loadgen

import (
	"math/rand/v2"
	"time"
)

// Arrival is one query of a plan, the same for whatever is measured with it.
type Arrival struct {
	At   time.Duration // when it is meant to leave, from the start of the run
	Via  int           // which of the entry points it goes to
	Work time.Duration // the service time it asks for, on a replica that is not slowed
}

// Work is a service time of which a fifth is fixed and the rest exponential: short queries and a tail.
type Work struct{ Mean time.Duration }

// Draw gives one service time.
func (w Work) Draw(r *rand.Rand) time.Duration {
	return time.Duration((0.2 + 0.8*r.ExpFloat64()) * float64(w.Mean))
}

// Poisson plans arrivals at rate per second for the given time, each at a uniform entry point of via. The same
// arguments give the same plan.
func Poisson(seed uint64, rate float64, length time.Duration, via int, work Work) []Arrival {
	r := rand.New(rand.NewPCG(seed, 0x6865616472))
	out := make([]Arrival, 0, int(rate*length.Seconds()*1.1)+16)
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		if at >= length {
			return out
		}
		out = append(out, Arrival{At: at, Via: r.IntN(via), Work: work.Draw(r)})
	}
}
