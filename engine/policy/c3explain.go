package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Explain shows the pool in the order of scores, as the decision finds it.
func (p *C3) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit = "place by score"
	before := p.Entries(now, nil)
	p.settle(now)
	kept := p.Entries(now, nil)
	open := p.pool.Open()
	var offers []engine.Entry
	for left := open; left != 0; {
		h := p.findAmongMute(left, p.standIn(open), false)
		left &^= 1 << h
		for _, e := range kept {
			if e.ID == p.set.ID(p.pool.Slot(h)) {
				offers = append(offers, e)
			}
		}
	}
	p.show(x, before, kept, offers)
	if len(offers) < p.c.MinPool {
		x.Because = p.tooFew(len(offers))
		return
	}
	slot, _ := p.set.Slot(offers[0].ID)
	w := p.set.Words(slot)
	x.Because = "has the least score of the " + itoa(len(offers)) + " entries on offer: " + itoa(int(p.set.InFlight(slot))) +
		" in flight here, times " + itoa(int(p.clients)) + ", and RIF " + decimal((w[c3RIF]-1)*probe.Unit>>c3Parts/100*100) +
		" on average; reports " + c3Time(w[c3Reported]) + ", answers this client in " + c3Time(w[c3Seen])
}

func c3Time(w uint64) string {
	if w == 0 {
		return "no time yet"
	}
	return latencyText(engine.Duration(w - 1))
}
