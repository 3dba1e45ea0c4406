package probe

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// Keys tell RIFs below ToldRIF and latencies below ToldLatency (8.6 s) apart. Larger ones may
// tie, and ties are settled term by term.
const (
	ToldRIF     = 1<<24 - 2
	ToldLatency = 1<<33 - 1
)

// Rank maps an entry to its place in one order, less is better and all ones is nobody's place.
// Where two keys are equal, the lower RIF is better, then the lower latency, then the newer
// receipt, then the lower [engine.Set.Tie]: one strict total order, whose minimum decides and
// whose maximum is removed. Unequal keys must be right. At or below the threshold a key does
// not depend on RIF.
type Rank func(rif uint32, latency uint64, threshold uint32) uint64

// worst is the handle of the last in the order, over every entry, eligible or not.
func (p *Pool) worst() uint32 {
	if p.unknown > 0 || !p.packs() {
		return p.settle(p.used(), p.median(p.used()), true)
	}
	return p.order.at(p.Len() - 1)
}

// firstIn is the handle of the entry received first; the pool is not empty.
func (p *Pool) firstIn() uint32 {
	if p.packs() {
		return p.ages.at(0)
	}
	used := p.used()
	first := uint32(bits.TrailingZeros64(used))
	for used &= used - 1; used != 0; used &= used - 1 {
		if h := uint32(bits.TrailingZeros64(used)); p.rec(h)[recSeq] < p.rec(first)[recSeq] {
			first = h
		}
	}
	return first
}

// Offer is what the entries of open candidates add up to.
type Offer struct {
	Entries, Cold int
	Best          uint32          // handle of the best, if there are entries
	Median        engine.Duration // lower median of the known latencies, or engine.UnknownLatency
}

// Offered weighs the entries of open candidates alone. An entry without a latency ranks as
// the lower median of those on offer; with none known all count as equal.
func (p *Pool) Offered() (o Offer) {
	open := p.open()
	for among := open; among != 0; among &= among - 1 {
		o.Entries++
		if uint32(p.rec(uint32(bits.TrailingZeros64(among)))[recRIF]) <= p.threshold {
			o.Cold++
		}
	}
	median := p.median(open)
	o.Median = latencyOf(median)
	if open != 0 {
		o.Best = p.settle(open, median, false)
	}
	return o
}

// open is the set of handles whose replica this query may go to.
func (p *Pool) open() (open uint64) {
	for used := p.used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		if p.set.IsOpen(uint32(p.rec(h)[recSlot])) {
			open |= 1 << h
		}
	}
	return open
}

// median is the lower median of the known latencies among some entries.
func (p *Pool) median(among uint64) uint64 {
	var known [MaxPool]uint64
	n := 0
	for ; among != 0; among &= among - 1 {
		lat := p.rec(uint32(bits.TrailingZeros64(among)))[recLat]
		if lat == unknownLat {
			continue
		}
		at := n
		for ; at > 0 && known[at-1] > lat; at-- {
			known[at] = known[at-1]
		}
		known[at] = lat
		n++
	}
	if n == 0 {
		return unknownLat
	}
	return known[(n-1)/2]
}

// settle walks the order term by term among some entries, at least one, and returns the
// first of it or the last.
func (p *Pool) settle(among, median uint64, last bool) uint32 {
	found := uint32(bits.TrailingZeros64(among))
	for among &= among - 1; among != 0; among &= among - 1 {
		if h := uint32(bits.TrailingZeros64(among)); p.precedes(h, found, median) != last {
			found = h
		}
	}
	return found
}

func (p *Pool) precedes(i, j uint32, median uint64) bool {
	a, b := p.rec(i), p.rec(j)
	la, lb := a[recLat], b[recLat]
	if la == unknownLat {
		la = median
	}
	if lb == unknownLat {
		lb = median
	}
	ra, rb := uint32(a[recRIF]), uint32(b[recRIF])
	if ka, kb := p.rank(ra, la, p.threshold), p.rank(rb, lb, p.threshold); ka != kb {
		return ka < kb
	}
	if ra != rb {
		return ra < rb
	}
	if la != lb {
		return la < lb
	}
	if a[recAt] != b[recAt] {
		return engine.Instant(a[recAt]) > engine.Instant(b[recAt])
	}
	return p.set.Tie(uint32(a[recSlot])) < p.set.Tie(uint32(b[recSlot]))
}
