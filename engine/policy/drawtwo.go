package policy

import "github.com/headroom-lb/headroom/engine"

// drawTwo draws two distinct open candidates, every ordered pair as likely; where only one is
// open it is both.
func drawTwo(s *engine.Set) (first, second uint32) {
	slots := s.EligibleSlots()
	n := uint32(len(slots))
	if n < 2 || s.AnyTried() {
		return drawTwoOpen(s)
	}
	i, j := s.Draw(n), s.Draw(n-1)
	if j >= i {
		j++
	}
	return slots[i], slots[j]
}

// drawTwoOpen is the same where some are to be avoided.
func drawTwoOpen(s *engine.Set) (first, second uint32) {
	open := uint32(s.Open())
	if open == 1 {
		first = s.OpenAt(0)
		return first, first
	}
	i, j := s.Draw(open), s.Draw(open-1)
	if j >= i {
		j++
	}
	return s.OpenAt(i), s.OpenAt(j)
}
