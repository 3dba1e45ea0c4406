package policy

import "github.com/headroom-lb/headroom/engine"

// MaxChoices bounds the choices of [PowerOfTwo].
const MaxChoices = 16

// PowerOfTwo draws a few distinct open candidates and decides for the one with the fewest
// queries that this client has in flight.
//
// Cost O(choices²), whatever the fleet. Ties go to the one drawn first, which is uniform.
// With fewer open candidates than choices it compares them all. It fails only as the engine
// does, when no candidate is open.
type PowerOfTwo struct {
	engine.Base
	seed    uint64
	choices uint32
}

// NewPowerOfTwo makes the policy; choices is 1 to MaxChoices, else an [engine.ConfigError].
func NewPowerOfTwo(seed uint64, choices int) (*PowerOfTwo, error) {
	v := bounds{policy: "power_of_two"}
	v.whole("choices", choices, 1, MaxChoices)
	if err := v.err(); err != nil {
		return nil, err
	}
	return &PowerOfTwo{seed: seed, choices: uint32(choices)}, nil
}

// Name is "power_of_two".
func (*PowerOfTwo) Name() string { return "power_of_two" }

// Seed starts its draws.
func (p *PowerOfTwo) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *PowerOfTwo) Spec() string {
	l := newLine("power_of_two").seed(p.seed)
	l.whole("choices", int(p.choices), 2)
	return l.String()
}

// Decide compares distinct draws: the k-th is drawn among the open candidates not drawn yet.
func (p *PowerOfTwo) Decide(_ engine.Instant, _ engine.Key) error {
	s := p.Set
	if n := uint32(s.Eligible()); p.choices == 2 && n > 1 && !s.AnyTried() {
		slots := s.EligibleSlots()
		i, j := s.Draw(n), s.Draw(n-1)
		if j >= i {
			j++
		}
		slot, other := slots[i], slots[j]
		if s.InFlight(other) < s.InFlight(slot) {
			slot = other
		}
		s.Choose(slot, engine.RegimeDirect)
		return nil
	}
	s.Choose(p.draw(nil), engine.RegimeDirect)
	return nil
}

// Explain shows the drawn ones.
func (p *PowerOfTwo) Explain(_ engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit, x.TieBreak = unitInFlight, "and it was drawn first"
	slot := p.draw(x)
	x.Because = "has the fewest queries in flight (" + itoa(int(p.Set.InFlight(slot))) + ") of the " + itoa(len(x.Weighed)) + " drawn"
}

func (p *PowerOfTwo) draw(x *engine.Explanation) uint32 {
	s := p.Set
	open := uint32(s.Open())
	var drawn [MaxChoices]uint32 // ranks among the open, ascending
	var best, least uint32
	for k := range min(p.choices, open) {
		rank := s.Draw(open - k)
		i := uint32(0)
		for ; i < k && drawn[i] <= rank; i++ {
			rank++
		}
		copy(drawn[i+1:k+1], drawn[i:k])
		drawn[i] = rank
		slot := s.OpenAt(rank)
		if x != nil {
			x.Weigh(s, slot, uint64(s.InFlight(slot)))
		}
		if load := s.InFlight(slot); k == 0 || load < least {
			best, least = slot, load
		}
	}
	return best
}
