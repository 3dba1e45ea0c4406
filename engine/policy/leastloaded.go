package policy

import "github.com/headroom-lb/headroom/engine"

// LeastLoaded decides for the open candidate with the fewest queries that this client has in
// flight.
//
// Cost O(n). Ties go to the first after the one that decided last, in slot order, from a start
// that the seed draws. It fails only as the engine does, when no candidate is open.
type LeastLoaded struct {
	engine.Base
	seed uint64
	turn cursor
}

// NewLeastLoaded makes the policy.
func NewLeastLoaded(seed uint64) *LeastLoaded { return &LeastLoaded{seed: seed} }

// Name is "least_loaded".
func (*LeastLoaded) Name() string { return "least_loaded" }

// Seed places the first tie.
func (p *LeastLoaded) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *LeastLoaded) Spec() string { return newLine("least_loaded").seed(p.seed).String() }

// Layout asks for the cursor.
func (*LeastLoaded) Layout() engine.Layout { return engine.Layout{Fixed: cursorWords} }

// Bind attaches the cursor.
func (p *LeastLoaded) Bind(fixed []uint64, s *engine.Set, _ bool) {
	p.Set = s
	p.turn.bind(fixed)
}

// Moved keeps the place of the replica that decided last.
func (p *LeastLoaded) Moved(remap []int32) { p.turn.moved(remap) }

// Changed looks for the turn among those eligible now.
func (p *LeastLoaded) Changed() { p.turn.changed() }

// Decide scans the eligible candidates once; the first least one at or after the cursor wins.
func (p *LeastLoaded) Decide(_ engine.Instant, _ engine.Key) error {
	s := p.Set
	if s.AnyTried() {
		return p.decideAvoiding()
	}
	from := p.turn.turn(s)
	best, load := s.LeastInFlight(from, s.Eligible())
	if from > 0 {
		if i, l := s.LeastInFlight(0, from); l < load {
			best = i
		}
	}
	s.Choose(p.turn.pass(s, best), engine.RegimeDirect)
	return nil
}

func (p *LeastLoaded) decideAvoiding() error {
	s := p.Set
	eligible := s.EligibleSlots()
	best := open(s, p.turn.turn(s))
	for at := best; ; {
		if at++; at == len(eligible) {
			at = 0
		}
		if at == best {
			break
		}
		if s.IsOpen(eligible[at]) && s.InFlight(eligible[at]) < s.InFlight(eligible[best]) {
			best = at
		}
	}
	s.Choose(p.turn.pass(s, best), engine.RegimeDirect)
	return nil
}

// Valid checks the restored cursor.
func (p *LeastLoaded) Valid() bool { return p.turn.valid() }

// Explain shows every open candidate's queries in flight.
func (p *LeastLoaded) Explain(_ engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit, x.TieBreak = unitInFlight, "and it is the first of them at or after the turn"
	least := ^uint32(0)
	for _, slot := range p.Set.EligibleSlots() {
		if p.Set.IsOpen(slot) {
			load := p.Set.InFlight(slot)
			x.Weigh(p.Set, slot, uint64(load))
			least = min(least, load)
		}
	}
	x.Because = "has the fewest queries in flight (" + itoa(int(least)) + ") of " + plural(len(x.Weighed), "open candidate")
}
