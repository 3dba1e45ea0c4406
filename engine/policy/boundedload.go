package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/rank"
	"github.com/headroom-lb/headroom/engine/probe"
)

// The factor of [BoundedLoad], in parts per 10,000.
const (
	defaultLoadFactor = probe.Unit * 3 / 2
	maxLoadFactor     = 100 * probe.Unit
	maxBoundedWeight  = (1<<64 - 1) / probe.Unit
)

// BoundedLoad is consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2018)
// over the order of [WeightedRendezvous]: the best-ranked open candidate with room decides. A
// candidate has room while the queries that this client has in flight on it are fewer than
// its capacity: factor times its share by weight of all of them, the new one included.
//
// Cost O(n), as weighted rendezvous and one 128-bit comparison for each candidate that may
// still win; the total in flight is kept up to date and not summed. Ties are as in weighted
// rendezvous. Some eligible candidate always has room; if a retry avoids all that have, the
// capacities are taken over the open ones alone. The regime is spill if the best-ranked open
// candidate was full. Admit fails with [engine.ErrOverflow] for a total weight over 1.8e15.
type BoundedLoad struct {
	engine.Base
	seed   uint64
	factor uint64
	race   race
	fleet  measure  // over the eligible candidates
	seen   []uint32 // by slot: what the fleet's total holds of it
	last   uint32   // the slot decided for last, which the engine has counted since
}

// measure is what capacities are shares of.
type measure struct {
	inFlight uint64
	weights  uint64
}

// NewBoundedLoad makes the policy; factor is in parts per 10,000, 1 to 100 times, else an
// [engine.ConfigError]. The seed is as that of [NewRendezvous].
func NewBoundedLoad(seed, factor uint64) (*BoundedLoad, error) {
	v := bounds{policy: "bounded_load"}
	v.parts("factor", factor, probe.Unit, maxLoadFactor)
	if err := v.err(); err != nil {
		return nil, err
	}
	return &BoundedLoad{seed: seed, factor: factor}, nil
}

// Name is "bounded_load".
func (*BoundedLoad) Name() string { return "bounded_load" }

// Seed starts the draws for queries without a key.
func (p *BoundedLoad) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *BoundedLoad) Spec() string {
	l := newLine("bounded_load").seed(p.seed)
	l.parts("factor", p.factor, defaultLoadFactor)
	return l.String()
}

// Admit refuses a fleet whose capacities could not be compared in 128 bits.
func (p *BoundedLoad) Admit(cs []engine.Candidate) error {
	if total := totalWeight(cs); total > maxBoundedWeight {
		return &engine.DetailError{Err: engine.ErrOverflow, Detail: "bounded_load: total weight " +
			utoa(total) + ", at most " + utoa(maxBoundedWeight)}
	}
	return nil
}

// Bind sums what is in flight: the words may be those of another history.
func (p *BoundedLoad) Bind(_ []uint64, s *engine.Set, _ bool) {
	p.Set = s
	p.sum()
}

// Changed hashes the eligible candidates and sums their weights and loads.
func (p *BoundedLoad) Changed() {
	p.race.build(p.Set)
	p.sum()
}

func (p *BoundedLoad) sum() {
	s := p.Set
	p.seen = slices.Grow(p.seen[:0], s.Len())[:s.Len()]
	p.fleet, p.last = measure{}, 0
	for _, slot := range s.EligibleSlots() {
		p.seen[slot] = s.InFlight(slot)
		p.fleet.inFlight += uint64(p.seen[slot])
		p.fleet.weights += uint64(s.Weight(slot))
	}
}

// Observe takes the ended query out of the total.
func (p *BoundedLoad) Observe(_ engine.Instant, slot uint32, _ engine.Report) { p.settle(slot) }

// settle brings the total up to date with one candidate. The engine counts after Decide and
// before Observe, and stops at either end of its range: so the total follows its count.
func (p *BoundedLoad) settle(slot uint32) {
	if now := p.Set.InFlight(slot); p.seen[slot] != now && p.Set.IsEligible(slot) {
		p.fleet.inFlight += uint64(now) - uint64(p.seen[slot])
		p.seen[slot] = now
	}
}

// Decide takes the best-ranked candidate with room, in one pass.
func (p *BoundedLoad) Decide(_ engine.Instant, key engine.Key) error {
	p.settle(p.last)
	best, spilled := p.place(spreadKey(p.Set, key))
	p.last = p.Set.EligibleSlots()[best.at]
	regime := engine.RegimeDirect
	if spilled {
		regime = engine.RegimeSpill
	}
	p.Set.Choose(p.last, regime)
	return nil
}

// place returns the winner, and whether the best-ranked open candidate was full.
func (p *BoundedLoad) place(key uint64) (best runner, spilled bool) {
	best, full := p.first(key, &p.fleet)
	if best.at < 0 {
		open := p.open()
		best, _ = p.first(key, &open)
		return best, true
	}
	return best, full.at >= 0 && full.low <= best.high && p.race.ahead(&full, &best)
}

// open measures the open candidates alone. Of those one always has room: were all full, they
// would have at least factor times their total and one in flight, which is more than their total.
func (p *BoundedLoad) open() (m measure) {
	for _, slot := range p.Set.EligibleSlots() {
		if p.Set.IsOpen(slot) {
			m.inFlight += uint64(p.Set.InFlight(slot))
			m.weights += uint64(p.Set.Weight(slot))
		}
	}
	return m
}

// podium is the outcome of a race so far: the best-ranked open candidate with room, and the
// best-ranked full one that may be ahead of it. Either may be nobody.
type podium struct{ best, full runner }

// first finds both in one pass.
func (p *BoundedLoad) first(key uint64, m *measure) (best, full runner) {
	o := podium{nobody(), nobody()}
	bar := noTime
	lanes := p.race.lanes
	for i := range lanes {
		l := &lanes[i]
		if score := rank.Score(key, l.hash); l.low(score) <= bar {
			bar = p.arrive(i, score, m, &o)
		}
	}
	return o.best, o.full
}

// arrive takes in the i-th eligible candidate and returns the bar: what has a higher low is
// behind. It stands apart from the loop, which is longer in a guest with every word it keeps.
//
//go:noinline
func (p *BoundedLoad) arrive(i int, score uint64, m *measure, o *podium) (bar uint64) {
	s, l := p.Set, &p.race.lanes[i]
	low := l.low(score)
	if !p.hasRoom(s.EligibleSlots()[i], m) {
		if low <= o.full.high {
			p.race.meet(i, score, &o.full)
		}
		return o.best.high
	}
	if high := l.high(score); high <= o.best.low && !s.AnyTried() {
		o.best = runner{score, low, high, i}
		return high
	}
	p.race.meet(i, score, &o.best)
	return o.best.high
}

// hasRoom compares without dividing: load < ceil(x) is load < x for a whole load. Nothing
// overflows: a load has 32 bits, a weight 32, the factor 20, their sums less than 64.
func (p *BoundedLoad) hasRoom(slot uint32, m *measure) bool {
	loadHigh, loadLow := bits.Mul64(uint64(p.Set.InFlight(slot)), probe.Unit*m.weights)
	capHigh, capLow := bits.Mul64(m.inFlight+1, p.factor*uint64(p.Set.Weight(slot)))
	return loadHigh < capHigh || loadHigh == capHigh && loadLow < capLow
}

// capacity is how many queries a candidate may have in flight.
func (p *BoundedLoad) capacity(slot uint32, m *measure) uint64 {
	high, low := bits.Mul64(m.inFlight+1, p.factor*uint64(p.Set.Weight(slot)))
	whole, rest := bits.Div64(high, low, probe.Unit*m.weights)
	if rest > 0 {
		whole++
	}
	return whole
}

// Explain shows every open candidate's time, which of them were full, whose the key is, and how
// many full ones were passed.
func (p *BoundedLoad) Explain(_ engine.Instant, key engine.Key, x *engine.Explanation) {
	s, k := p.Set, spreadKey(p.Set, key)
	p.settle(p.last)
	best, spilled := p.place(k)
	winner := s.EligibleSlots()[best.at]
	m, owner, depth := &p.fleet, best, 0
	x.Unit, x.TieBreak = unitRaceTime, "and its score is the highest"
	for i, slot := range s.EligibleSlots() {
		if !s.IsOpen(slot) {
			continue
		}
		a := runner{score: rank.Score(k, p.race.lanes[i].hash), high: noTime, at: i}
		x.Weigh(s, slot, p.race.time(slot, a.score))
		if p.hasRoom(slot, m) {
			continue
		}
		x.Weighed[len(x.Weighed)-1].Verdict = engine.VerdictFull
		if p.race.ahead(&a, &best) {
			depth++
		}
		if p.race.ahead(&a, &owner) {
			owner = a
		}
	}
	if !p.hasRoom(winner, m) {
		open := p.open()
		m = &open
		x.Notes = append(x.Notes, "every open candidate is full: capacities are over the open ones alone")
	}
	x.Because = "ranks first for " + keyText(key) + " of " + plural(len(x.Weighed), "open candidate") + " and has room: " + p.level(winner, m)
	if spilled {
		x.Because = "is the best-ranked for " + keyText(key) + " that has room: " + p.level(winner, m)
		slot := s.EligibleSlots()[owner.at]
		x.Notes = append(x.Notes, "the owner is at position "+itoa(int(slot))+" and full: "+p.level(slot, &p.fleet))
	}
	x.Notes = append(x.Notes, "spill depth "+itoa(depth), "capacities are "+decimal(p.factor)+" times the shares by weight of "+
		utoa(m.inFlight)+" in flight and this one")
}

func (p *BoundedLoad) level(slot uint32, m *measure) string {
	return itoa(int(p.Set.InFlight(slot))) + " in flight of " + utoa(p.capacity(slot, m))
}
