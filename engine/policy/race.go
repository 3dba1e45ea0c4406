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
// With x = 1-U a time is between x/weight and (x+x²)/weight, and for what leads in a large
// field the two hardly differ. So one multiplication tells that a candidate cannot lead any
// more, and logarithms are worked out only where two candidates come close.
type race struct {
	set   *engine.Set
	lanes []lane // of the eligible candidates, in their order
	least uint64 // of their weights
}

type lane struct {
	hash uint64
	pace uint64 // the least weight over this one's in parts of 1<<32, cut short
}

// runner is a candidate by its place among the eligible ones. It is small so that it stays in
// registers.
type runner struct {
	score uint64
	low   uint64 // its time is no less
	high  uint64 // its time is less: a candidate whose low is above it is behind
	at    int    // or -1: nobody
}

// noTime is above every low of a candidate.
const noTime = uint64(1<<64 - 1)

func nobody() runner { return runner{low: noTime, high: noTime, at: -1} }

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

// low is a time that a candidate with a score does not stay below. It and high are times of
// the least weight.
func (l *lane) low(score uint64) uint64 { return (^score >> 32) * l.pace }

// high is a time that it stays below, or noTime.
func (l *lane) high(score uint64) uint64 {
	x := ^score>>32 + 1
	if x > 1<<31 { // there x+x² may fall short
		return noTime
	}
	return (x + x*x>>32 + 1) * (l.pace + 1)
}

// closer is high from the logarithm of the score.
func (l *lane) closer(log uint64) uint64 {
	x := log>>26 + 1
	if x >= 1<<32 {
		return noTime
	}
	return x * (l.pace + 1)
}

// meet lets the i-th eligible candidate, if it is open, meet the one that leads.
//
//go:noinline
func (r *race) meet(i int, score uint64, best *runner) {
	if !r.set.IsOpen(r.set.EligibleSlots()[i]) {
		return
	}
	l := &r.lanes[i]
	a := runner{score, l.low(score), l.high(score), i}
	if a.high <= best.low || r.ahead(&a, best) {
		*best = a
	}
}

// ahead reports whether a leads b: by the times, compared exactly, then by the higher score,
// then by the lower ID. As the logarithm never grows with the score, runners of one weight
// are in the order of their scores. It brings their highs closer where it knows better.
func (r *race) ahead(a, b *runner) bool {
	aSlot, bSlot := r.set.EligibleSlots()[a.at], r.set.EligibleSlots()[b.at]
	aWeight, bWeight := uint64(r.set.Weight(aSlot)), uint64(r.set.Weight(bSlot))
	if aWeight != bWeight {
		aLog, bLog := fixed.NegLog(a.score), fixed.NegLog(b.score)
		a.high, b.high = min(a.high, r.lanes[a.at].closer(aLog)), min(b.high, r.lanes[b.at].closer(bLog))
		aHigh, aLow := bits.Mul64(aLog, bWeight)
		bHigh, bLow := bits.Mul64(bLog, aWeight)
		if aHigh != bHigh {
			return aHigh < bHigh
		}
		if aLow != bLow {
			return aLow < bLow
		}
	}
	if a.score != b.score {
		return a.score > b.score
	}
	return r.set.ID(aSlot) < r.set.ID(bSlot)
}

const unitRaceTime = "race time of the lightest weight, in parts of 2^58"

// time is a candidate's time for people, brought to the least weight.
func (r *race) time(slot uint32, score uint64) uint64 {
	high, low := bits.Mul64(fixed.NegLog(score), r.least)
	quotient, _ := bits.Div64(high, low, uint64(r.set.Weight(slot)))
	return quotient
}
