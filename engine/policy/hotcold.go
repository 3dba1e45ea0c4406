package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// hotCold is the hot-cold lexicographic rule (paper, section 4) as a [probe.Rank]: cold
// before hot, cold by latency; hot entries are all equal here, and the pool's own order, RIF
// first, tells them apart. Deciding takes the minimum of this order, removal its maximum.
func hotCold(rif uint32, latency uint64, threshold uint32) uint64 {
	if rif > threshold {
		return 1 << 63
	}
	return latency << 6
}

// outlook is what the rule sees before it decides.
type outlook struct {
	best         int // position of the best entry on offer
	offered      int
	cold         int
	median       engine.Duration
	onlyStandard bool // every entry on offer has a latency of its own
}

// look applies the rule to the entries on offer. Nearly always the whole pool is, and the
// answer is one scan; otherwise the order is walked term by term.
func look(p *probe.Pool) outlook {
	if n := p.Len(); p.Plain() {
		o := outlook{best: -1, offered: n, cold: p.Cold(), onlyStandard: true}
		if n > 0 {
			o.best = p.Best()
		}
		return o
	}
	o := p.Offered()
	return outlook{best: o.Best, offered: o.Entries, cold: o.Cold, median: o.Median}
}

// latency is the entry's latency as the rule ranked it.
func (o *outlook) latency(p *probe.Pool) engine.Duration {
	l := p.Latency(o.best)
	if l == engine.UnknownLatency && !o.onlyStandard {
		return o.median
	}
	return l
}

// regime names the branch that decided.
func (o *outlook) regime() engine.Regime {
	if o.cold > 0 {
		return engine.RegimeCold
	}
	return engine.RegimeHot
}
