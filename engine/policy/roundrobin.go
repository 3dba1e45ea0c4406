package policy

import "github.com/headroom-lb/headroom/engine"

// RoundRobin decides for each open candidate in turn, in slot order, from a start that its
// seed draws.
//
// Cost O(1), O(log n) for the first decision after a change. The turn is
// anchored to the replica that served last, so reordering the set does not restart it; when
// that replica is gone the turn goes on from its slot. There are no ties. It fails only as
// the engine does, when no candidate is open.
type RoundRobin struct {
	engine.Base
	seed uint64
	turn cursor
}

// NewRoundRobin makes a rotation.
func NewRoundRobin(seed uint64) *RoundRobin { return &RoundRobin{seed: seed} }

// Name is "round_robin".
func (*RoundRobin) Name() string { return "round_robin" }

// Seed places the start.
func (p *RoundRobin) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *RoundRobin) Spec() string { return newLine("round_robin").seed(p.seed).String() }

// Layout asks for the cursor.
func (*RoundRobin) Layout() engine.Layout { return engine.Layout{Fixed: cursorWords} }

// Bind attaches the cursor.
func (p *RoundRobin) Bind(fixed []uint64, s *engine.Set, _ bool) {
	p.Set = s
	p.turn.bind(fixed)
}

// Moved keeps the turn with the replica that served last.
func (p *RoundRobin) Moved(remap []int32) { p.turn.moved(remap) }

// Changed looks for the turn among those eligible now.
func (p *RoundRobin) Changed() { p.turn.changed() }

// Decide takes the first open candidate at or after the cursor.
func (p *RoundRobin) Decide(_ engine.Instant, _ engine.Key) error {
	s, at := p.Set, p.turn.next
	if uint(at) >= uint(s.Eligible()) || s.AnyTried() { // an unsettled turn is beyond all
		return p.decideWithCare()
	}
	s.Choose(p.turn.pass(s, at), engine.RegimeDirect)
	return nil
}

func (p *RoundRobin) decideWithCare() error {
	s := p.Set
	s.Choose(p.turn.pass(s, open(s, p.turn.turn(s))), engine.RegimeDirect)
	return nil
}

// Valid checks the restored cursor.
func (p *RoundRobin) Valid() bool { return p.turn.valid() }

// Explain names the turn.
func (p *RoundRobin) Explain(_ engine.Instant, _ engine.Key, x *engine.Explanation) {
	turn := p.Set.EligibleSlots()[p.turn.turn(p.Set)]
	x.Because = "is the first open candidate from the one whose turn it is, candidate " + itoa(int(turn))
}
