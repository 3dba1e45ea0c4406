package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Priority fills the priorities in order, each up to what its eligible members can take, and
// draws a member by weight. A priority whose members are partly unavailable gives the rest of
// its load to the next, as in Envoy's priority levels; the shares are exact.
//
// Cost O(1): one draw for the priority, compared with at most 256 bounds, and one for the member
// by an alias table. Tables are rebuilt, in O(candidates), when the set or a status changes. No
// ties. With FailClosed a decision for a priority in panic is [engine.ErrRejected].
type Priority struct {
	engine.Base
	g groups
}

// NewPriority makes the policy, or an [engine.ConfigError].
func NewPriority(c GroupConfig) (*Priority, error) {
	if err := c.validate("priority"); err != nil {
		return nil, err
	}
	return &Priority{g: groups{c: c}}, nil
}

// Name is "priority".
func (*Priority) Name() string { return "priority" }

// Seed starts its draws.
func (p *Priority) Seed() uint64 { return p.g.c.Seed }

// Spec is the canonical line.
func (p *Priority) Spec() string { return p.g.c.line("priority").String() }

// Admit refuses weights that are too large together: [engine.ErrOverflow].
func (p *Priority) Admit(cs []engine.Candidate) error { return admit(cs, probe.Unit) }

// Bind takes the set; what was derived from another one is out of date.
func (p *Priority) Bind(_ []uint64, s *engine.Set, _ bool) { p.Set, p.g.sorted = s, false }

// Changed derives the shares and the tables.
func (p *Priority) Changed() { p.g.changed(p.Set) }

// Decide draws a priority, then a member of it.
func (p *Priority) Decide(_ engine.Instant, _ engine.Key) error {
	s := p.Set
	drawn := p.g.cuts.draw(s)
	at := &p.g.all[drawn]
	if at.refusal != nil || s.AnyTried() {
		return p.decideWithCare(drawn)
	}
	t := &p.g.parts[at.from]
	s.Choose(t.slots[t.draw(s)], at.regime)
	return nil
}

func (p *Priority) decideWithCare(drawn int) error {
	at := &p.g.all[p.g.open(p.Set, drawn)]
	if at.refusal != nil {
		return at.refusal
	}
	p.Set.Choose(p.g.parts[at.from].drawOpen(p.Set), at.regime)
	return nil
}

// Explain shows what each priority can take, and what it is given.
func (p *Priority) Explain(now engine.Instant, key engine.Key, x *engine.Explanation) {
	if p.Decide(now, key) == nil {
		x.Because = "was drawn by weight in " + p.g.because(p.Set)
	}
	p.g.explain(x)
}
