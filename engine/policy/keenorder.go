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
	standIn   engine.Duration // for a latency that is not known: the median of those compared, or unknown
	threshold uint32
}

// view is what some entries are compared with now.
func (p *PrequalKeen) view(now engine.Instant, among uint64) keenView {
	return p.viewOf(now, among, p.window.Threshold(), p.usual.Threshold())
}

func (p *PrequalKeen) viewOf(now engine.Instant, among uint64, threshold, median uint32) keenView {
	v := keenView{now: now, unit: unitOf(median), standIn: engine.UnknownLatency, threshold: threshold}
	if p.pool.Mute() {
		v.standIn = p.pool.Median(among)
	}
	return v
}

// latency is one that stands for what is not known: the median, or nothing.
func (v *keenView) latency(l engine.Duration) uint64 {
	if l == engine.UnknownLatency {
		l = max(v.standIn, 0)
	}
	return uint64(l)
}

// keenPlace is an entry's place in the order, but for ties.
type keenPlace struct {
	hot    uint64 // RIF and one for a hot entry, or 0
	weight keenWeight
}

func (p *PrequalKeen) place(v *keenView, h uint32) (k keenPlace) {
	rif, latency, at := p.pool.Said(h)
	if rif > v.threshold {
		k.hot = uint64(rif) + 1
	}
	k.weight = weigh(v.latency(latency), rif, v.unit, engine.Duration(v.now-at))
	return k
}

// before reports whether entry i, whose place is a, comes before entry j in b.
func (p *PrequalKeen) before(v *keenView, a, b *keenPlace, i, j uint32) bool {
	switch {
	case a.hot != b.hot:
		return a.hot < b.hot
	case a.weight != b.weight:
		return a.weight.less(b.weight)
	}
	return p.earlier(v, i, j)
}

// earlier settles equal places.
func (p *PrequalKeen) earlier(v *keenView, i, j uint32) bool {
	a, la, ta := p.pool.Said(i)
	b, lb, tb := p.pool.Said(j)
	switch {
	case a != b:
		return a < b
	case v.latency(la) != v.latency(lb):
		return v.latency(la) < v.latency(lb)
	case ta != tb:
		return ta > tb
	}
	return p.set.Tie(p.pool.Slot(i)) < p.set.Tie(p.pool.Slot(j))
}

// find is the first of some entries in the order, or the last; there is at least one.
func (p *PrequalKeen) find(v *keenView, among uint64, last bool) (found uint32) {
	found = uint32(bits.TrailingZeros64(among))
	best := p.place(v, found)
	for among &= among - 1; among != 0; among &= among - 1 {
		h := uint32(bits.TrailingZeros64(among))
		if k := p.place(v, h); p.before(v, &k, &best, h, found) != last {
			found, best = h, k
		}
	}
	return found
}
