package experiment

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// rule is a way to keep away from replicas that fail: Prequal's own, or one that is put around
// a Prequal without any, at the client. What did not win is not in the engine.
type rule struct {
	name   string
	spec   string
	around func(engine.Machine) engine.Machine // nil puts nothing around
}

const bare = "prequal aversion=off"

// rules are those that the sinkhole compares.
func rules() []rule {
	return []rule{
		{"off", bare, nil},
		{"shipped", "prequal", nil},
		{"ejection", bare, newEjection},
		{"penalty", bare, newPenalty},
		{"refusal", bare, newRefusal},
		{"former", bare, newFormer},
	}
}

// machine makes a client's machine under a rule.
func (r rule) machine(spec string, salt uint64) (engine.Machine, error) {
	m, err := sim.Native(spec, salt)
	if err != nil || r.around == nil {
		return m, err
	}
	return r.around(m), nil
}

// aside is what a rule outside the engine knows of the replicas, in the order of the candidates.
type aside[T any] struct {
	engine.Machine
	index map[engine.ID]int
	known []T
}

// SetCandidates starts anew: a world sets its candidates once.
func (a *aside[T]) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	if err := a.Machine.SetCandidates(now, cs); err != nil {
		return err
	}
	a.index, a.known = make(map[engine.ID]int, len(cs)), make([]T, len(cs))
	for i, c := range cs {
		a.index[c.ID] = i
	}
	return nil
}

// bad reports whether an outcome speaks against a replica.
func bad(o engine.Outcome) bool {
	return o == engine.OutcomeFailure || o == engine.OutcomeOverloaded
}

// failing is an average of a replica's failures, towards which each outcome takes a fifth of the
// way and of which half is forgotten in five seconds.
type failing struct {
	average uint64         // failureOne is all
	at      engine.Instant // until which it has faded
}

const (
	failureOne  = 1 << 30
	failureHalf = 5 * engine.Second
	fadeStep    = engine.Instant(failureHalf / 256)
)

// fadeBy is what is left after 1, 2, 4, … 128 steps, in parts of failureOne: integers, so that
// a run is the same on every machine.
var fadeBy = [8]uint64{1070838486, 1067942999, 1062175491, 1050733751,
	1028218693, 984625594, 902905651, 759250125}

func (f *failing) fade(now engine.Instant) {
	steps := max(0, int64((now-f.at)/fadeStep))
	f.at += engine.Instant(steps) * fadeStep
	if f.average == 0 {
		return
	}
	f.average >>= uint(min(steps/256, 63))
	for k, left := range fadeBy {
		if steps>>k&1 != 0 {
			f.average = f.average * left / failureOne
		}
	}
}

func (f *failing) learn(now engine.Instant, o engine.Outcome) {
	f.fade(now)
	switch {
	case bad(o):
		f.average += (failureOne - f.average) / 5
	case o == engine.OutcomeSuccess:
		f.average -= f.average / 5
	}
}
