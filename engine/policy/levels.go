package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// levels draws a slot in proportion to a load that changes with every query, in constant
// expected time (Matias, Vitter, Ni 2003): slots lie in one row, ordered by the binary length
// of their load. A ticket below bound falls on a slot as if each load were the power of two
// above it, and stands with the probability load/power, at least one half.
//
// Changing a load by a step moves its slot over as many borders as its length changes, with
// one swap each. Places in the row depend on history, so they are state: place+1 in a word of
// each slot, 0 for those that are not in the row.
type levels struct {
	row   []uint32 // slots, heaviest level first
	load  []uint64 // by slot
	begin [65]uint32
	bound uint64 // sum over the row of 1<<level
	top   int    // no level above it has had a slot
}

const levelWord = 0 // of a slot's state words

// absent is no slot.
const absent = ^uint32(0)

func level(load uint64) int { return bits.Len64(load) }

// build lays the row out afresh, in slot order within a level, from the loads of the eligible
// slots, which are at least 1.
func (v *levels) build(s *engine.Set) {
	v.measure(s)
	var next [65]uint32
	copy(next[:], v.begin[:])
	for _, slot := range s.EligibleSlots() {
		l := level(v.load[slot])
		v.row[next[l]] = slot
		next[l]++
		s.Words(slot)[levelWord] = uint64(next[l])
	}
}

// measure finds the borders of the levels, and makes room.
func (v *levels) measure(s *engine.Set) {
	n := s.Eligible()
	v.row = slices.Grow(v.row[:0], n)[:n]
	v.bound, v.top = 0, 0
	clear(v.begin[:])
	for _, slot := range s.EligibleSlots() {
		l := level(v.load[slot])
		v.bound += 1 << l
		v.begin[l]++
		v.top = max(v.top, l)
	}
	at := uint32(0)
	for l := len(v.begin) - 1; l >= 0; l-- {
		v.begin[l], at = at, at+v.begin[l]
	}
}

// rebuild takes the row from the state words, and reports whether they are a row.
func (v *levels) rebuild(s *engine.Set) bool {
	v.measure(s)
	for i := range v.row {
		v.row[i] = absent
	}
	for _, slot := range s.EligibleSlots() {
		place := s.Words(slot)[levelWord] - 1
		if place >= uint64(len(v.row)) || v.row[place] != absent {
			return false
		}
		v.row[place] = slot
	}
	for i := 1; i < len(v.row); i++ {
		if level(v.load[v.row[i]]) > level(v.load[v.row[i-1]]) {
			return false
		}
	}
	return true
}

// change gives a slot of the row another load.
func (v *levels) change(s *engine.Set, slot uint32, load uint64) {
	from, to := level(v.load[slot]), level(load)
	v.load[slot] = load
	if from == to {
		return
	}
	v.bound += 1<<to - 1<<from
	v.top = max(v.top, to)
	place := uint32(s.Words(slot)[levelWord] - 1)
	for ; from > to; from-- {
		v.begin[from-1]--
		place = v.swap(s, place, v.begin[from-1])
	}
	for ; from < to; from++ {
		place = v.swap(s, place, v.begin[from])
		v.begin[from]++
	}
}

// swap exchanges two of the row and returns the second place.
func (v *levels) swap(s *engine.Set, i, j uint32) uint32 {
	a, b := v.row[i], v.row[j]
	v.row[i], v.row[j] = b, a
	s.Words(a)[levelWord], s.Words(b)[levelWord] = uint64(j)+1, uint64(i)+1
	return j
}

// at is the slot on which a ticket below bound falls, and whether it stands.
func (v *levels) at(ticket uint64) (slot uint32, stands bool) {
	from := uint32(0)
	for l := v.top; ; l-- {
		to := uint32(len(v.row))
		if l > 0 {
			to = v.begin[l-1]
		}
		if area := uint64(to-from) << l; ticket >= area {
			ticket -= area
			from = to
			continue
		}
		slot = v.row[from+uint32(ticket>>l)]
		return slot, ticket&(1<<l-1) < v.load[slot]
	}
}
