package policy

import (
	"math/bits"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
)

// SmoothWeightedRoundRobin gives every open candidate its weight in credit, decides for the one
// with the most, and has that pay all that was given.
//
// Cost O(distinct weights) in steady state, O(n) for a query that avoids candidates and for a
// change of few candidates, O(n log n) for a change of many. Ties go to the first in slot order; with
// start=random, the default, clients start apart and seldom tie. A fleet whose weights pass
// 48 bits together is refused with [engine.ErrOverflow]; else it fails only as the engine does,
// when no candidate is open.
//
// A candidate that is not eligible keeps its credit while it is in the set. A newcomer starts
// level with the mean. On every change credits are cut to one round of the new fleet, so that
// no replica is owed, or owes, more turns in a row than that.
type SmoothWeightedRoundRobin struct {
	engine.Base
	seed uint64
	zero bool

	rounds *uint64

	// Derived from the words. Candidates of one weight gain alike, so that only the first of
	// each class of weight can win: it is all that a decision looks at.
	stale bool
	total uint64 // weight of the eligible
	lead  []int64
	pace  []uint64
	class []rotation
	ring  []turn // of the eligible at the last change, whatever was restored since
	spare []turn
	fresh []uint32 // slots that became eligible, not in the ring yet
}

// State words. Credits are in two's complement.
const (
	smoothBase = iota // credit at the last change, less what was paid since
	smoothPace        // weight that is gained each round, 0 if not eligible; from bit 32 on 1 if it ever was
	smoothWords
)

const smoothKnown = 1 << 32

// maxSmoothWeight keeps every sum of credits in its word.
const maxSmoothWeight = 1 << 48

// NewSmoothWeightedRoundRobin makes the policy; start is "random" or "zero", else an
// [engine.ConfigError].
func NewSmoothWeightedRoundRobin(seed uint64, start string) (*SmoothWeightedRoundRobin, error) {
	if start != "random" && start != "zero" {
		return nil, &engine.ConfigError{Policy: "smooth_weighted_round_robin", Key: "start", Value: clip(start), Reason: "want one of random, zero"}
	}
	return &SmoothWeightedRoundRobin{seed: seed, zero: start == "zero"}, nil
}

// Name is "smooth_weighted_round_robin".
func (*SmoothWeightedRoundRobin) Name() string { return "smooth_weighted_round_robin" }

// Seed starts the draws that place newcomers.
func (p *SmoothWeightedRoundRobin) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *SmoothWeightedRoundRobin) Spec() string {
	l := newLine(p.Name()).seed(p.seed)
	if p.zero {
		l.set("start", "zero")
	}
	return l.String()
}

// Layout asks for the rounds and two words per candidate.
func (*SmoothWeightedRoundRobin) Layout() engine.Layout {
	return engine.Layout{Fixed: 1, PerSlot: smoothWords}
}

// Bind attaches the words; the classes are made from them when next needed.
func (p *SmoothWeightedRoundRobin) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	p.Set, p.rounds, p.stale = s, &fixed[0], true
	if fresh {
		p.class = p.class[:0]
	}
}

// Admit refuses weights that are too large together.
func (*SmoothWeightedRoundRobin) Admit(cs []engine.Candidate) error {
	if total := totalWeight(cs); total > maxSmoothWeight {
		return &engine.DetailError{Err: engine.ErrOverflow, Detail: "weights of " + utoa(total) + " in all, at most " + itoa(maxSmoothWeight)}
	}
	return nil
}

// credit is what a slot holds now.
func (p *SmoothWeightedRoundRobin) credit(w []uint64) int64 {
	return int64(w[smoothBase] + uint64(uint32(w[smoothPace]))**p.rounds)
}

// Changed settles the credits for the new fleet: measures them from the mean, cuts them to one
// round, and places newcomers.
func (p *SmoothWeightedRoundRobin) Changed() {
	s := p.Set
	mean, all := p.fold()
	for slot := range uint32(s.Len()) {
		w := s.Words(slot)
		if s.IsEligible(slot) {
			if w[smoothPace] == 0 {
				w[smoothBase] = p.start()
			} else {
				w[smoothBase] = cut(w[smoothBase], mean, p.total)
			}
			w[smoothPace] = smoothKnown | uint64(s.Weight(slot))
		} else if w[smoothPace] != 0 {
			w[smoothBase] = cut(w[smoothBase], mean, all)
		}
	}
	p.arrange()
}

// fold turns every base into the credit held now, starts the rounds over, weighs the fleet and
// finds who became eligible. It returns the mean credit of the eligible that are not new, and
// the weight of all.
func (p *SmoothWeightedRoundRobin) fold() (mean int64, all uint64) {
	const middle = 1 << 62 // makes credits positive
	s := p.Set
	count, high, low, carry := uint64(0), uint64(0), uint64(0), uint64(0)
	p.total = 0
	for slot := range uint32(s.Len()) {
		w, weight := s.Words(slot), uint64(s.Weight(slot))
		all += weight
		known := w[smoothPace] & smoothKnown
		credit := uint64(p.credit(w))
		if s.IsEligible(slot) {
			p.total += weight
			if w[smoothPace] == known {
				p.fresh = append(p.fresh, slot)
			}
			if known != 0 {
				count++
				low, carry = bits.Add64(low, credit+middle, 0)
				high += carry
			}
		}
		w[smoothBase], w[smoothPace] = credit, known
	}
	*p.rounds = 0
	if count == 0 {
		return 0, all
	}
	sum, _ := bits.Div64(high, low, count)
	return int64(sum) - middle, all
}

// start is the credit of a newcomer. Between its turns a replica's credit passes evenly through
// one round, so that a draw from a round is a place as good as any in the rotation.
func (p *SmoothWeightedRoundRobin) start() uint64 {
	if p.zero {
		return 0
	}
	return p.Set.Draw64(p.total) - p.total/2
}

func cut(credit uint64, mean int64, most uint64) uint64 {
	return uint64(min(max(int64(credit)-mean, -int64(most)), int64(most)))
}

// Decide compares the first of each class and charges the best.
func (p *SmoothWeightedRoundRobin) Decide(_ engine.Instant, _ engine.Key) error {
	s := p.Set
	if p.stale {
		p.arrange()
	}
	if s.AnyTried() {
		s.Choose(p.decideOpen(), engine.RegimeDirect)
		return nil
	}
	*p.rounds++
	rounds, pace := *p.rounds, p.pace
	best, most := 0, int64(-1<<63)
	for i, base := range p.lead[:len(pace)] {
		credit := base + int64(pace[i]*rounds)
		if credit < most || credit == most && p.first(best).slot < p.first(i).slot {
			continue
		}
		best, most = i, credit
	}
	c := &p.class[best]
	ring := p.ring[c.from : c.from+c.size]
	t := &ring[c.head]
	s.Choose(t.slot, engine.RegimeDirect)
	paid := turn{t.base - int64(p.total), t.slot, t.weight}
	if !ring[c.at(c.size-1)].before(paid) {
		p.charge(best, 0, p.total)
		return nil
	}
	*t = paid // the first becomes the last: the ring turns and nothing moves
	s.Words(paid.slot)[smoothBase] = uint64(paid.base)
	c.head = c.at(1)
	p.lead[best] = ring[c.head].base
	return nil
}

// decideOpen plays a round without the candidates that the query avoids: they gain nothing and
// cannot win, and the winner pays what the others were given. All gain in the leads, so the
// avoided give it back.
func (p *SmoothWeightedRoundRobin) decideOpen() uint32 {
	s := p.Set
	*p.rounds++
	given := p.total
	for i, pace := range p.pace {
		for k := p.class[i].size; k > 0; {
			k--
			if !s.IsOpen(p.nth(i, k).slot) {
				given -= pace
				p.charge(i, k, pace)
			}
		}
	}
	best, place, slot, most := 0, uint32(0), absent, int64(0)
	for i, pace := range p.pace {
		k := uint32(0)
		for k < p.class[i].size && !s.IsOpen(p.nth(i, k).slot) {
			k++
		}
		if k == p.class[i].size {
			continue
		}
		t := p.nth(i, k)
		credit := t.base + int64(pace**p.rounds)
		if slot == absent || credit > most || credit == most && t.slot < slot {
			best, place, slot, most = i, k, t.slot, credit
		}
	}
	p.charge(best, place, given)
	return slot
}

// Valid checks the pace of each candidate, and that no credit is out of reach: a change cuts it
// to a round, and a rule that charges the largest lets it grow by less than a round times the
// logarithm of the fleet.
func (p *SmoothWeightedRoundRobin) Valid() bool {
	s := p.Set
	reach := int64(0)
	for slot := range uint32(s.Len()) {
		reach += 32 * int64(s.Weight(slot))
	}
	for slot := range uint32(s.Len()) {
		w := s.Words(slot)
		pace := w[smoothPace] & smoothKnown
		if s.IsEligible(slot) {
			pace = smoothKnown | uint64(s.Weight(slot))
		}
		credit := p.credit(w)
		if w[smoothPace] != pace || credit < -reach || credit > reach || pace == 0 && credit != 0 {
			return false
		}
	}
	return true
}

// Explain shows how far each open candidate is behind the one with the most credit, once all of
// them have gained their weights.
func (p *SmoothWeightedRoundRobin) Explain(_ engine.Instant, _ engine.Key, x *engine.Explanation) {
	s := p.Set
	x.Unit, x.TieBreak = "credits behind the first", "and it comes first in the set"
	most, given := int64(-1<<63), uint64(0)
	for _, slot := range s.EligibleSlots() {
		if s.IsOpen(slot) {
			most = max(most, p.credit(s.Words(slot))+int64(s.Weight(slot)))
			given += uint64(s.Weight(slot))
		}
	}
	for _, slot := range s.EligibleSlots() {
		if s.IsOpen(slot) {
			x.Weigh(s, slot, uint64(most-p.credit(s.Words(slot))-int64(s.Weight(slot))))
		}
	}
	x.Because = "has the most credit (" + strconv.FormatInt(most, 10) + ") of " + plural(s.Open(), "open candidate") + " and pays " + utoa(given)
}
