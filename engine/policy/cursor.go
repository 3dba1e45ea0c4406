package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// cursor is a place in a rotation: the slot after the replica that decided last. It starts at
// a slot of this machine's own, so that many clients do not march in step.
type cursor struct{ w *[cursorWords]uint64 }

const (
	cursorAt = iota
	cursorStarted
	cursorWords
)

func (c *cursor) bind(fixed []uint64) { c.w = (*[cursorWords]uint64)(fixed) }

// from is the slot at which the turn is.
func (c *cursor) from(s *engine.Set) uint32 {
	if c.w[cursorStarted] == 0 {
		c.w[cursorAt], c.w[cursorStarted] = uint64(s.Draw(uint32(s.Len()))), 1
	}
	return uint32(c.w[cursorAt])
}

func (c *cursor) pass(slot uint32) { c.w[cursorAt] = uint64(slot) + 1 }

// moved keeps the turn with the replica that decided last, or, where that has left, at its
// slot, which another has taken.
func (c *cursor) moved(remap []int32) {
	last := int(c.w[cursorAt]) - 1
	if last < 0 || last >= len(remap) {
		return
	}
	if to := remap[last]; to >= 0 {
		c.pass(uint32(to))
	} else {
		c.w[cursorAt] = uint64(last)
	}
}

func (c *cursor) valid() bool {
	return c.w[cursorAt] <= engine.MaxCandidates && c.w[cursorStarted] <= 1
}

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
