package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// Rendezvous decides for the open candidate whose score with the query's key is the highest
// (highest random weight: Thaler, Ravishankar 1998). Every client that knows the same replicas
// sends a key to the same one, and only the keys of a replica that comes or goes move.
//
// Cost O(n), one mix for each candidate. Different replicas have different scores; if a
// score were shared, the lower ID would win, so the order of the set never matters. A query
// without a key is placed as if by a fresh one. Deciding again with the winner tried gives
// the second in rank, and so on: the replicas for a hedge. It fails only as the engine does,
// when no candidate is open.
type Rendezvous struct {
	engine.Base
	seed   uint64
	hashes []uint64 // of the eligible candidates, in their order
}

// NewRendezvous makes the policy. The seed starts the draws for queries without a key; it
// moves no key, so that clients with different seeds agree.
func NewRendezvous(seed uint64) *Rendezvous { return &Rendezvous{seed: seed} }

// Name is "rendezvous".
func (*Rendezvous) Name() string { return "rendezvous" }

// Seed starts the draws for queries without a key.
func (p *Rendezvous) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *Rendezvous) Spec() string { return newLine("rendezvous").seed(p.seed).String() }

// Changed hashes the eligible candidates.
func (p *Rendezvous) Changed() {
	slots := p.Set.EligibleSlots()
	p.hashes = slices.Grow(p.hashes[:0], len(slots))[:len(slots)]
	for i, slot := range slots {
		p.hashes[i] = rank.Replica(uint64(p.Set.ID(slot)))
	}
}

// Decide takes the highest score in one pass.
func (p *Rendezvous) Decide(_ engine.Instant, key engine.Key) error {
	p.Set.Choose(p.first(spreadKey(p.Set, key)), engine.RegimeDirect)
	return nil
}

// spreadKey prepares a key for scores. A query without one gets a fresh draw, so that such
// queries spread over all replicas.
func spreadKey(s *engine.Set, key engine.Key) uint64 {
	if key == 0 {
		return s.Draw64(1<<64 - 1)
	}
	return rank.Key(uint64(key))
}

// first is the open slot with the highest score. That a candidate is tried is looked up only
// where it would lead, which is rare.
func (p *Rendezvous) first(key uint64) uint32 {
	best, at, tried := uint64(0), -1, p.Set.AnyTried()
	for i, h := range p.hashes {
		score := rank.Score(key, h)
		if score < best || (tried || score == best) && !p.leads(i, at, score == best) {
			continue
		}
		best, at = score, i
	}
	return p.Set.EligibleSlots()[at]
}

// leads settles whether the i-th eligible candidate, whose score is no lower, takes the lead from
// the one at a position, which may be -1.
//
//go:noinline
func (p *Rendezvous) leads(i, at int, equal bool) bool {
	s, slots := p.Set, p.Set.EligibleSlots()
	if !s.IsOpen(slots[i]) {
		return false
	}
	return at < 0 || !equal || s.ID(slots[i]) < s.ID(slots[at])
}

// Explain shows every open candidate by how far its score is from the highest possible.
func (p *Rendezvous) Explain(_ engine.Instant, key engine.Key, x *engine.Explanation) {
	s, k := p.Set, spreadKey(p.Set, key)
	x.Unit, x.TieBreak = "distance of the score from the highest possible", "and its ID is the lowest"
	for i, slot := range s.EligibleSlots() {
		if s.IsOpen(slot) {
			x.Weigh(s, slot, ^rank.Score(k, p.hashes[i]))
		}
	}
	x.Because = "has the highest score for " + keyText(key) + " of " + plural(len(x.Weighed), "open candidate")
}

func keyText(key engine.Key) string {
	if key == 0 {
		return "a fresh draw, as there is no key,"
	}
	return "this key"
}
