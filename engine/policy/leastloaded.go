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

// Decide scans the eligible candidates once; the first least one at or after the cursor wins.
func (p *LeastLoaded) Decide(_ engine.Instant, _ engine.Key) error {
	s, tried := p.Set, p.Set.AnyTried()
	from := p.turn.from(s)
	best, after := leastOpen{load: ^uint64(0)}, leastOpen{load: ^uint64(0)}
	for _, slot := range s.EligibleSlots() {
		if tried && !s.IsOpen(slot) {
			continue
		}
		load := uint64(s.InFlight(slot))
		if load < best.load {
			best = leastOpen{load, slot}
		}
		if slot >= from && load < after.load {
			after = leastOpen{load, slot}
		}
	}
	if after.load == best.load {
		best = after
	}
	p.turn.pass(best.slot)
	direct(s, best.slot)
	return nil
}

type leastOpen struct {
	load uint64
	slot uint32
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
