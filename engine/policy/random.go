package policy

import "github.com/headroom-lb/headroom/engine"

// Random decides uniformly among the open candidates.
//
// Cost O(1), one draw. No ties. It fails only as the engine does, when no candidate is open.
type Random struct {
	engine.Base
	seed uint64
}

// NewRandom makes a uniform random policy.
func NewRandom(seed uint64) *Random { return &Random{seed: seed} }

// Name is "random".
func (*Random) Name() string { return "random" }

// Seed starts its draws.
func (p *Random) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *Random) Spec() string { return newLine("random").seed(p.seed).String() }

// Decide draws one open candidate.
func (p *Random) Decide(_ engine.Instant, _ engine.Key, d *engine.Decision) error {
	*d = direct(p.Set.DrawOpen())
	return nil
}

// direct is the decision of a policy without regimes.
func direct(slot uint32) engine.Decision {
	return engine.Decision{Index: slot, Regime: engine.RegimeDirect, Threshold: engine.NoThreshold}
}
