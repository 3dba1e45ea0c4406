package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// WeightedRandom draws an open candidate with a chance that is exactly its weight's part of the
// open weight.
//
// Cost O(1), one draw, whatever the fleet; a change of the set or of a status rebuilds the
// table in O(n). No ties. A fleet whose weights times its size pass 64 bits is refused with
// [engine.ErrOverflow], which takes more than 65,536 candidates; else it fails only as the
// engine does, when no candidate is open.
type WeightedRandom struct {
	engine.Base
	seed    uint64
	table   alias // over the eligible slots
	weights []uint32
}

// NewWeightedRandom makes the policy.
func NewWeightedRandom(seed uint64) *WeightedRandom { return &WeightedRandom{seed: seed} }

// Name is "weighted_random".
func (*WeightedRandom) Name() string { return "weighted_random" }

// Seed starts its draws.
func (p *WeightedRandom) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *WeightedRandom) Spec() string { return newLine("weighted_random").seed(p.seed).String() }

// Admit refuses a fleet for which the table's whole numbers would not fit, whichever of its
// candidates are eligible.
func (*WeightedRandom) Admit(cs []engine.Candidate) error {
	total, high := totalWeight(cs), uint64(0)
	if total < 1<<63 {
		high, _ = bits.Mul64(total, uint64(len(cs)))
	}
	if total >= 1<<63 || high != 0 {
		return &engine.DetailError{Err: engine.ErrOverflow, Detail: "weights of " + utoa(total) + " in all, times " + plural(len(cs), "candidate") + ", pass 64 bits"}
	}
	return nil
}

// totalWeight is the sum of all weights, unset ones counting as 1.
func totalWeight(cs []engine.Candidate) (total uint64) {
	for _, c := range cs {
		total += uint64(max(1, c.Weight))
	}
	return total
}

// Changed builds the table anew.
func (p *WeightedRandom) Changed() {
	p.weights = p.weights[:0]
	for _, slot := range p.Set.EligibleSlots() {
		p.weights = append(p.weights, p.Set.Weight(slot))
	}
	p.table.build(p.weights)
}

// Decide draws once from the table, or again while the draw is one to avoid.
func (p *WeightedRandom) Decide(_ engine.Instant, _ engine.Key) error {
	s := p.Set
	if s.AnyTried() {
		s.Choose(p.table.drawOpen(s, s.EligibleSlots()), engine.RegimeDirect)
		return nil
	}
	s.Choose(s.EligibleSlots()[p.table.draw(s)], engine.RegimeDirect)
	return nil
}

// Explain names the share of the drawn one. Nothing is compared.
func (p *WeightedRandom) Explain(now engine.Instant, key engine.Key, x *engine.Explanation) {
	_ = p.Decide(now, key)
	w, total := p.Set.Weight(p.Set.Out.Index), openWeight(p.Set, p.Set.EligibleSlots())
	x.Because = "was drawn with weight " + itoa(int(w)) + " of the " + utoa(total) + " of " + plural(p.Set.Open(), "open candidate")
	x.Notes = append(x.Notes, "its share is "+percent(uint64(w), total))
}
