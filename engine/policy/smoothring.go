package policy

import "slices"

// rotation is a class of weight: a piece of the ring, in order of credit from its head on.
type rotation struct{ from, size, head uint32 }

// turn is a candidate in its class: its credit but for what its class gained since the last
// change, which is the same for all of them. Sums wrap; differences are small and exact.
type turn struct {
	base   int64
	slot   uint32
	weight uint32
}

func (t turn) before(o turn) bool {
	return t.base-o.base > 0 || t.base == o.base && t.slot < o.slot
}

func compareTurns(t, o turn) int {
	if t.weight < o.weight || t.weight == o.weight && t.before(o) {
		return -1
	}
	return 1
}

// Moved carries the ring to the new slots.
func (p *SmoothWeightedRoundRobin) Moved(remap []int32) {
	for i := range p.ring {
		t := &p.ring[i]
		t.slot = uint32(remap[t.slot]) // absent if it has left
	}
}

// arrange makes the classes from the words. A change moves few against each other, so that the
// old ring is the new one but for those.
func (p *SmoothWeightedRoundRobin) arrange() {
	s := p.Set
	p.stale = false
	ring := p.spare[:0]
	for i := range p.class {
		for k := range p.class[i].size {
			t := p.nth(i, k)
			switch {
			case t.slot == absent || !s.IsEligible(t.slot):
			case t.weight != s.Weight(t.slot):
				p.fresh = append(p.fresh, t.slot)
			default:
				t.base = int64(s.Words(t.slot)[smoothBase])
				ring = append(ring, t)
			}
		}
	}
	for _, slot := range p.fresh {
		ring = append(ring, turn{int64(s.Words(slot)[smoothBase]), slot, s.Weight(slot)})
	}
	sortTurns(ring)
	p.ring, p.spare, p.fresh = ring, p.ring, p.fresh[:0]
	p.lead, p.pace, p.class = p.lead[:0], p.pace[:0], p.class[:0]
	for i, t := range p.ring {
		weight := uint64(t.weight)
		if last := len(p.class) - 1; last >= 0 && p.pace[last] == weight {
			p.class[last].size++
			continue
		}
		p.class = append(p.class, rotation{from: uint32(i), size: 1})
		p.lead, p.pace = append(p.lead, t.base), append(p.pace, weight)
	}
}

// maxMoves is how many turns are moved one by one before sorting all of them is cheaper.
const maxMoves = 32

// sortTurns sorts what mostly is in order.
func sortTurns(ring []turn) {
	moves := 0
	for i := 1; i < len(ring); i++ {
		t := ring[i]
		if compareTurns(ring[i-1], t) < 0 {
			continue
		}
		if moves++; moves > maxMoves {
			slices.SortFunc(ring, compareTurns)
			return
		}
		at, _ := slices.BinarySearchFunc(ring[:i], t, compareTurns)
		copy(ring[at+1:i+1], ring[at:i])
		ring[at] = t
	}
}

// first is the leader of a class.
func (p *SmoothWeightedRoundRobin) first(i int) turn {
	c := &p.class[i]
	return p.ring[c.from+c.head]
}

// charge takes an amount from the k-th of a class, which then falls back in the order of its
// class.
func (p *SmoothWeightedRoundRobin) charge(i int, k uint32, amount uint64) {
	c := &p.class[i]
	ring := p.ring[c.from : c.from+c.size]
	at := c.at(k)
	t := ring[at]
	t.base -= int64(amount)
	p.Set.Words(t.slot)[smoothBase] = uint64(t.base)
	for k++; k < c.size; k++ {
		next := c.at(k)
		if t.before(ring[next]) {
			break
		}
		ring[at] = ring[next]
		at = next
	}
	ring[at] = t
	p.lead[i] = ring[c.head].base
}

// at is the place in its piece of the ring of the k-th of a class.
func (c *rotation) at(k uint32) uint32 {
	if k += c.head; k >= c.size {
		k -= c.size
	}
	return k
}

// nth is the k-th of a class.
func (p *SmoothWeightedRoundRobin) nth(i int, k uint32) turn {
	c := &p.class[i]
	return p.ring[c.from+c.at(k)]
}
