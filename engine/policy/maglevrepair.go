package policy

import "slices"

// repairer is what it takes to follow a change of few members without filling the table anew. Most
// of the rounds are kept: who took which entry, and which members come by an entry. The rounds
// after these, in which nearly everybody does something else, are filled anew.
type repairer struct {
	kept    uint32 // rounds; none if filling is less work
	built   int    // members when the table was filled
	budget  int    // what a repair may still look at
	gone    []maglevMember
	place   []uint32 // in the order of turns, by number
	unnamed []uint32 // numbers of nobody
	early   []uint64 // the entries that are free after the kept rounds
	steps   []uint16 // by number and round: steps of the permutation to the entry taken
	reach   []uint32 // by number: how many steps are among the visits
	heads   []uint32 // by entry: its last visit
	visits  []visit
	unused  uint32 // the first of the visits that were taken out
}

// visit says that a permutation leads to an entry: whose, in the lower bits, and after how many
// steps. The visits of an entry are a list; number 0 ends it.
type visit struct{ what, next uint32 }

const (
	unnumbered   = ^uint32(0)
	keptParts    = 15 // of 16 rounds; the more, the more visits
	changedShare = 16 // of the members: how many more or fewer than when the table was filled
	visitHalves  = 7  // room for visits, in halves of the size: ln(16) of it is usual
	budgetHalves = 3  // in halves of the size
)

// plan settles how many of the rounds are kept. A departure or an arrival makes some kept*kept/4 turns
// take other entries, which costs as much as filling when that is about a quarter of the size.
func (t *maglevTable) plan(rounds uint32) {
	t.kept = uint32(uint64(rounds) * keptParts / 16)
	if !t.few(1) {
		t.kept = 0
	}
}

// few says whether so many changes are less work one by one.
func (t *maglevTable) few(changes int) bool {
	return uint64(changes)*uint64(t.kept)*uint64(t.kept) <= uint64(t.size)
}

// room is how many numbers there are for members; those above are nobody's.
func room(members int) int { return members + members/changedShare + 1 }

// keep notes which entries are free after the kept rounds: never so few that bits do not tell.
func (t *maglevTable) keep() {
	if t.kept == 0 {
		return
	}
	if len(t.bits) == 0 {
		t.collect()
	}
	t.early = append(t.early[:0], t.bits...)
}

// orderly notes where the members are in the order of turns.
func (t *maglevTable) orderly() {
	t.place = slices.Grow(t.place[:0], 1<<t.shift)[:1<<t.shift]
	for i, m := range t.members {
		if m.number != unnumbered {
			t.place[m.number] = uint32(i)
		}
	}
}

// record follows each permutation as far as the kept rounds led.
func (t *maglevTable) record() {
	if t.kept == 0 {
		return
	}
	n := len(t.members)
	t.built, t.unnamed, t.unused = n, t.unnamed[:0], 0
	for i := n; i < room(n); i++ {
		t.unnamed = append(t.unnamed, uint32(i))
	}
	t.reach = slices.Grow(t.reach[:0], room(n))[:room(n)]
	rows := room(n) * int(t.kept)
	t.steps = slices.Grow(t.steps[:0], rows)[:rows]
	t.heads = slices.Grow(t.heads[:0], int(t.size))[:t.size]
	clear(t.heads)
	most := 1 + int(t.size)*visitHalves/2
	t.visits = slices.Grow(t.visits[:0], most)[:most]
	visits, heads, last := t.visits, t.heads, uint32(0)
	mask := uint32(1)<<t.shift - 1
	limit := t.stepLimit()
	for i := range t.members {
		m := &t.members[i]
		row := t.row(m.number)
		at, taken, step := m.offset, uint32(0), uint32(0)
		for ; taken < t.kept; step++ {
			if last++; int(last) >= most || step >= limit {
				t.kept = 0
				return
			}
			visits[last] = visit{step<<t.shift | m.number, heads[at]}
			heads[at] = last
			row[taken] = uint16(step)
			other := (^t.entries[at] ^ m.number) & mask
			taken += (other - 1) >> 31 // no branch: it cannot be foreseen
			at = ahead(at, m.skip, t.size)
		}
		t.reach[m.number] = step
	}
	t.visits = visits[:last+1]
}

// stepLimit is where steps would no longer fit.
func (t *maglevTable) stepLimit() uint32 { return 1 << min(16, 32-t.shift) }

// repair follows those who went and those who came, who have no number yet. It gives up, and the
// table has to be filled, where that is less work.
func (t *maglevTable) repair(come int) bool {
	n := len(t.members)
	if t.kept == 0 || !t.few(len(t.gone)+come) || n == 0 || n+t.built/changedShare+1 < t.built ||
		come > len(t.gone)+len(t.unnamed) || t.size/uint32(n) < t.kept {
		return false
	}
	t.budget = int(t.size) * budgetHalves / 2
	t.orderly()
	for i := range t.gone {
		t.forget(&t.gone[i])
	}
	for i := range t.gone {
		m := &t.gone[i]
		for round, step := range t.row(m.number) {
			if !t.vacate(m.entry(uint32(step), t.size), uint32(round)) {
				return false
			}
		}
		t.unnamed = append(t.unnamed, m.number)
	}
	for i := range t.members {
		m := &t.members[i]
		if m.number != unnumbered {
			continue
		}
		last := len(t.unnamed) - 1
		m.number, t.unnamed = t.unnamed[last], t.unnamed[:last]
		t.reach[m.number], t.place[m.number] = 0, uint32(i)
		if !t.enter(m) {
			return false
		}
	}
	t.refill()
	return true
}

// refill gives anew what is free after the kept rounds.
func (t *maglevTable) refill() {
	n := len(t.members)
	t.credit = slices.Grow(t.credit[:0], n)[:n]
	clear(t.credit)
	for i := range t.members {
		m := &t.members[i]
		last := t.row(m.number)[t.kept-1]
		t.turns[m.number] = maglevTurn{at: m.entry(uint32(last), t.size), skip: m.skip}
	}
	t.bits, t.left = append(t.bits[:0], t.early...), t.left[:0]
	t.free = t.size - t.kept*uint32(n)
	t.everybody(t.kept, t.size/uint32(n))
	t.settle()
}

// row is where a member was after each of the kept rounds.
func (t *maglevTable) row(number uint32) []uint16 {
	return t.steps[int(number)*int(t.kept):][:t.kept]
}

// entry is where a permutation leads in so many steps.
func (m *maglevMember) entry(steps, size uint32) uint32 {
	return uint32((uint64(m.offset) + uint64(steps)*uint64(m.skip)) % uint64(size))
}

// forget takes a member's visits out.
func (t *maglevTable) forget(m *maglevMember) {
	at := m.offset
	for step := range t.reach[m.number] {
		link := &t.heads[at]
		for t.visits[*link].what != step<<t.shift|m.number {
			link = &t.visits[*link].next
			t.budget--
		}
		v := *link
		*link = t.visits[v].next
		t.visits[v].next, t.unused = t.unused, v
		at = ahead(at, m.skip, t.size)
	}
}

// note puts a member's visits in, up to a step.
func (t *maglevTable) note(m *maglevMember, step uint32) bool {
	at := m.entry(t.reach[m.number], t.size)
	for ; t.reach[m.number] <= step; t.reach[m.number]++ {
		v, s := t.unused, t.reach[m.number]
		switch {
		case s >= t.stepLimit():
			return false
		case v != 0:
			t.unused = t.visits[v].next
		case len(t.visits) == cap(t.visits):
			return false
		default:
			v = uint32(len(t.visits))
			t.visits = t.visits[:v+1]
		}
		t.visits[v] = visit{s<<t.shift | m.number, t.heads[at]}
		t.heads[at] = v
		at = ahead(at, m.skip, t.size)
	}
	return true
}

// vacate takes an entry from whoever took it in a round. It goes to the first who comes by later, and
// who so leaves the entry that it took; and so on, as long as anybody comes by in the kept rounds.
func (t *maglevTable) vacate(at, round uint32) bool {
	mask, end := uint32(1)<<t.shift-1, t.kept-1
	next, taker, left := t.kept, uint32(0), uint16(0) // the round, who takes it, the step that it leaves
	v, then, there := t.heads[at], uint32(0), uint32(0)
	for {
		for v != 0 {
			t.budget--
			seen := t.visits[v]
			v = seen.next
			number, step := seen.what&mask, uint16(seen.what>>t.shift)
			row := t.row(number)
			if row[min(next, end)] <= step { // mostly: it comes by later than the taker
				continue
			}
			low, high := round, min(next, end)
			for low < high {
				if mid := (low + high) / 2; row[mid] > step {
					high = mid
				} else {
					low = mid + 1
				}
			}
			if low == next && t.place[number] > t.place[taker] {
				continue
			}
			if next <= end {
				t.row(taker)[next] = left
			}
			next, taker, left, row[low] = low, number, row[low], step
			then, there = t.leaves(taker, left)
		}
		if next > end {
			t.entries[at] = 0 // as a claim, the latest of all
			t.early[at>>6] |= 1 << (at & 63)
			return true
		}
		if t.budget < 0 {
			return false
		}
		t.entries[at] = t.claimIn(next, taker)
		at, v = then, there
		if round, next = next, next+1; next <= end { // its own next turn, unless somebody is before it
			row := t.row(taker)
			left, row[next] = row[next], left
			then, there = t.leaves(taker, left)
		}
	}
}

// leaves is the entry of a step, and its last visit: looked up before it is needed, not to wait.
func (t *maglevTable) leaves(number uint32, step uint16) (at, visit uint32) {
	at = t.members[t.place[number]].entry(uint32(step), t.size)
	return at, t.heads[at]
}

// claimIn is the claim of a member's turn in a round.
func (t *maglevTable) claimIn(round, number uint32) uint32 {
	return 1<<31 - 1 - (round+1)<<t.shift - number
}

// enter lets a member take its turns in the kept rounds.
func (t *maglevTable) enter(m *maglevMember) bool {
	from := uint32(0)
	for round := range t.kept {
		if !t.seek(m, round, from) {
			return false
		}
		from = uint32(t.row(m.number)[round]) + 1
	}
	return true
}

// seek finds the entry of a turn: the first, from a step on, that no earlier turn has. A later turn
// that had it looks on from there; and so on, until one finds an entry that was free.
func (t *maglevTable) seek(m *maglevMember, round, step uint32) bool {
	mask := uint32(1)<<t.shift - 1
	at, place := m.entry(step, t.size), t.place[m.number]
	for {
		if t.budget--; t.budget < 0 {
			return false
		}
		claim := ^t.entries[at] & (1<<31 - 1)
		held, number := claim>>t.shift-1, claim&mask
		if held < round || held == round && t.place[number] < place {
			at = ahead(at, m.skip, t.size)
			step++
			continue
		}
		if step >= t.stepLimit() || round == t.kept-1 && !t.note(m, step) {
			return false
		}
		t.entries[at] = t.claimIn(round, m.number)
		t.row(m.number)[round] = uint16(step)
		if held >= t.kept {
			t.early[at>>6] &^= 1 << (at & 63)
			return true
		}
		place = t.place[number]
		m, round, step = &t.members[place], held, uint32(t.row(number)[held])+1
		at = ahead(at, m.skip, t.size)
	}
}
