package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// alias draws a position in proportion to its weight in constant time, exactly: Vose's alias
// method over whole numbers. A position has n columns' worth of its weight; each column of
// height total is filled by one position up to its cut and by one other above it.
type alias struct {
	total   uint64
	area    uint64 // of all columns
	columns []aliasColumn
	work    []uint32
}

type aliasColumn struct {
	cut   uint64
	other uint32
}

// build takes the weights, of which at least one is not zero if there is to be a draw. Their
// sum times their number must stay below 1<<64.
func (a *alias) build(weights []uint32) { fillAlias(a, weights) }

func fillAlias[W uint32 | uint64](a *alias, weights []W) {
	n := len(weights)
	a.columns, a.work = slices.Grow(a.columns[:0], n)[:n], slices.Grow(a.work[:0], n)[:n]
	a.total = 0
	for _, w := range weights {
		a.total += uint64(w)
	}
	a.area = a.total * uint64(n)
	// work holds the columns that want filling from the front, those with too much from the back.
	small, large := 0, n
	for i, w := range weights {
		a.columns[i] = aliasColumn{uint64(w) * uint64(n), uint32(i)}
		if a.columns[i].cut < a.total {
			a.work[small] = uint32(i)
			small++
		} else {
			large--
			a.work[large] = uint32(i)
		}
	}
	for small > 0 && large < n {
		small--
		s, l := &a.columns[a.work[small]], a.work[large]
		s.other = l
		rich := &a.columns[l]
		rich.cut -= a.total - s.cut
		if rich.cut < a.total {
			large++
			a.work[small] = l
			small++
		}
	}
}

// draw returns a position. One uniform number below area has the column as its quotient by
// total and the height as its remainder; as it is made by multiplying (Lemire 2019), both are
// had without dividing.
func (a *alias) draw(s *engine.Set) uint32 {
	column, low := bits.Mul64(s.Bits(), uint64(len(a.columns)))
	height, low := bits.Mul64(low, a.total)
	if low < a.area {
		column, height = a.again(s, column, height, low)
	}
	k := uint32(column)
	c := a.columns[column]
	if height >= c.cut { // a conditional move: a jump would go wrong every other time
		k = c.other
	}
	return k
}

// rejections bounds the draws that a retry may throw away: drawing again could take for ever.
const rejections = 8

// drawOpen returns one of the slots that the table is over, by weight among those that this
// query may go to; there is one. After some draws the open ones are walked, which is as exact.
func (a *alias) drawOpen(s *engine.Set, slots []uint32) uint32 {
	for range rejections {
		if slot := slots[a.draw(s)]; s.IsOpen(slot) {
			return slot
		}
	}
	ticket := s.Draw64(openWeight(s, slots))
	for i := 0; ; i++ {
		slot := slots[i]
		if !s.IsOpen(slot) {
			continue
		}
		w := uint64(s.Weight(slot))
		if ticket < w {
			return slot
		}
		ticket -= w
	}
}

// openWeight is the weight of those slots that this query may go to.
func openWeight(s *engine.Set, slots []uint32) (total uint64) {
	for _, slot := range slots {
		if s.IsOpen(slot) {
			total += uint64(s.Weight(slot))
		}
	}
	return total
}

// again draws anew while the number is one of the few that would favour small results.
func (a *alias) again(s *engine.Set, column, height, low uint64) (uint64, uint64) {
	for floor := -a.area % a.area; low < floor; {
		column, low = bits.Mul64(s.Bits(), uint64(len(a.columns)))
		height, low = bits.Mul64(low, a.total)
	}
	return column, height
}
