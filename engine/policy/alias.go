package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// alias draws a position in proportion to its weight in constant time, exactly: Vose's alias
// method over whole numbers. A position has n columns' worth of its weight; each column of
// height total is filled by one position up to its cut and by one other above it.
type alias struct {
	total uint64
	cut   []uint64
	other []uint32
	work  []uint32
}

// build takes the weights, of which at least one is not zero. Their sum times their number must
// stay below 1<<64.
func (a *alias) build(weights []uint32) {
	n := len(weights)
	a.cut, a.other = slices.Grow(a.cut[:0], n)[:n], slices.Grow(a.other[:0], n)[:n]
	a.work = slices.Grow(a.work[:0], n)[:n]
	a.total = 0
	for _, w := range weights {
		a.total += uint64(w)
	}
	// work holds the columns that want filling from the front, those with too much from the back.
	small, large := 0, n
	for i, w := range weights {
		a.cut[i], a.other[i] = uint64(w)*uint64(n), uint32(i)
		if a.cut[i] < a.total {
			a.work[small] = uint32(i)
			small++
		} else {
			large--
			a.work[large] = uint32(i)
		}
	}
	for small > 0 && large < n {
		small--
		s, l := a.work[small], a.work[large]
		a.other[s] = l
		a.cut[l] -= a.total - a.cut[s]
		if a.cut[l] < a.total {
			large++
			a.work[small] = l
			small++
		}
	}
}

// draw returns a position.
func (a *alias) draw(s *engine.Set) uint32 {
	k := s.Draw(uint32(len(a.cut)))
	if s.Draw64(a.total) < a.cut[k] {
		return k
	}
	return a.other[k]
}
