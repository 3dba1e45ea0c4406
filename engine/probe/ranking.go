package probe

import "github.com/headroom-lb/headroom/engine"

// firstIn is the position of the entry received first; the pool is not empty.
func (p *Pool) firstIn() int { return least(p.age) }

// Best is the position of the best entry and Worst that of the worst, in the one order of
// the pool's Rank. They read every entry; the pool is not empty and no latency is unknown.
func (p *Pool) Best() int { return least(p.key) }

// Worst is Best of the reversed order.
func (p *Pool) Worst() int {
	if p.unknown > 0 {
		return p.extreme(p.medianOf(func(uint32) bool { return true }), func(uint32) bool { return true }, true)
	}
	return most(p.key)
}

// RemoveWorst takes out the entry that would decide last.
func (p *Pool) RemoveWorst() bool {
	if p.Len() == 0 {
		return false
	}
	p.remove(p.Worst())
	return true
}

// least returns the index of the smallest key; of equal ones the first. The low six bits of
// keys are zero and blank pads lose. Branch-free, eight at a time: a guest pays for jumps.
func least(keys []uint64) int {
	best := blank
	for i := uint64(0); len(keys) >= 8; i += 8 {
		k := (*[8]uint64)(keys)
		a := min(k[0]|i, k[1]|(i+1))
		b := min(k[2]|(i+2), k[3]|(i+3))
		c := min(k[4]|(i+4), k[5]|(i+5))
		d := min(k[6]|(i+6), k[7]|(i+7))
		best = min(best, min(min(a, b), min(c, d)))
		keys = keys[8:]
	}
	return int(best & (MaxPool - 1))
}

// most returns the index of the largest key; of equal ones the last. Adding one turns a
// blank into zero, which loses.
func most(keys []uint64) int {
	worst := uint64(0)
	for i := uint64(0); len(keys) >= 8; i += 8 {
		k := (*[8]uint64)(keys)
		a := max((k[0]|i)+1, (k[1]|(i+1))+1)
		b := max((k[2]|(i+2))+1, (k[3]|(i+3))+1)
		c := max((k[4]|(i+4))+1, (k[5]|(i+5))+1)
		d := max((k[6]|(i+6))+1, (k[7]|(i+7))+1)
		worst = max(worst, max(max(a, b), max(c, d)))
		keys = keys[8:]
	}
	return int((worst - 1) & (MaxPool - 1))
}

// Plain reports whether every entry is on offer with a known latency, so that Best decides.
func (p *Pool) Plain() bool { return p.ineligible == 0 && p.unknown == 0 && !p.set.AnyTried() }

// Cold is the number of entries at or below the threshold, eligible or not.
func (p *Pool) Cold() int { return p.cold }

// Offer is what the entries of open candidates add up to.
type Offer struct {
	Entries, Cold int
	Best          int             // position of the best, or -1
	Median        engine.Duration // lower median of the known latencies, or engine.UnknownLatency
}

// Offered weighs the entries of open candidates alone. An entry without a latency ranks as
// the lower median of those on offer; with none known all count as equal.
func (p *Pool) Offered() Offer {
	o := Offer{Best: -1}
	open := p.set.IsOpen
	for i := range p.Len() {
		if open(p.slotAt(i)) {
			o.Entries++
			if uint32(p.order[i]>>32) <= p.threshold {
				o.Cold++
			}
		}
	}
	median := p.medianOf(open)
	o.Median = latencyOf(median)
	if o.Entries > 0 {
		o.Best = p.extreme(median, open, false)
	}
	return o
}

// medianOf is the lower median of the known latencies among some entries.
func (p *Pool) medianOf(in func(slot uint32) bool) uint64 {
	var known [MaxPool]uint64
	n := 0
	for i := range p.Len() {
		r := p.at(i)
		if r[recLat] == unknownLat || !in(uint32(r[recSlot])) {
			continue
		}
		at := n
		for ; at > 0 && known[at-1] > r[recLat]; at-- {
			known[at] = known[at-1]
		}
		known[at] = r[recLat]
		n++
	}
	if n == 0 {
		return unknownLat
	}
	return known[(n-1)/2]
}

// extreme walks the order term by term. It serves the rare cases, where positions alone do
// not settle ties because some latencies are stand-ins.
func (p *Pool) extreme(median uint64, in func(slot uint32) bool, last bool) int {
	found := -1
	for i := range p.Len() {
		if in(p.slotAt(i)) && (found < 0 || p.precedes(i, found, median) != last) {
			found = i
		}
	}
	return found
}

func (p *Pool) precedes(i, j int, median uint64) bool {
	a, b := p.at(i), p.at(j)
	la, lb := a[recLat], b[recLat]
	if la == unknownLat {
		la = median
	}
	if lb == unknownLat {
		lb = median
	}
	ra, rb := uint32(p.order[i]>>32), uint32(p.order[j]>>32)
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
