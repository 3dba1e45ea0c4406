package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Entries shows the pool as a decision at that instant would rank it: by then, readings may
// have left the windows that no call has let go yet.
func (p *PrequalKeen) Entries(now engine.Instant, dst []engine.Entry) []engine.Entry {
	used := p.pool.Used()
	v := p.viewOf(now, used, p.window.At(now), p.usual.At(now))
	return p.inOrder(&v, used, dst)
}

// inOrder appends those of some entries that are young enough, best first, changing nothing.
func (p *PrequalKeen) inOrder(v *keenView, among uint64, dst []engine.Entry) []engine.Entry {
	p.pool.SetThreshold(v.threshold)
	all := p.pool.Entries(v.now, p.c.MaxAge, nil)
	p.pool.SetThreshold(p.window.Threshold())
	for among != 0 {
		h := p.find(v, among, false)
		among &^= 1 << h
		for i := range all {
			if all[i].ID == p.set.ID(p.pool.Slot(h)) {
				dst = append(dst, all[i])
			}
		}
	}
	return dst
}

// Explain shows the pool as the decision finds it: what leaves first, then who is on offer, in
// the order in which they would decide.
func (p *PrequalKeen) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit = "place in the order of hot, cold and weight"
	before := p.Entries(now, nil)
	p.settle(now)
	open := p.pool.Open()
	v := p.view(now, open)
	offers := p.inOrder(&v, open, nil)
	p.show(x, before, p.Entries(now, nil), offers)
	if len(offers) < p.c.MinPool {
		x.Because = p.tooFew(len(offers))
		return
	}
	x.Because = p.because(&v, &offers[0], len(offers), p.pool.Cold(open))
}

func (p *PrequalKeen) because(v *keenView, best *engine.Entry, offered, cold int) string {
	limit := "there is no threshold"
	if v.threshold != engine.NoThreshold {
		limit = "RIF at most " + itoa(int(v.threshold))
	}
	switch cold {
	case 0:
		return "has the least RIF (" + itoa(int(best.RIF)) + ") of the entries on offer, which are all hot (" +
			itoa(offered) + ", above " + itoa(int(v.threshold)) + ")"
	case 1:
		return "is the only cold one (" + limit + ") of the " + itoa(offered) + " entries on offer"
	}
	latency := latencyText(best.Latency)
	if best.Latency == engine.UnknownLatency {
		latency = "unknown as all are"
		if v.standIn != engine.UnknownLatency {
			latency = latencyText(v.standIn) + ", the median of the others, its own being unknown"
		}
	}
	busy := (v.unit + keenRIF*uint64(best.RIF)) * probe.Unit / v.unit
	age := engine.Duration(v.now - best.At)
	stale := uint64(keenStale+min(age, mostAge)) / uint64(keenStale/probe.Unit)
	return "weighs least of the " + itoa(cold) + " cold entries on offer (" + limit + "): latency " + latency +
		", times " + decimal(busy) + " for RIF " + itoa(int(best.RIF)) + " where the median is " + itoa(int(v.unit/10)-1) +
		", times " + decimal(stale) + " for an age of " + latencyText(age) + "; " + itoa(offered-cold) + " are hot"
}
