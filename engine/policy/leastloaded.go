package policy

import "github.com/headroom-lb/headroom/engine"

// LeastLoaded decides for the open candidate with the fewest queries that this client has in
// flight.
//
// Cost O(n). Ties go to the first after the one that decided last, in slot order; a seed other
// than zero starts them at a place of this client's own.
type LeastLoaded struct {
	engine.Base
	seed uint64
	last *[2]uint64 // slot after the one that decided last; 1 once one did
}

// NewLeastLoaded makes the policy; seed zero starts ties at slot 0.
func NewLeastLoaded(seed uint64) *LeastLoaded { return &LeastLoaded{seed: seed} }

// Name is "least_loaded".
func (*LeastLoaded) Name() string { return "least_loaded" }

// Seed places the first tie.
func (p *LeastLoaded) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *LeastLoaded) Spec() string { return newLine("least_loaded").seed(p.seed).String() }

// Layout asks for the cursor.
func (*LeastLoaded) Layout() engine.Layout { return engine.Layout{Fixed: 2} }

// Bind attaches the cursor.
func (p *LeastLoaded) Bind(fixed []uint64, s *engine.Set, _ bool) {
	p.Set, p.last = s, (*[2]uint64)(fixed)
}

// Decide scans the eligible candidates once, from the cursor on.
func (p *LeastLoaded) Decide(_ engine.Instant, _ engine.Key) error {
	s, tried := p.Set, p.Set.AnyTried()
	if p.last[1] == 0 {
		p.last[1] = 1
		if p.seed != 0 {
			p.last[0] = uint64(s.Draw(uint32(s.Len())))
		}
	}
	from := uint32(p.last[0])
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
	p.last[0] = uint64(best.slot) + 1
	direct(p.Set, best.slot)
	return nil
}

type leastOpen struct {
	load uint64
	slot uint32
}

// Valid accepts any place up to the end of the set it was made for.
func (p *LeastLoaded) Valid() bool { return p.last[0] <= engine.MaxCandidates && p.last[1] <= 1 }
