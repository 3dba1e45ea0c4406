package probe

import "github.com/headroom-lb/headroom/engine"

// Due is an instant before which no entry reaches age maxAge.
func (p *Pool) Due(maxAge engine.Duration) engine.Instant {
	if p.Len() == 0 {
		return never
	}
	return Later(p.oldest, maxAge)
}

// never is later than every instant that matters.
const never = engine.Instant(1<<63 - 1)

// Later adds a span to an instant, which stays at the last one there is.
func Later(at engine.Instant, d engine.Duration) engine.Instant {
	if at > never-engine.Instant(d) {
		return never
	}
	return at + engine.Instant(d)
}

// Expire takes out every entry of age maxAge or more.
func (p *Pool) Expire(now engine.Instant, maxAge engine.Duration) (expired int) {
	for now >= p.Due(maxAge) && p.Len() > 0 {
		h := p.firstIn()
		// oldest is a lower bound: removals for other reasons do not search for the next.
		p.oldest = engine.Instant(p.rec(h)[recAt])
		if now < Later(p.oldest, maxAge) {
			break
		}
		p.remove(h)
		expired++
	}
	return expired
}

// Take charges an entry one use and fills in the set's Out with what it said, and with how
// many entries were on offer and how many of them cold. At zero uses the entry leaves;
// otherwise its RIF grows by one, since its replica has just been sent a query.
func (p *Pool) Take(now engine.Instant, h uint32, offered, cold int) {
	p = p.self
	h &= MaxPool - 1
	r, d := p.rec(h), &p.set.Out
	d.Offered, d.Cold, d.Hot, d.Threshold = uint32(offered), uint32(cold), uint32(offered-cold), p.threshold
	d.Regime, d.Cause = engine.RegimeHot-engine.Regime(min(cold, 1)), engine.CauseNone
	slot := r[recSlot]
	d.Index, d.RIF = uint32(slot), uint32(r[recRIF])
	d.Latency, d.Age = latencyOf(r[recLat]), engine.Duration(now)-engine.Duration(r[recAt])
	left := uint32(slot>>32) - 1
	d.UsesLeft = left
	if left == 0 {
		p.remove(h)
		return
	}
	r[recSlot] = slot - 1<<32
	p.compensate(h)
}

// Compensate adds one to the RIF of a replica's entry, if there is one.
func (p *Pool) Compensate(slot uint32) {
	if at := p.where[slot]; at != 0 {
		p.compensate(uint32(at - 1))
	}
}

func (p *Pool) compensate(h uint32) {
	p = p.self
	h &= MaxPool - 1
	r := p.rec(h)
	rif := uint32(r[recRIF])
	if rif == engine.NoThreshold-1 {
		return
	}
	r[recRIF]++
	if rif == p.threshold {
		p.cold--
	}
	if rif >= p.threshold || p.tied(h) {
		p.move(h)
	}
}

// tied reports whether a cold entry's place hangs on its RIF, because another may share its key.
func (p *Pool) tied(h uint32) bool {
	if !p.packs() {
		return false
	}
	k := p.key[h%packedRoom]
	next := p.order.find(h)>>2 + 1
	return int(next) < p.Len() && p.key[p.order.at(int(next))] == k
}
