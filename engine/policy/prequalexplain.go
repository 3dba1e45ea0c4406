package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Explain shows the pool as the decision finds it: what leaves first, then who is on offer, in
// the order in which they would decide.
func (p *Prequal) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit = "place in the hot-cold order"
	before := p.pool.Entries(now, p.c.MaxAge, nil)
	p.h[wRemove] += p.b.removeRate
	if now >= p.due {
		p.expire(now)
	}
	p.removeDue()
	kept := p.pool.Entries(now, p.c.MaxAge, nil)
	offers := p.pool.Offers(now, p.c.MaxAge, nil)
	o := p.pool.Offered()
	p.show(x, before, kept, offers)
	x.Because = p.because(&o, offers)
}

// show adds the entries: those on offer in the order in which they would decide, then the rest of
// those there were before.
func (p *pooled) show(x *engine.Explanation, before, kept, offers []engine.Entry) {
	verdict := engine.VerdictLost
	if len(offers) < p.c.MinPool {
		verdict = engine.VerdictUnweighed
	}
	for i := range offers {
		p.weigh(x, &offers[i], uint64(i), verdict)
	}
	for i := range before {
		e := &before[i]
		switch {
		case !holds(kept, e.ID):
			p.weigh(x, e, 0, engine.VerdictRemoved)
		case holds(offers, e.ID):
		case e.Eligible:
			p.weigh(x, e, 0, engine.VerdictTried)
		default:
			p.weigh(x, e, 0, engine.VerdictIneligible)
		}
	}
}

// tooFew is the reason of a fallback.
func (p *pooled) tooFew(entries int) string {
	return "was drawn among the open candidates, because the pool has " + itoa(entries) + " on offer" +
		", fewer than min_pool=" + itoa(p.c.MinPool)
}

func (p *pooled) weigh(x *engine.Explanation, e *engine.Entry, place uint64, v engine.Verdict) {
	slot, _ := p.set.Slot(e.ID)
	x.Weigh(p.set, slot, place)
	w := &x.Weighed[len(x.Weighed)-1]
	w.Entry, w.Verdict, w.Compared = e, v, v == engine.VerdictLost
}

func holds(es []engine.Entry, id engine.ID) bool {
	for i := range es {
		if es[i].ID == id {
			return true
		}
	}
	return false
}

func (p *Prequal) because(o *probe.Offer, offers []engine.Entry) string {
	if o.Entries < p.c.MinPool {
		return p.tooFew(o.Entries)
	}
	return hotColdReason(o, &offers[0], p.window.Threshold(), "entries on offer")
}

// hotColdReason says why the rule decides for the best of what it weighed.
func hotColdReason(o *probe.Offer, best *engine.Entry, threshold uint32, what string) string {
	limit := "there is no threshold"
	if threshold != engine.NoThreshold {
		limit = "RIF at most " + itoa(int(threshold))
	}
	switch {
	case o.Cold == 0:
		return "has the least RIF (" + itoa(int(best.RIF)) + ") of the " + what + ", which are all hot (" +
			itoa(o.Entries) + ", above " + itoa(int(threshold)) + ")"
	case o.Cold == 1:
		return "is the only cold one (" + limit + ") of the " + itoa(o.Entries) + " " + what
	case best.Latency == engine.UnknownLatency:
		return "ranks as the median latency (" + latencyText(o.Median) + "), its own being unknown, and none of the " +
			itoa(o.Cold) + " cold " + what + " is faster (" + limit + ")"
	}
	return "answers fastest (" + latencyText(best.Latency) + ") of the " + itoa(o.Cold) + " cold " + what + " (" +
		limit + "); " + itoa(o.Entries-o.Cold) + " are hot"
}
