package probe

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// Turns of removal.
const (
	Worst  = 0
	Oldest = 1
	Nobody = 2
)

// Serve is an ordinary decision in one go: it removes whose turn it is, finds the best entry
// and takes it, filling in the set's Out. It returns false, with nothing changed, for what
// the caller has to do step by step: an entry that may not decide or has no latency, replicas
// to avoid, a pool of more than sixteen, or fewer entries than the minimum once one has gone.
//
// It is written out where it could call, because a guest pays for a call, or for a jump over
// what is rare, about as much as for scanning the pool.
func (p *Pool) Serve(now engine.Instant, turn uint64) bool {
	p = p.self
	free, cold, threshold := p.free, p.cold, p.threshold
	n := p.max - bits.OnesCount64(free)
	if n <= p.minimum || !p.plain || p.set.AnyTried() {
		return false
	}
	if p.alike || turn > Oldest {
		return p.serveWithCare(now, turn)
	}

	var gone, best uint64
	if turn == Worst {
		gone, best = p.key.ends()
	} else {
		gone = p.age.most()
		p.key.w[gone%chunk] = blank
		best = p.key.least()
	}
	p = p.self
	h := gone % chunk
	r := p.rec(uint32(h))
	cold -= belowOrAt(r[recRIF], threshold)
	p.where[uint32(r[recSlot])] = 0
	p.key.w[h], p.age.w[h], p.speed.w[h] = blank, blank, blank
	r[recSlot] = 0
	free |= 1 << h

	h = best % chunk
	r = p.rec(uint32(h))
	d := &p.set.Out
	d.Offered, d.Cold, d.Hot, d.Threshold = uint32(n-1), uint32(cold), uint32(n-1-cold), threshold
	d.Regime, d.Cause = engine.RegimeHot-engine.Regime(min(cold, 1)), engine.CauseNone
	held, rif := r[recSlot], r[recRIF]
	d.Index, d.RIF, d.UsesLeft = uint32(held), uint32(rif), uint32(held>>32)-1
	d.Latency, d.Age = engine.Duration(r[recLat]), engine.Duration(now)-engine.Duration(r[recAt])
	if held>>32 != 1 {
		p.free, p.cold = free, cold
		r[recSlot] = held - 1<<32
		p.compensate(uint32(h))
		return true
	}
	p.where[uint32(held)] = 0
	p.key.w[h], p.age.w[h], p.speed.w[h] = blank, blank, blank
	r[recSlot] = 0
	p.free, p.cold = free|1<<h, cold-belowOrAt(rif, threshold)
	return true
}

// belowOrAt is one for a RIF that is cold, without a jump.
func belowOrAt(rif uint64, threshold uint32) (one int) {
	if uint32(rif) <= threshold {
		one = 1
	}
	return one
}

// serveWithCare is the rest of Serve where keys may tie or nobody is to be removed.
func (p *Pool) serveWithCare(now engine.Instant, turn uint64) bool {
	switch turn {
	case Worst:
		p.remove(p.worst())
	case Oldest:
		p.remove(p.firstIn())
	}
	h := p.holder(p.key.least(), false)
	p.Take(now, h, p.Len(), p.cold)
	return true
}
