package engine

import (
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine/internal/hash"
	"github.com/headroom-lb/headroom/engine/internal/prng"
)

// Set is the candidates as a policy sees them: columns, sampled when they change and never
// during a decision. Slots are positions in the candidate slice.
type Set struct {
	// Out is the decision in the making; a policy fills it in, all but ID, or calls Choose. It is a
	// field and not an argument because a guest's compiler loads an argument anew at each use.
	Out Decision

	cands    []Candidate
	table    []uint32 // open addressing: slot+1 by mixed ID
	eligible []uint32 // eligible slots, ascending
	place    []uint32 // slot to position in eligible, or absent
	slots    []uint64 // state words, stride per candidate
	stride   int
	head     *[headWords]uint64
	tried    []uint32 // positions in eligible that this query must avoid, ascending
	triedBuf [MaxTried]uint32
	bare     bool // the decision is an index and a regime
	care     bool // the next decision has lists of its own, is the first, or finds nobody eligible
	answers  []SlotAnswer
	answered [MaxAnswers]SlotAnswer
}

// SlotAnswer is an [Answer] of a candidate that this query may go to.
type SlotAnswer struct {
	Slot    uint32
	Reading Reading
}

const absent = ^uint32(0)

// Word 0 of a slot: in-flight in the low half, status above.
const statusShift = 32

// Len is the number of candidates.
func (s *Set) Len() int { return len(s.cands) }

// Eligible is the number of eligible candidates, tried ones included.
func (s *Set) Eligible() int { return len(s.eligible) }

// Open is the number of candidates that this query may go to.
func (s *Set) Open() int { return len(s.eligible) - len(s.tried) }

// ID returns the identity in a slot.
func (s *Set) ID(slot uint32) ID { return s.cands[slot].ID }

// Weight is the relative capacity of the candidate in a slot, at least 1.
func (s *Set) Weight(slot uint32) uint32 { return max(1, uint32(s.cands[slot].Weight)) }

// Priority is the priority of the candidate in a slot; lower is preferred.
func (s *Set) Priority(slot uint32) uint8 { return s.cands[slot].Priority }

// Locality is the locality of the candidate in a slot.
func (s *Set) Locality(slot uint32) uint32 { return s.cands[slot].Locality }

// Slot finds a candidate by identity.
func (s *Set) Slot(id ID) (uint32, bool) {
	if len(s.table) == 0 {
		return 0, false
	}
	mask := uint32(len(s.table) - 1)
	for i := uint32(hash.Mix(uint64(id))) & mask; ; i = (i + 1) & mask {
		slot := s.table[i] - 1
		if slot == absent {
			return 0, false
		}
		if s.cands[slot].ID == id {
			return slot, true
		}
	}
}

// IsEligible reports whether the candidate in a slot may receive new queries.
func (s *Set) IsEligible(slot uint32) bool { return s.place[slot] != absent }

// IsDraining reports whether the candidate in a slot only finishes its work: it counts for no group.
func (s *Set) IsDraining(slot uint32) bool { return s.status(int(slot)) == StatusDraining }

// IsOpen reports whether this query may go to the candidate in a slot.
func (s *Set) IsOpen(slot uint32) bool {
	p := s.place[slot]
	return p != absent && (len(s.tried) == 0 || !slices.Contains(s.tried, p))
}

// AnyTried reports whether this query avoids an eligible candidate.
func (s *Set) AnyTried() bool { return len(s.tried) > 0 }

// From is the position, in EligibleSlots, of the first eligible slot at or after one, going
// round.
func (s *Set) From(slot uint32) int {
	at, _ := slices.BinarySearch(s.eligible, slot)
	if at == len(s.eligible) {
		at = 0
	}
	return at
}

// LeastInFlight is the position of the first with the fewest queries in flight, and those,
// among EligibleSlots[from:to], which is not empty.
func (s *Set) LeastInFlight(from, to int) (at int, load uint32) {
	least := ^uint64(0)
	if len(s.eligible) == len(s.cands) && s.stride == 1 { // then a word is a load: ready is zero
		words := s.slots[from:to]
		i := 0
		a, b, c := least, least, least
		for ; i+4 <= len(words); i += 4 {
			w := (*[4]uint64)(words[i:])
			least = min(least, w[0]<<atBits|uint64(i))
			a = min(a, w[1]<<atBits|uint64(i+1))
			b = min(b, w[2]<<atBits|uint64(i+2))
			c = min(c, w[3]<<atBits|uint64(i+3))
		}
		least = min(min(least, a), min(b, c))
		for ; i < len(words); i++ {
			least = min(least, words[i]<<atBits|uint64(i))
		}
	} else {
		for i, slot := range s.eligible[from:to] {
			least = min(least, uint64(uint32(s.slots[int(slot)*s.stride]))<<atBits|uint64(i))
		}
	}
	return from + int(least&(1<<atBits-1)), uint32(least >> atBits)
}

const atBits = 31 // a position, below a load: Config may allow more than MaxCandidates

// EligibleSlots returns the eligible slots in ascending order. Read only.
func (s *Set) EligibleSlots() []uint32 { return s.eligible }

// OpenAt returns the slot of the k-th open candidate, in slot order.
func (s *Set) OpenAt(k uint32) uint32 {
	for _, p := range s.tried {
		if k >= p {
			k++
		}
	}
	return s.eligible[k]
}

// DrawOpen returns a uniform open slot.
func (s *Set) DrawOpen() uint32 {
	if len(s.tried) == 0 {
		return s.eligible[s.Draw(uint32(len(s.eligible)))]
	}
	return s.OpenAt(s.Draw(uint32(s.Open())))
}

// Draw returns a uniform number in [0, n) from the machine's generator; n is at least 1.
func (s *Set) Draw(n uint32) uint32 { return prng.Below(&s.head[headRand], n) }

// Draw64 is Draw for large numbers.
func (s *Set) Draw64(n uint64) uint64 { return prng.Below64(&s.head[headRand], n) }

// InFlight is the number of queries this machine has open on a slot.
func (s *Set) InFlight(slot uint32) uint32 { return uint32(s.slots[int(slot)*s.stride]) }

// Words returns a slot's state words as the policy's [Layout] asked for.
func (s *Set) Words(slot uint32) []uint64 {
	i := int(slot) * s.stride
	return s.slots[i+1 : i+s.stride]
}

// Tie is a number by which equal candidates are told apart: it differs from machine to
// machine, so that clients do not agree on ties.
func (s *Set) Tie(slot uint32) uint64 {
	return hash.Mix(uint64(s.cands[slot].ID) ^ s.head[headTie])
}

// Bits returns 64 uniform bits from the machine's generator, for those who need more of one
// draw than a number.
func (s *Set) Bits() uint64 { return prng.Next(&s.head[headRand]) }

// First is the first instant this machine ever saw.
func (s *Set) First() Instant { return Instant(s.head[headFirst]) }

// Last is the last instant this machine saw.
func (s *Set) Last() Instant { return Instant(s.head[headNow]) }

// Choose decides for a slot and says nothing but the regime, for a policy without entries, which
// always decides so: the rest of Out stays at rest.
func (s *Set) Choose(slot uint32, r Regime) { s.Out.Index, s.Out.Regime, s.bare = slot, r, true }

// launch counts the decision in Out in flight; a full count stays full.
func (s *Set) launch() {
	w := &s.slots[int(s.Out.Index)*s.stride]
	one := uint64(1)
	if uint32(*w) == absent {
		one = 0
	}
	*w += one
}

func (s *Set) status(slot int) Status { return Status(s.slots[slot*s.stride] >> statusShift) }

func (s *Set) setStatus(slot int, st Status) {
	w := &s.slots[slot*s.stride]
	*w = *w&(1<<statusShift-1) | uint64(st)<<statusShift
}

// exclude resolves the replicas that a query must avoid. Unknown ones are ignored: a replica
// that left since it was tried cannot be chosen anyway.
func (s *Set) exclude(ids []ID) error {
	s.tried = s.triedBuf[:0]
	if len(ids) > MaxTried {
		return &DetailError{ErrCapacity, strconv.Itoa(len(ids)) + " replicas tried, at most " + strconv.Itoa(MaxTried)}
	}
	for _, id := range ids {
		slot, ok := s.Slot(id)
		if !ok || s.place[slot] == absent {
			continue
		}
		p := s.place[slot]
		i, found := slices.BinarySearch(s.tried, p)
		if !found {
			s.tried = append(s.tried, 0)
			copy(s.tried[i+1:], s.tried[i:])
			s.tried[i] = p
		}
	}
	return nil
}

// Answers are the answers to this query's own probes, of open candidates, the newest of each,
// in order of first receipt. They hold during a decision.
func (s *Set) Answers() []SlotAnswer { return s.answers }

// answer resolves a query's answers, after exclude. Those of replicas that may not receive the
// query are left out.
func (s *Set) answer(as []Answer, now Instant) error {
	s.answers = s.answered[:0]
	if len(as) > MaxAnswers {
		return &DetailError{ErrCapacity, strconv.Itoa(len(as)) + " answers, at most " + strconv.Itoa(MaxAnswers)}
	}
	for _, a := range as {
		slot, ok := s.Slot(a.ID)
		if !ok || !s.IsOpen(slot) {
			continue
		}
		a.Reading.clean(now)
		i := slices.IndexFunc(s.answers, func(x SlotAnswer) bool { return x.Slot == slot })
		if i < 0 {
			i = len(s.answers)
			s.answers = s.answers[:i+1]
		}
		s.answers[i] = SlotAnswer{slot, a.Reading}
	}
	return nil
}

// refresh derives the eligible columns from the status words.
func (s *Set) refresh() {
	n := len(s.cands)
	s.eligible = slices.Grow(s.eligible[:0], n)
	s.place = slices.Grow(s.place[:0], n)[:n]
	for i := range n {
		s.place[i] = absent
		if s.status(i).Eligible() {
			s.place[i] = uint32(len(s.eligible))
			s.eligible = append(s.eligible, uint32(i))
		}
	}
	s.tried, s.answers = s.triedBuf[:0], s.answered[:0]
	s.care = len(s.eligible) == 0 || Instant(s.head[headNow]) == never
}

// index builds a lookup table in the spare one, or names the position of a repeated identity.
func (sp *spare) index(cs []Candidate) (duplicate int) {
	size := 2
	for size < 2*len(cs) {
		size *= 2
	}
	table := slices.Grow(sp.table[:0], size)[:size]
	sp.table = table
	clear(table)
	mask := uint32(size - 1)
	for n := range cs {
		id := cs[n].ID
		i := uint32(hash.Mix(uint64(id))) & mask
		for ; table[i] != 0; i = (i + 1) & mask {
			if cs[table[i]-1].ID == id {
				return n
			}
		}
		table[i] = uint32(n + 1)
	}
	return -1
}

// fingerprint covers everything about a set but its statuses, which are state.
func fingerprint(cs []Candidate) uint64 {
	h := hash.Start()
	for i := range cs {
		c := &cs[i]
		rest := hash.Mix(uint64(c.Weight)<<32|uint64(c.Locality)) + uint64(c.Priority)
		h = hash.Mix(h + hash.Mix(uint64(c.ID)^rest))
	}
	return h
}
