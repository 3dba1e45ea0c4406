package policy

import (
	"math/bits"
	"slices"
)

// filler is room for filling a table.
type filler struct {
	turns   []maglevTurn
	credit  []uint64
	list    []uint32 // members whose turn it is
	waiting []uint64 // of those, who has no entry yet
	sorted  []uint64
	free    uint32   // entries not taken
	batch   uint32   // number of the batch
	bits    []uint64 // the free entries, once they are fewer
	left    []uint32 // the free entries, once they are few
}

// maglevTurn is where a member stands in its permutation.
type maglevTurn struct{ at, skip uint32 }

// What is best while entries are many, fewer, few. The result is the same.
const (
	fewerShare = 8 // a part of the table
	batchShare = 8 // of the members: shorter batches are not worth their number
	batchLeast = 8
	fewMask    = 1<<16 - 1 // of a count of the free entries, once they are few
)

// fill gives every entry anew. In one round a member gains its weight times the number of
// members in credit, and pays the total weight for a turn: with equal weights everybody has one
// turn a round, as in the paper. Who can pay for more has them after the others had one. The
// last round is a part of one, and what is left then goes to the largest credits, so that
// each share is within one entry of exact proportion.
func (t *maglevTable) fill() {
	n, total := len(t.members), uint64(0)
	t.clear(n)
	if n == 0 {
		return
	}
	for _, m := range t.members {
		total += uint64(m.weight)
	}
	rounds := t.size / uint32(n)
	if !t.weighted {
		t.plan(rounds)
		t.everybody(0, t.kept)
		t.keep()
		t.everybody(t.kept, rounds)
		t.settle()
		t.record()
		return
	}
	for range rounds {
		t.round(uint64(n), total)
	}
	t.round(uint64(t.size%uint32(n)), total)
	t.settle()
}

// everybody takes a turn in each of these rounds.
func (t *maglevTable) everybody(from, to uint32) {
	t.list = t.list[:0]
	for _, m := range t.members {
		t.list = append(t.list, m.number)
	}
	for round := from; round < to; round++ {
		t.batch = round + 1
		t.serve()
	}
}

// clear makes room and frees all entries.
func (t *maglevTable) clear(n int) {
	t.shift = uint32(bits.Len32(uint32(room(n)))) // so that 0 names no member
	t.turns = slices.Grow(t.turns[:0], 1<<t.shift)[:1<<t.shift]
	clear(t.turns)
	for i := range t.members { // a turn begins with a step
		m := &t.members[i]
		m.number = uint32(i)
		t.turns[i] = maglevTurn{at: back(m.offset, m.skip, t.size), skip: m.skip}
	}
	t.orderly()
	t.kept = 0
	t.credit = slices.Grow(t.credit[:0], n)[:n]
	clear(t.credit)
	t.list = t.list[:0]
	t.entries = slices.Grow(t.entries[:0], int(t.size))[:t.size]
	clear(t.entries)
	t.free, t.batch, t.bits, t.left = t.size, 0, t.bits[:0], t.left[:0]
}

func back(at, skip, size uint32) uint32 {
	if at < skip {
		at += size
	}
	return at - skip
}

// round lets each member gain credit and take the turns that it can pay for.
func (t *maglevTable) round(gain, total uint64) {
	t.list = t.list[:0]
	for i := range t.credit {
		if t.credit[i] += gain * uint64(t.members[i].weight); t.credit[i] >= total {
			t.list = append(t.list, uint32(i))
		}
	}
	for len(t.list) > 0 {
		if t.worthBatch() { // so few that the number fits into a claim
			t.batch++
		}
		t.serve()
		more := t.list[:0]
		for _, i := range t.list {
			if t.credit[i] -= total; t.credit[i] >= total {
				more = append(more, i)
			}
		}
		t.list = more
	}
}

// settle gives what is left, less than one entry for each member, to the largest credits; of
// equal ones to the earlier in order.
func (t *maglevTable) settle() {
	rest := int(t.free)
	if rest == 0 {
		return
	}
	t.sorted = append(t.sorted[:0], t.credit...)
	slices.Sort(t.sorted)
	least := t.sorted[len(t.sorted)-rest]
	above, _ := slices.BinarySearch(t.sorted, least+1)
	equal := rest - (len(t.sorted) - above)
	t.list = t.list[:0]
	for i, c := range t.credit {
		if c == least {
			equal--
		}
		if c > least || c == least && equal >= 0 {
			t.list = append(t.list, t.members[i].number)
		}
	}
	t.batch++
	t.serve()
}

// serve lets the members of the list take a turn each, in order.
func (t *maglevTable) serve() {
	many := len(t.bits) == 0 && t.free > t.size/fewerShare
	switch {
	case many && t.worthBatch():
		t.serveAtOnce()
		return
	case many:
		for _, i := range t.list {
			t.take(i)
		}
		return
	case len(t.bits) == 0:
		t.collect()
	}
	few := uint32(1) << (bits.Len32(t.size) / 2)
	for _, i := range t.list {
		if t.free > few {
			t.takeOfFewer(i)
		} else {
			t.takeOfFew(i)
		}
	}
}

func (t *maglevTable) worthBatch() bool {
	return len(t.list) >= batchLeast && len(t.list)*batchShare >= len(t.members)
}

// serveAtOnce gives the same entries without waiting for one member before the next steps: whoever
// is earlier in order takes an entry from whoever is later, who then steps on (deferred
// acceptance: Gale, Shapley 1962, with one order for all entries). So there is nothing to
// foresee, and the processor need not guess. Those of an earlier batch are never
// displaced.
func (t *maglevTable) serveAtOnce() {
	t.waiting = t.waiting[:0]
	for _, i := range t.list {
		t.turns[i].step(t.size)
		t.waiting = append(t.waiting, uint64(t.turns[i].at)<<32|uint64(t.claim(i)))
	}
	for waiting := t.waiting; len(waiting) > 0; {
		waiting = waiting[:displace(t.entries, t.turns, waiting)]
	}
	t.free -= uint32(len(t.list))
}

// displace lets those who wait claim the entries they are at, and says how many have to wait
// again, now in front, each one step on. A place and a claim are one word.
func displace(entries []uint32, turns []maglevTurn, waiting []uint64) (n int) {
	size, mask := uint32(len(entries)), uint32(len(turns)-1)
	for _, w := range waiting {
		at := uint32(w >> 32)
		held := entries[at]
		both := uint32(w) ^ held
		more := both & uint32(int32(held-uint32(w))>>31) // max and min may be branches
		entries[at] = held ^ more
		loser := uint32(w) ^ more
		u := &turns[^loser&mask] // of nobody, without a skip, if the entry was free
		at = ahead(at, u.skip, size)
		u.at = at
		waiting[n] = uint64(at)<<32 | uint64(loser)
		n += int(-loser >> 31)
	}
	return n
}

// claim is what an entry holds once a member has taken it: the earlier, the more, and never 0.
func (t *maglevTable) claim(i uint32) uint32 { return 1<<31 - 1 - t.batch<<t.shift - i }

func (u *maglevTurn) step(size uint32) { u.at = ahead(u.at, u.skip, size) }

// ahead adds and wraps, without a branch: whether it wraps cannot be foreseen.
func ahead(at, skip, size uint32) uint32 {
	past := at + skip - size // wraps below zero if it is not past the end
	return past + size&uint32(int32(past)>>31)
}

// take is one turn.
func (t *maglevTable) take(i uint32) {
	u := &t.turns[i]
	for u.step(t.size); t.entries[u.at] != 0; {
		u.step(t.size)
	}
	t.entries[u.at] = t.claim(i)
	t.free--
}

// collect notes the free entries, a bit each.
func (t *maglevTable) collect() {
	words := int(t.size+63) / 64
	t.bits = slices.Grow(t.bits[:0], words)[:words]
	clear(t.bits)
	for i, e := range t.entries {
		t.bits[i>>6] |= uint64((e-1)>>31) << (i & 63)
	}
}

// takeOfFewer is take by bits, with four steps under way at a time.
func (t *maglevTable) takeOfFewer(i uint32) {
	u, size, free := &t.turns[i], t.size, t.bits
	a := ahead(u.at, u.skip, size)
	b := ahead(a, u.skip, size)
	two := ahead(u.skip, u.skip, size)
	four := ahead(two, two, size)
	c, d := ahead(a, two, size), ahead(b, two, size)
	for {
		if free[a>>6]&(1<<(a&63)) != 0 {
			u.at = a
			break
		}
		if free[b>>6]&(1<<(b&63)) != 0 {
			u.at = b
			break
		}
		if free[c>>6]&(1<<(c&63)) != 0 {
			u.at = c
			break
		}
		if free[d>>6]&(1<<(d&63)) != 0 {
			u.at = d
			break
		}
		a, b, c, d = ahead(a, four, size), ahead(b, four, size), ahead(c, four, size), ahead(d, four, size)
	}
	free[u.at>>6] &^= 1 << (u.at & 63)
	t.entries[u.at] = t.claim(i)
	t.free--
}

// takeOfFew looks at the free entries in place of the permutation, which by now leads over many
// taken ones. A member's backStep times the way to an entry is the number of steps to there,
// as a part of the whole in 64 bits: the fewest steps win. Their low bits say nothing, and have room for
// which entry it is.
func (t *maglevTable) takeOfFew(i uint32) {
	if len(t.left) == 0 {
		for w, word := range t.bits {
			for ; word != 0; word &= word - 1 {
				t.left = append(t.left, uint32(w*64+bits.TrailingZeros64(word)))
			}
		}
	}
	u, m := &t.turns[i], &t.members[t.place[i]]
	if m.back == 0 {
		m.back = backStep(m.skip, t.size)
	}
	from, back := uint64(ahead(u.at, u.skip, t.size)), m.back
	fewest := ^uint64(0)
	for k, at := range t.left {
		fewest = min(fewest, (uint64(at)-from)*back&^fewMask|uint64(k))
	}
	best := fewest & fewMask
	last := len(t.left) - 1
	u.at = t.left[best]
	t.left[best] = t.left[last]
	t.left = t.left[:last]
	t.entries[u.at] = t.claim(i)
	t.free--
}

// backStep is the number of steps of skip that lead one entry on, over size, in 64 bits, rounded
// up: times a distance it gives the steps to there, and it wraps as they do, with an error
// far below one step.
func backStep(skip, size uint32) uint64 {
	inverse := uint64(1) // of skip modulo size, by Fermat
	for base, e := uint64(skip), size-2; e != 0; e >>= 1 {
		if e&1 != 0 {
			inverse = inverse * base % uint64(size)
		}
		base = base * base % uint64(size)
	}
	q, _ := bits.Div64(inverse, 0, uint64(size))
	return q + 1
}
