package policy

import (
	"cmp"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// Numbers that keep the uses of one hash apart. Frozen: they settle which replica owns which key.
const (
	maglevOffsetDomain = 0x6d61676c65766f66
	maglevSkipDomain   = 0x6d61676c6576736b
	maglevOrderDomain  = 0x6d61676c65766f72
	maglevKeyDomain    = 0x6d61676c65766b65
	maglevStep         = 0x9e3779b97f4a7c15
)

// maglevHashes are a member's hashes for its offset, its skip and its place in the order of turns.
func maglevHashes(id engine.ID) (offset, skip, order uint64) {
	return hash.Mix(uint64(id) ^ maglevOffsetDomain), hash.Mix(uint64(id) ^ maglevSkipDomain), hash.Mix(uint64(id) ^ maglevOrderDomain)
}

// maglevTable gives each entry to an eligible candidate. Members take turns; at its turn each
// takes the next entry of its own permutation that is free.
type maglevTable struct {
	size     uint32
	weighted bool
	entries  []uint32 // a claim each: when, and the member's number
	shift    uint32   // bits of a number
	slots    []uint32 // of members, by number
	members  []maglevMember
	held     []bool // by slot: is a member already
	hashes   func(id engine.ID) (offset, skip, order uint64)
	filler
	repairer
}

// maglevMember is kept, in order of turn, as long as its candidate is eligible.
type maglevMember struct {
	id           engine.ID
	order        uint64
	offset, skip uint32
	weight       uint32
	number       uint32 // what entries know it by
	back         uint64 // see backStep; 0 before it is needed
}

// update follows the set. A candidate that only changes its slot changes no entry.
func (t *maglevTable) update(s *engine.Set) {
	t.held = slices.Grow(t.held[:0], s.Len())[:s.Len()]
	clear(t.held)
	t.gone = t.gone[:0]
	reweighed, n := false, 0
	for _, m := range t.members {
		slot, ok := s.Slot(m.id)
		if !ok || !s.IsEligible(slot) {
			t.gone = append(t.gone, m)
			continue
		}
		t.held[slot] = true
		if w := t.weight(s, slot); m.weight != w {
			m.weight, reweighed = w, true
		}
		t.members[n] = m
		n++
	}
	t.members = t.members[:n]
	for _, slot := range s.EligibleSlots() {
		if !t.held[slot] {
			t.members = append(t.members, t.member(s.ID(slot), t.weight(s, slot)))
		}
	}
	come := len(t.members) - n
	if come > 0 {
		slices.SortFunc(t.members, func(a, b maglevMember) int {
			return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id, b.id))
		})
	}
	if reweighed || len(t.gone)+come > 0 && !t.repair(come) {
		t.fill()
	}
	t.slots = slices.Grow(t.slots[:0], 1<<t.shift)[:1<<t.shift]
	for _, m := range t.members {
		t.slots[m.number], _ = s.Slot(m.id)
	}
}

func (t *maglevTable) weight(s *engine.Set, slot uint32) uint32 {
	if t.weighted {
		return s.Weight(slot)
	}
	return 1
}

func (t *maglevTable) member(id engine.ID, weight uint32) maglevMember {
	offset, skip, order := t.hashes(id)
	return maglevMember{
		id: id, order: order, weight: weight, number: unnumbered,
		offset: uint32(offset % uint64(t.size)), skip: uint32(skip%uint64(t.size-1)) + 1,
	}
}

// at is the slot of an entry's owner.
func (t *maglevTable) at(entry uint32) uint32 {
	return t.slots[^t.entries[entry]&(1<<t.shift-1)]
}
