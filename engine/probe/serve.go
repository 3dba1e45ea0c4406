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
// what is rare, about as much as for thirty plain instructions.
func (p *Pool) Serve(now engine.Instant, turn uint64) bool {
	p = p.self
	free, cold := p.free, p.cold
	n := p.max - bits.OnesCount64(free)
	if n <= p.minimum || p.odd != 0 || p.set.AnyTried() {
		return false
	}
	order, ages := p.order, p.ages
	if turn != Nobody {
		n--
		gone := order.at(n)
		if turn == Oldest {
			gone = ages.at(0)
		}
		at := order.find(gone)
		order, ages = order.cut(at), ages.cut(ages.find(gone))
		cold -= lessKey(uint64(at), uint64(cold)<<2) // the cold come first
		r := p.rec(gone)
		p.where[uint32(r[recSlot])] = 0
		r[recSlot] = 0
		p.key[gone%packedRoom] = blank
		free |= 1 << gone
	}

	h := order.at(0)
	r := p.rec(h)
	d := &p.set.Out
	d.Offered, d.Cold, d.Hot, d.Threshold = uint32(n), uint32(cold), uint32(n-cold), p.threshold
	d.Regime, d.Cause = engine.RegimeHot-engine.Regime(min(cold, 1)), engine.CauseNone
	held := r[recSlot]
	d.Index, d.RIF, d.UsesLeft = uint32(held), uint32(r[recRIF]), uint32(held>>32)-1
	d.Latency, d.Age = engine.Duration(r[recLat]), engine.Duration(now)-engine.Duration(r[recAt])
	if held>>32 != 1 {
		p.free, p.cold, p.order, p.ages = free, cold, order, ages
		r[recSlot] = held - 1<<32
		p.compensate(h)
		return true
	}
	p.where[uint32(held)] = 0
	r[recSlot] = 0
	p.key[h%packedRoom] = blank
	p.free, p.cold = free|1<<h, cold-min(cold, 1)
	p.order, p.ages = order>>4, ages.cut(ages.find(h))
	return true
}
