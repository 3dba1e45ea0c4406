package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/wide"
	"github.com/headroom-lb/headroom/engine/probe"
)

// shares divides all queries among groups, exactly. The shares have the groups' weights for
// denominators; over one denominator they are whole numbers of several words, the tickets. A draw
// looks at the first 32 binary places of a ticket, and needs the rest only where these do not
// settle it, which is about once in four billion.
type shares struct {
	cut     []uint64 // per group, the places of the first ticket beyond it and those before it
	rest    []uint64 // and what remains of it, in units of tickets over 1<<32
	tickets []uint64 // how many there are
	wide    []uint64 // storage
}

const cells = 1 << 32

// build shares the queries out, and reports whether the groups are short of the load:
//
//	effective = min(1, overprovision * eligible / members)
//
// While the effective availabilities come to 1 or more, the preferred groups are filled first;
// otherwise each has its part of the sum. At least one group has an eligible member.
func (h *shares) build(all []group, overprovision uint64) (short bool) {
	bitsWanted := 1 + bits.Len(uint(len(all)))
	for i := range all {
		if n, d := effective(&all[i], overprovision); n != 0 && n != d {
			bitsWanted += bits.Len64(d)
		}
	}
	words := bitsWanted/64 + 1
	size := words * (len(all) + 3)
	h.wide = slices.Grow(h.wide[:0], size)[:size]
	next := h.wide
	take := func(n int) (x []uint64) {
		x, next = next[:n:n], next[n:]
		clear(x)
		return x
	}
	whole, own, sum := take(words), take(words), take(words)
	h.rest = take(words * len(all))
	h.cut = slices.Grow(h.cut[:0], len(all))[:len(all)]
	whole[0] = 1
	for i := range all {
		if n, d := effective(&all[i], overprovision); n != 0 {
			wide.Mul(whole, d)
		}
	}
	short = true
	for i := range all {
		if n, d := effective(&all[i], overprovision); n != 0 {
			copy(own, whole)
			wide.Div(own, d)
			wide.Mul(own, n)
			wide.Add(sum, own)
		}
		if !wide.Less(sum, whole) {
			copy(sum, whole)
			short = false
		}
		copy(h.rest[i*words:], sum)
	}
	h.tickets = sum
	for i := range all {
		r := h.rest[i*words:][:words]
		if wide.Less(r, sum) {
			h.cut[i] = uint64(wide.Split(r, sum))
		} else {
			h.cut[i] = cells
			clear(r)
		}
	}
	return short
}

// effective is the part of all load that a group can take, in lowest terms. Its denominator is 1
// if that is nothing or everything.
func effective(at *group, overprovision uint64) (n, d uint64) {
	d = at.members * probe.Unit
	hi, n := bits.Mul64(at.eligible, overprovision)
	if hi != 0 || n >= d {
		return 1, 1
	}
	common := gcd(n, d)
	return n / common, d / common
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// draw returns a group.
func (h *shares) draw(s *engine.Set) int {
	u, i := s.Draw64(cells), 0
	for u > h.cut[i] { // the last one is beyond all
		i++
	}
	if u == h.cut[i] {
		return h.settle(s, i)
	}
	return i
}

// settle draws the rest of a ticket whose first places are those of group i's cut.
func (h *shares) settle(s *engine.Set, i int) int {
	words := len(h.tickets)
	x := h.wide[words : 2*words] // free since build
	top := wide.Len(h.tickets)
	for {
		for k := range x {
			x[k] = s.Draw64(cells)<<32 | s.Draw64(cells)
			if over := 64*(k+1) - top; over > 0 {
				x[k] = x[k] << min(over, 64) >> min(over, 64)
			}
		}
		if wide.Less(x, h.tickets) {
			break
		}
	}
	u := h.cut[i]
	for u == h.cut[i] && !wide.Less(x, h.rest[i*words:][:words]) {
		i++
	}
	return i
}

// of is a group's share in parts per 10,000, rounded, and whether it has any.
func (h *shares) of(i int) (parts uint64, some bool) {
	before := uint64(0)
	words := len(h.tickets)
	rest := make([]uint64, words)
	if i > 0 {
		before = h.cut[i-1]
		copy(rest, h.rest[(i-1)*words:])
	}
	some = before != h.cut[i] || !slices.Equal(rest, h.rest[i*words:][:words])
	return ((h.cut[i]-before)*probe.Unit + cells/2) / cells, some
}
