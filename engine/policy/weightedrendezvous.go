package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// WeightedRendezvous is rendezvous hashing in which each candidate owns keys in proportion to
// its weight: its score U, a fraction, gives it the time -ln(U)/weight, and the least time
// wins (Schindelhauer, Schomaker 2005). With equal weights it decides as [Rendezvous] does.
//
// Cost O(n), one mix and one multiplication for each candidate, and a logarithm for about as
// many as the natural logarithm of their number. Equal times go to the higher score, then to
// the lower ID. More weight takes keys from others and gives none away. A query without a key
// is placed as if by a fresh one; tried replicas are passed over. It fails only as the engine
// does, when no candidate is open.
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
	direct(p.Set, p.first(spread(p.Set, key)))
	return nil
}

func (p *WeightedRendezvous) first(key uint64) uint32 {
	best, bar := nobody(), openBar
	lanes := p.race.lanes
	for i := range lanes {
		l := &lanes[i]
		if score := rank.Score(key, l.hash); l.bound(score) <= bar {
			bar = p.race.meet(i, score, &best, bar)
		}
	}
	return best.slot
}

// meet lets the i-th eligible candidate, which passed the bar, meet the one that leads, and
// returns the bar from then on.
//
//go:noinline
func (r *race) meet(i int, score uint64, best *runner, bar uint64) uint64 {
	slot := r.set.EligibleSlots()[i]
	if !r.set.IsOpen(slot) {
		return bar
	}
	a := r.runner(slot, score)
	if !r.ahead(&a, best) {
		return bar
	}
	*best = a
	return r.lanes[i].bar(a.log)
}

// Explain shows every open candidate's time.
func (p *WeightedRendezvous) Explain(_ engine.Instant, key engine.Key, x *engine.Explanation) {
	k := spread(p.Set, key)
	x.Unit, x.TieBreak = unitRaceTime, "and its score is the highest"
	for i, slot := range p.Set.EligibleSlots() {
		if p.Set.IsOpen(slot) {
			a := p.race.runner(slot, rank.Score(k, p.race.lanes[i].hash))
			x.Weigh(p.Set, slot, p.race.time(&a))
		}
	}
	x.Because = "has the least race time for " + keyText(key) + " of " + plural(len(x.Weighed), "open candidate")
}
