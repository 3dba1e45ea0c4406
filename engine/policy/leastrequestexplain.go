package policy

import "github.com/headroom-lb/headroom/engine"

// Explain shows the drawn ones while weights are equal, or the share of the one that was drawn or
// has its turn: then nothing is compared, and the others did not lose.
func (p *LeastRequest) Explain(now engine.Instant, key engine.Key, x *engine.Explanation) {
	if !p.weighted && now >= p.rampUntil {
		p.even.Explain(now, key, x)
		return
	}
	s := p.Set
	total, chosen := uint64(0), p.choose(now)
	for _, slot := range s.EligibleSlots() {
		if s.IsOpen(slot) {
			total += p.share(now, slot)
		}
	}
	how := "was drawn"
	if p.c.Bias == 0 {
		how = "has its turn"
	}
	x.Because = how + " with a share of " + percent(p.share(now, chosen), total) + " (weight " + itoa(int(s.Weight(chosen))) +
		", " + itoa(int(s.InFlight(chosen))) + " in flight)"
	for _, slot := range s.EligibleSlots() {
		if ramp := p.ramp(now, p.since(slot)); s.IsOpen(slot) && now < p.rampUntil && ramp < p.ramp(now, p.first) {
			x.Notes = append(x.Notes, "position "+itoa(int(slot))+" is ramped up: its share counts "+percent(ramp, p.ramp(now, p.first)))
		}
	}
}
