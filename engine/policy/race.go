package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// race ranks the eligible candidates for a key: each runs for -ln(U)/weight, where U is its
// rendezvous score as a fraction, and the least time leads.
//
// A time is at least (1-U)/weight, and near the head of the field hardly more. So one
// multiplication tells that a candidate cannot lead any more, and the logarithm is worked out
// only for the few that may.
type race struct {
	set   *engine.Set
	lanes []lane // of the eligible candidates, in their order
	least uint64 // of their weights
}

type lane struct {
	hash uint64
	pace uint64 // the least weight over this one's in parts of 1<<32, cut short
}

// runner is a candidate whose time is known.
type runner struct {
	log    uint64 // -ln(U) in parts of 1<<58
	score  uint64
	weight uint64
	slot   uint32
}

// nobody is slower than every candidate.
func nobody() runner { return runner{log: 1<<64 - 1, weight: 1} }

// openBar is the bar that every candidate passes.
const openBar = uint64(1<<64 - 1)

func (r *race) build(s *engine.Set) {
	slots := s.EligibleSlots()
	r.set, r.least = s, 1<<32
	for _, slot := range slots {
		r.least = min(r.least, uint64(s.Weight(slot)))
	}
	r.lanes = slices.Grow(r.lanes[:0], len(slots))[:len(slots)]
	for i, slot := range slots {
		r.lanes[i] = lane{rank.Replica(uint64(s.ID(slot))), r.least << 32 / uint64(s.Weight(slot))}
	}
}

// bound is a time that a candidate with a score does not stay under, for comparison with a bar.
func (l *lane) bound(score uint64) uint64 { return (^score >> 32) * l.pace }

// bar is a time that no candidate ahead of a runner in this lane is bound to exceed.
func (l *lane) bar(log uint64) uint64 {
	up := log>>26 + 1
	if up >= 1<<32 {
		return openBar
	}
	return up * (l.pace + 1)
}

func (r *race) runner(slot uint32, score uint64) runner {
	return runner{log: fixed.NegLog(score), score: score, weight: uint64(r.set.Weight(slot)), slot: slot}
}

// ahead reports whether a leads b: by the times, compared exactly, then by the higher score,
// then by the lower ID. As the logarithm never grows with the score, runners of one weight
// are in the order of their scores.
func (r *race) ahead(a, b *runner) bool {
	aHigh, aLow := bits.Mul64(a.log, b.weight)
	bHigh, bLow := bits.Mul64(b.log, a.weight)
	switch {
	case aHigh != bHigh:
		return aHigh < bHigh
	case aLow != bLow:
		return aLow < bLow
	case a.score != b.score:
		return a.score > b.score
	}
	return r.set.ID(a.slot) < r.set.ID(b.slot)
}

const unitRaceTime = "race time of the lightest weight, in parts of 2^58"

// time is a runner's time for people, brought to the least weight.
func (r *race) time(a *runner) uint64 {
	high, low := bits.Mul64(a.log, r.least)
	quotient, _ := bits.Div64(high, low, a.weight)
	return quotient
}
