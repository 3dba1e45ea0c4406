package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// A point is one word: its position on the ring above, its owner's slot below. 44 bits tell a
// million points apart as well as 64 do, and a point costs 8 bytes.
const (
	ringSlotBits = 20
	ringSlotMask = 1<<ringSlotBits - 1
)

// Numbers that keep the uses of one hash apart. Frozen: they settle which replica owns which key.
const (
	ringMemberDomain = 0x72696e672e6d656d
	ringKeyDomain    = 0x72696e672e6b6579
	ringStep         = 0x9e3779b97f4a7c15
)

// patchShare is how small a part of the ring newcomers must be for a merge to beat a rebuild.
const patchShare = 8

// ring is the points of the eligible candidates in order of position, then of identity, under
// an index over the top bits. It is a function of identities and weights alone: a change
// filters and merges, and what results is what a rebuild would give.
type ring struct {
	points []uint64 // and one more, past the end, that leads back to the first
	starts []uint32 // first point of each of a power of two of equal arcs
	shift  uint     // from a position to its arc
	owners []ringOwner
	next   []ringOwner // the owners to be; then the old ones' room
	keep   []uint32    // old slot to new slot, or absent
	held   []bool      // by new slot: its points are on the ring already
	fresh  []uint64
	emit   func(dst []uint64, id engine.ID, n int) []uint64
}

type ringOwner struct {
	id     engine.ID
	slot   uint32
	weight uint32
}

// ringPositions appends the first n positions of a member. A member of more weight has the
// positions of a lighter one and some more.
func ringPositions(dst []uint64, id engine.ID, n int) []uint64 {
	x := hash.Mix(uint64(id) ^ ringMemberDomain)
	for range n {
		x += ringStep
		dst = append(dst, hash.Mix(x))
	}
	return dst
}

// ringKey is where a key falls.
func ringKey(key engine.Key) uint64 { return hash.Mix(uint64(key) ^ ringKeyDomain) }

// len is the number of points.
func (r *ring) len() int { return max(0, len(r.points)-1) }

// find is the first point at or after a position; it may be the one past the end.
func (r *ring) find(position uint64) uint32 {
	i := r.starts[position>>(r.shift&63)]
	for position &^= ringSlotMask; r.points[i] < position; {
		i++
	}
	return i
}

// update follows the set: scale is the points per unit of weight.
func (r *ring) update(s *engine.Set, scale uint32) {
	kept, dropped, moved := r.match(s, scale)
	added := 0
	r.next = r.next[:0]
	for _, slot := range s.EligibleSlots() {
		o := ringOwner{s.ID(slot), slot, s.Weight(slot)}
		r.next = append(r.next, o)
		if !r.held[slot] {
			added += int(o.weight * scale)
		}
	}
	r.owners, r.next = r.next, r.owners
	switch {
	case added*patchShare > kept:
		r.rebuild(s, scale, kept+added)
	case added+dropped > 0 || moved:
		r.filter(kept)
		r.merge(s, scale, kept, added)
		r.index(kept + added)
	}
}

// match finds out which owners stay as they are, and counts points.
func (r *ring) match(s *engine.Set, scale uint32) (kept, dropped int, moved bool) {
	r.held = slices.Grow(r.held[:0], s.Len())[:s.Len()]
	clear(r.held)
	for _, o := range r.owners {
		for int(o.slot) >= len(r.keep) {
			r.keep = append(r.keep, absent)
		}
		n := int(o.weight * scale)
		slot, ok := s.Slot(o.id)
		if !ok || !s.IsEligible(slot) || s.Weight(slot) != o.weight {
			r.keep[o.slot] = absent
			dropped += n
			continue
		}
		r.keep[o.slot] = slot
		r.held[slot] = true
		moved = moved || slot != o.slot
		kept += n
	}
	return kept, dropped, moved
}

// filter takes out the points of those who left and gives the others their new slots.
func (r *ring) filter(kept int) {
	k := 0
	for _, p := range r.points[:r.len()] {
		if slot := r.keep[p&ringSlotMask]; slot != absent {
			r.points[k] = p&^ringSlotMask | uint64(slot)
			k++
		}
	}
	r.points = r.points[:kept]
}

// merge sorts the newcomers' points and puts them in from the end.
func (r *ring) merge(s *engine.Set, scale uint32, kept, added int) {
	r.fresh = r.fresh[:0]
	for _, o := range r.owners {
		if !r.held[o.slot] {
			r.fresh = r.own(r.fresh, o, scale)
		}
	}
	slices.Sort(r.fresh)
	settle(s, r.fresh)
	p := slices.Grow(r.points, added+1)[:kept+added]
	i, j := kept, added
	for j > 0 {
		f := r.fresh[j-1]
		if i > 0 && before(s, f, p[i-1]) {
			i--
			p[i+j] = p[i]
		} else {
			j--
			p[i+j] = f
		}
	}
	r.points = p
}

// own appends a member's points.
func (r *ring) own(dst []uint64, o ringOwner, scale uint32) []uint64 {
	from := len(dst)
	dst = r.emit(dst, o.id, int(o.weight*scale))
	for i := from; i < len(dst); i++ {
		dst[i] = dst[i]&^ringSlotMask | uint64(o.slot)
	}
	return dst
}

// rebuild sorts everything in linear time: hashes spread evenly over the arcs. Each member's
// points are made twice, to count and to place, which costs less than keeping them.
func (r *ring) rebuild(s *engine.Set, scale uint32, n int) {
	r.arcs(n)
	r.points = slices.Grow(r.points[:0], n+1)[:n]
	for _, o := range r.owners {
		r.fresh = r.own(r.fresh[:0], o, scale)
		for _, p := range r.fresh {
			r.starts[p>>(r.shift&63)]++
		}
	}
	end := uint32(0)
	for i, n := range r.starts {
		end += n
		r.starts[i] = end
	}
	for _, o := range r.owners {
		r.fresh = r.own(r.fresh[:0], o, scale)
		for _, p := range r.fresh {
			at := &r.starts[p>>(r.shift&63)]
			*at--
			r.points[*at] = p
		}
	}
	settle(s, r.points)
	r.close()
}

// index finds the first point of each arc. An arc without points has that of the next.
func (r *ring) index(n int) {
	r.arcs(n)
	for i := n - 1; i >= 0; i-- {
		r.starts[r.points[i]>>(r.shift&63)] = uint32(i) + 1
	}
	next := uint32(n) + 1
	for i := len(r.starts) - 1; i >= 0; i-- {
		if at := r.starts[i]; at != 0 {
			next = at
		}
		r.starts[i] = next - 1
	}
	r.close()
}

// arcs clears an index for n points: one or two to an arc.
func (r *ring) arcs(n int) {
	width := max(1, bits.Len32(uint32(n))-1)
	r.shift = uint(64 - width)
	r.starts = slices.Grow(r.starts[:0], 1<<width)[:1<<width]
	clear(r.starts)
}

// close appends the point past the end: beyond every position, owned by the first's owner.
func (r *ring) close() {
	if len(r.points) > 0 {
		r.points = append(r.points, ^uint64(ringSlotMask)|r.points[0]&ringSlotMask)
	}
}

// before orders points by position and then, which is rare, by identity.
func before(s *engine.Set, a, b uint64) bool {
	if a^b > ringSlotMask {
		return a < b
	}
	return s.ID(uint32(a&ringSlotMask)) < s.ID(uint32(b&ringSlotMask))
}

// settle finishes an order that is nearly right.
func settle(s *engine.Set, points []uint64) {
	for i := 1; i < len(points); i++ {
		p, j := points[i], i
		for ; j > 0 && before(s, p, points[j-1]); j-- {
			points[j] = points[j-1]
		}
		points[j] = p
	}
}
