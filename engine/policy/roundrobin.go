package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// RoundRobin decides for each open candidate in turn, in slot order.
//
// Cost O(1) for ready fleets, O(log n) to find the place after a change. The turn is
// anchored to the replica that served last, so reordering the set does not restart it; when
// that replica is gone the turn goes on from its slot. A seed other than zero starts the turn
// at a place of its own, so that many clients do not march in step.
type RoundRobin struct {
	engine.Base
	seed   uint64
	cursor *[2]uint64 // slot that decides next; 1 once a turn was taken
}

// NewRoundRobin makes a rotation; seed zero starts at slot 0.
func NewRoundRobin(seed uint64) *RoundRobin { return &RoundRobin{seed: seed} }

// Name is "round_robin".
func (*RoundRobin) Name() string { return "round_robin" }

// Seed places the start.
func (p *RoundRobin) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *RoundRobin) Spec() string { return newLine("round_robin").seed(p.seed).String() }

// Layout asks for the cursor.
func (*RoundRobin) Layout() engine.Layout { return engine.Layout{Fixed: 2} }

// Bind attaches the cursor.
func (p *RoundRobin) Bind(fixed []uint64, s *engine.Set, _ bool) {
	p.Set, p.cursor = s, (*[2]uint64)(fixed)
}

// Moved keeps the turn with the replica that served last.
func (p *RoundRobin) Moved(remap []int32) {
	if last := int(p.cursor[0]) - 1; p.cursor[1] == 1 && last >= 0 && last < len(remap) && remap[last] >= 0 {
		p.cursor[0] = uint64(remap[last]) + 1
	}
}

// Decide takes the first open candidate at or after the cursor.
func (p *RoundRobin) Decide(_ engine.Instant, _ engine.Key) error {
	if p.cursor[1] == 0 {
		p.cursor[1] = 1
		if p.seed != 0 {
			p.cursor[0] = uint64(p.Set.Draw(uint32(p.Set.Len())))
		}
	}
	slot := nextOpen(p.Set, uint32(p.cursor[0]))
	p.cursor[0] = uint64(slot) + 1
	direct(p.Set, slot)
	return nil
}

// Valid accepts any place up to the end of the set it was made for.
func (p *RoundRobin) Valid() bool { return p.cursor[0] <= engine.MaxCandidates && p.cursor[1] <= 1 }

// nextOpen is the first open slot at or after from, going round.
func nextOpen(s *engine.Set, from uint32) uint32 {
	if int(from) >= s.Len() {
		from = 0
	}
	if s.IsOpen(from) {
		return from
	}
	eligible := s.EligibleSlots()
	i, _ := slices.BinarySearch(eligible, from)
	for range len(eligible) {
		if i == len(eligible) {
			i = 0
		}
		if s.IsOpen(eligible[i]) {
			return eligible[i]
		}
		i++
	}
	return eligible[0]
}
