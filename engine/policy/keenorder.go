package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// keenWeight is what cold entries are ordered by: less is better.
type keenWeight struct{ hi, lo uint64 }

func (a keenWeight) less(b keenWeight) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// unit is what a RIF of none weighs: ten times one more than the median RIF.
func (p *PrequalKeen) unit() uint64 { return unitOf(p.usual.Threshold()) }

func unitOf(median uint32) uint64 {
	if median == engine.NoThreshold { // nothing was read lately
		median = 0
	}
	return 10 * (uint64(median) + 1)
}

// weigh is a latency times its weight, in parts that are the same for all that are compared at one
// instant. Ages count in microseconds; load counts among the fastest too.
func weigh(latency uint64, rif uint32, unit uint64, age engine.Duration) (w keenWeight) {
	busy := min(unit+keenRIF*uint64(rif), mostWeight)
	stale := uint64(keenStale+min(age, mostAge)) / uint64(engine.Microsecond)
	w.hi, w.lo = bits.Mul64(max(latency, 1), busy*stale)
	return w
}

// keenView is what entries are compared with.
type keenView struct {
	now       engine.Instant
	unit      uint64
	standIn   uint64 // for a latency that is not known
	threshold uint32
}

func (p *PrequalKeen) view(now engine.Instant, latency engine.Duration) keenView {
	return p.viewOf(now, latency, p.window.Threshold(), p.usual.Threshold())
}

func (p *PrequalKeen) viewOf(now engine.Instant, latency engine.Duration, threshold, median uint32) keenView {
	return keenView{now, unitOf(median), uint64(max(latency, 0)), threshold}
}

// keenPlace is an entry's place in the order, but for ties.
type keenPlace struct {
	hot    uint64 // RIF and one for a hot entry, or 0
	weight keenWeight
	// Ties.
	rif     uint32
	latency uint64
	at      engine.Instant
	slot    uint32
}

func (p *PrequalKeen) place(v *keenView, h uint32) (k keenPlace) {
	rif, latency, at := p.pool.Said(h)
	k.rif, k.latency, k.at, k.slot = rif, uint64(latency), at, p.pool.Slot(h)
	if latency == engine.UnknownLatency {
		k.latency = v.standIn
	}
	if rif > v.threshold {
		k.hot = uint64(rif) + 1
	}
	k.weight = weigh(k.latency, rif, v.unit, engine.Duration(v.now-at))
	return k
}

func (p *PrequalKeen) before(a, b *keenPlace) bool {
	switch {
	case a.hot != b.hot:
		return a.hot < b.hot
	case a.weight != b.weight:
		return a.weight.less(b.weight)
	case a.rif != b.rif:
		return a.rif < b.rif
	case a.latency != b.latency:
		return a.latency < b.latency
	case a.at != b.at:
		return a.at > b.at
	}
	return p.set.Tie(a.slot) < p.set.Tie(b.slot)
}

// find is the first of some entries in the order, or the last; there is at least one.
func (p *PrequalKeen) find(v *keenView, among uint64, last bool) (found uint32) {
	found = uint32(bits.TrailingZeros64(among))
	best := p.place(v, found)
	for among &= among - 1; among != 0; among &= among - 1 {
		h := uint32(bits.TrailingZeros64(among))
		if k := p.place(v, h); p.before(&k, &best) != last {
			found, best = h, k
		}
	}
	return found
}
