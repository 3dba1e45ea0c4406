package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// WeightedRendezvous is rendezvous hashing in which each candidate owns keys in proportion to
// its weight: its score U, a fraction, gives it the time -ln(U)/weight, and the least time
// wins (Schindelhauer, Schomaker 2005). With equal weights it decides as [Rendezvous] does.
//
// Cost O(n), one mix and one multiplication for each candidate, and logarithms where two of
// different weight come close. Equal times go to the higher score, then to the lower ID. More
// weight takes keys from others and gives none away. A query without a key is placed as if by
// a fresh one; tried replicas are passed over. It fails only as the engine does, when no
// candidate is open.
type WeightedRendezvous struct {
	engine.Base
	seed uint64
	race race
}

// NewWeightedRendezvous makes the policy; the seed is as that of [NewRendezvous].
func NewWeightedRendezvous(seed uint64) *WeightedRendezvous { return &WeightedRendezvous{seed: seed} }

// Name is "weighted_rendezvous".
func (*WeightedRendezvous) Name() string { return "weighted_rendezvous" }

// Seed starts the draws for queries without a key.
func (p *WeightedRendezvous) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *WeightedRendezvous) Spec() string {
	return newLine("weighted_rendezvous").seed(p.seed).String()
}

// Changed hashes the eligible candidates.
func (p *WeightedRendezvous) Changed() { p.race.build(p.Set) }

// Decide takes the least time in one pass.
func (p *WeightedRendezvous) Decide(_ engine.Instant, key engine.Key) error {
	p.Set.Choose(p.first(spreadKey(p.Set, key)), engine.RegimeDirect)
	return nil
}

// first is the open slot with the least time. Most candidates are behind the leader or ahead of
// it by their bounds alone; the others meet it.
func (p *WeightedRendezvous) first(key uint64) uint32 {
	best, tried := nobody(), p.Set.AnyTried()
	lanes := p.race.lanes
	for i := range lanes {
		l := &lanes[i]
		score := rank.Score(key, l.hash)
		low := l.low(score)
		if low > best.high {
			continue
		}
		if high := l.high(score); high <= best.low && !tried {
			best = runner{score, low, high, i}
			continue
		}
		p.race.meet(i, score, &best)
	}
	return p.Set.EligibleSlots()[best.at]
}

// Explain shows every open candidate's time.
func (p *WeightedRendezvous) Explain(_ engine.Instant, key engine.Key, x *engine.Explanation) {
	k := spreadKey(p.Set, key)
	x.Unit, x.TieBreak = unitRaceTime, "and its score is the highest"
	for i, slot := range p.Set.EligibleSlots() {
		if p.Set.IsOpen(slot) {
			x.Weigh(p.Set, slot, p.race.time(slot, rank.Score(k, p.race.lanes[i].hash)))
		}
	}
	x.Because = "has the least race time for " + keyText(key) + " of " + plural(len(x.Weighed), "open candidate")
}
