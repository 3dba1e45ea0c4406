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
func (p *Random) Decide(_ engine.Instant, _ engine.Key) error {
	p.Set.Choose(p.Set.DrawOpen(), engine.RegimeDirect)
	return nil
}

// Explain says that nothing was weighed.
func (p *Random) Explain(_ engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Because = "was drawn among " + plural(p.Set.Open(), "open candidate") + ", each as likely"
}
