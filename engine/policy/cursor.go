package policy

import "github.com/headroom-lb/headroom/engine"

// cursor is a place in a rotation: the slot after the replica that decided last. It starts at
// a slot of this machine's own, so that many clients do not march in step.
type cursor struct {
	w    *[cursorWords]uint64
	next int // derived: the turn as a position among the eligible; unsettled until it is looked for
}

const (
	cursorAt = iota
	cursorStarted
	cursorWords
)

const unsettled = -1

func (c *cursor) bind(fixed []uint64) {
	c.w = (*[cursorWords]uint64)(fixed)
	c.next = unsettled
}

// changed follows a change of the set or of its statuses.
func (c *cursor) changed() { c.next = unsettled }

// turn is the position, among the eligible, of the first at or after the cursor.
func (c *cursor) turn(s *engine.Set) int {
	if c.next == unsettled {
		c.next = c.find(s)
	}
	return c.next
}

func (c *cursor) find(s *engine.Set) int {
	if c.w[cursorStarted] == 0 {
		c.w[cursorAt], c.w[cursorStarted] = uint64(s.Draw(uint32(s.Len()))), 1
	}
	return s.From(uint32(c.w[cursorAt]))
}

// pass takes the candidate at a position and hands the turn to the one after it.
func (c *cursor) pass(s *engine.Set, at int) uint32 {
	eligible := s.EligibleSlots()
	slot := eligible[at]
	if at++; at == len(eligible) {
		at = 0
	}
	c.next, c.w[cursorAt] = at, uint64(slot)+1
	return slot
}

// moved keeps the turn with the replica that decided last, or, where that has left, at its
// slot, which another has taken.
func (c *cursor) moved(remap []int32) {
	last := int(c.w[cursorAt]) - 1
	if last < 0 || last >= len(remap) {
		return
	}
	if to := remap[last]; to >= 0 {
		c.w[cursorAt] = uint64(to) + 1
	} else {
		c.w[cursorAt] = uint64(last)
	}
}

func (c *cursor) valid() bool {
	return c.w[cursorAt] < 1<<32 && c.w[cursorStarted] <= 1
}

// open is the position of the first open candidate at or after one, going round; there is one.
func open(s *engine.Set, at int) int {
	for eligible := s.EligibleSlots(); !s.IsOpen(eligible[at]); {
		if at++; at == len(eligible) {
			at = 0
		}
	}
	return at
}
