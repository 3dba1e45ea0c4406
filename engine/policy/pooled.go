package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// MaxProbes bounds the probes due at once; what is over stays due.
const MaxProbes = 64

// pooled is what the rules over a pool of probes share: the pool with its fit, budget and
// removal, probing, error aversion and the counters. A rule embeds it and says which entry
// decides and which is the worst.
type pooled struct {
	name string
	c    PoolConfig
	set  *engine.Set
	pool probe.Pool
	h    *[pooledHead]uint64
	b    budget
	errs aversion
	due  engine.Instant // nothing ages before it
	held bool

	incoming probe.Incoming // scratch: a fresh one for each reading would have to be cleared
}

// The core's own words; the pool's follow, and then those of the rule.
const (
	wRemove    = iota // removal credit, parts per 10,000
	wRemoved          // entries removed, the worst and the oldest in turn
	wDecisions        // each is worth probe_rate
	wSpent            // of that, parts per 10,000: probes that came due, and credit dropped
	wProbed           // 1 once probes were due
	wProbedAt         // when they last were
	wGoodFleet        // last fleet size inside the budget's domain, for fit=strict
	wAdmitted         // counters from here on
	wReplaced
	wEvicted
	wStale
	wExpired
	wForgotten
	wLeft // with their replica
	wFallbacks
	wProbesDue
	wHeld
	wAversion  // aversion's words
	pooledHead = wAversion + aversionHead
)

// pooledSlot is how many words of a slot the core has.
const pooledSlot = aversionSlot

func (p *pooled) init(name string, c PoolConfig, rank probe.Rank) {
	p.name, p.c = name, c
	p.pool.Init(c.Pool, c.MinPool, rank)
}

// Name is the spec name.
func (p *pooled) Name() string { return p.name }

// Seed starts the fallback, the rounding of the reuse budget and the probe targets.
func (p *pooled) Seed() uint64 { return p.c.Seed }

// words is how many fixed words the core needs.
func (p *pooled) words() int { return pooledHead + p.pool.Words() }

// Layout asks for the pool, and an error average for each replica.
func (p *pooled) Layout() engine.Layout {
	return engine.Layout{Fixed: p.words(), PerSlot: pooledSlot}
}

// attach binds the core to the first of the fixed words.
func (p *pooled) attach(fixed []uint64, s *engine.Set, fresh bool) {
	p.set = s
	p.h = (*[pooledHead]uint64)(fixed)
	p.errs = aversion{off: !p.c.Aversion, set: s, words: (*[aversionHead]uint64)(p.h[wAversion:])}
	p.pool.Bind(fixed[pooledHead:p.words()], s, fresh)
	p.refit(s.Eligible())
}

// Admit refuses a fleet outside the reuse budget's domain under fit=strict, until one inside
// it has been served: a live fleet that shrinks keeps serving on the last good budget.
func (p *pooled) Admit(cs []engine.Candidate) error {
	eligible := 0
	for i := range cs {
		if cs[i].Status.Eligible() {
			eligible++
		}
	}
	if eligible > 0 && p.c.Strict && p.c.Reuse == 0 && p.h[wGoodFleet] == 0 {
		if _, ok := p.c.derive(eligible); !ok {
			return p.c.outsideDomain(p.name, eligible)
		}
	}
	return nil
}

// Moved carries the pool to the new slots.
func (p *pooled) Moved(remap []int32) { p.h[wLeft] += uint64(p.pool.Moved(remap)) }

// Changed fits pool, removal and reuse to the eligible fleet.
func (p *pooled) Changed() {
	p.pool.Changed()
	n := p.set.Eligible()
	if n > 0 && p.c.Strict && p.c.Reuse == 0 {
		if _, ok := p.c.derive(n); ok {
			p.h[wGoodFleet] = uint64(n)
		} else {
			p.h[wHeld]++
		}
	}
	p.refit(n)
	p.h[wEvicted] += uint64(p.pool.SetLimit(int(p.b.pool)))
}

// refit derives what is not state: the budget in force for n eligible replicas.
func (p *pooled) refit(n int) {
	b, ok := p.c.derive(n)
	p.held = false
	switch {
	case p.c.Reuse != 0:
		b.num, b.den = p.c.Reuse, probe.Unit
	case ok || n == 0: // with nobody to serve there is nothing to fit to: entries wait
	case !p.c.Strict:
		b = p.c.fit(n)
	case p.h[wGoodFleet] != 0:
		b, _ = p.c.derive(int(min(p.h[wGoodFleet], engine.MaxCandidates)))
		p.held = true
	}
	b.settle()
	p.b = b
}

// expire lets go the entries that have aged, and finds the next instant at which one could.
func (p *pooled) expire(now engine.Instant) {
	p.h[wExpired] += uint64(p.pool.Expire(now, p.c.MaxAge))
	p.due = p.pool.Due(p.c.MaxAge)
}

// nextRemoval spends one from the removal credit and says whose turn it is, or probe.Nobody. It
// works against degradation: decisions use up good entries, so what stays gets worse. With
// nothing to remove the credit goes, and the turn stays.
func (p *pooled) nextRemoval() uint64 {
	h := p.h
	if h[wRemove] < probe.Unit {
		return probe.Nobody
	}
	if p.pool.Len() == 0 {
		h[wRemove] %= probe.Unit
		return probe.Nobody
	}
	turn := h[wRemoved] & 1
	h[wRemove] -= probe.Unit
	h[wRemoved]++
	return turn
}

// removeDue removes by the pool's own order.
func (p *pooled) removeDue() {
	for {
		switch p.nextRemoval() {
		case probe.Worst:
			p.pool.RemoveWorst()
		case probe.Oldest:
			p.pool.RemoveOldest()
		default:
			return
		}
	}
}

// fallback draws among the open candidates, when the pool has too few entries on offer.
func (p *pooled) fallback(entries, cold int, threshold uint32) {
	d := &p.set.Out
	d.Offered, d.Cold, d.Hot = uint32(entries), uint32(cold), uint32(entries-cold)
	d.Threshold = threshold
	d.Index, d.Regime, d.Cause = p.set.DrawOpen(), engine.RegimeFallback, engine.CauseThin
	if entries == 0 {
		d.Cause = engine.CauseEmpty
	}
	d.RIF, d.Latency, d.Age, d.UsesLeft = 0, 0, 0, 0
	p.h[wFallbacks]++
	p.pool.Compensate(d.Index)
}

// flat takes hot and cold out of a decision by an entry: not every rule knows them.
func (p *pooled) flat() {
	d := &p.set.Out
	d.Cold, d.Hot, d.Threshold, d.Regime = d.Offered, 0, engine.NoThreshold, engine.RegimeDirect
}

// Observe weighs failures: see aversion.go.
func (p *pooled) Observe(now engine.Instant, slot uint32, r engine.Report) {
	if p.errs.observe(now, slot, r.Outcome) {
		p.Forget(slot, now)
	}
}

// RecordLoad does nothing: readings tell these policies more.
func (*pooled) RecordLoad(engine.Instant, uint32, engine.LoadReport) {}

// Forget drops a replica's entry: a query to it failed, or a probe did that was sent when
// asked.
func (p *pooled) Forget(slot uint32, asked engine.Instant) {
	if p.pool.Drop(slot, asked) {
		p.h[wForgotten]++
	}
}

// Record takes a reading into the pool, unless it is stale. A rule with more to remember has its
// own.
func (p *pooled) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	if now >= p.due {
		p.expire(now)
	}
	a := p.admit(now, slot, rd)
	p.due = min(p.due, probe.Later(now, p.c.MaxAge))
	return a
}

// admit takes a reading into the pool, unless it is stale. As ranked it stays in incoming.
func (p *pooled) admit(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	in := &p.incoming
	in.Slot, in.Uses, in.Asked = slot, p.uses(), rd.Asked
	p.errs.rank(now, in, &rd)
	a := p.pool.Record(now, in)
	p.count(a)
	return a
}

func (p *pooled) count(a engine.Admission) {
	h := p.h
	switch a {
	case engine.Replaced:
		h[wReplaced]++
	case engine.DroppedStale:
		h[wStale]++
	case engine.EvictedOldest:
		h[wEvicted]++
		h[wAdmitted]++
	default:
		h[wAdmitted]++
	}
}

// uses rounds the reuse budget at random so that its mean is kept.
func (p *pooled) uses() uint32 {
	b := &p.b
	if b.rest != 0 && uint64(p.set.Draw(1<<30))*b.den < b.rest<<30 {
		return b.whole + 1
	}
	return b.whole
}

// Probes spends the probe credit on distinct eligible replicas.
func (p *pooled) Probes(now engine.Instant, dst []engine.ID) []engine.ID {
	if k := p.probesDue(now); k != 0 {
		return drawEligible(p.set, k, dst)
	}
	return dst
}

// probesDue spends the probe credit, and says on how many; there are as many eligible replicas.
func (p *pooled) probesDue(now engine.Instant) uint32 {
	eligible := uint32(p.set.Eligible())
	due := (p.h[wDecisions]*p.c.ProbeRate - p.h[wSpent]) / probe.Unit
	wanted := min(due, uint64(eligible)) // no replica twice: what is over goes
	k := uint32(min(wanted, MaxProbes))
	p.h[wSpent] += (due - wanted + uint64(k)) * probe.Unit
	last := p.set.First()
	if p.h[wProbed] == 1 {
		last = engine.Instant(p.h[wProbedAt])
	}
	if due == 0 && p.c.Idle > 0 && uint64(now)-uint64(last) >= uint64(p.c.Idle) {
		k = min(uint32(p.c.MinPool), eligible)
	}
	if k != 0 {
		p.h[wProbed], p.h[wProbedAt] = 1, uint64(now)
		p.h[wProbesDue] += uint64(k)
	}
	return k
}

// drawEligible appends k distinct eligible replicas, uniform without replacement (Floyd's subset
// sampling); there are at least k.
func drawEligible(s *engine.Set, k uint32, dst []engine.ID) []engine.ID {
	from := len(dst)
	slots := s.EligibleSlots()
	for top := uint32(len(slots)) - k; top < uint32(len(slots)); top++ {
		id := s.ID(slots[s.Draw(top+1)])
		if slices.Contains(dst[from:], id) {
			id = s.ID(slots[top])
		}
		dst = append(dst, id)
	}
	return dst
}

// Entries shows the pool.
func (p *pooled) Entries(now engine.Instant, dst []engine.Entry) []engine.Entry {
	return p.pool.Entries(now, p.c.MaxAge, dst)
}

// cool marks entries for a rule that knows no hot ones.
func cool(es []engine.Entry, from int) []engine.Entry {
	for i := from; i < len(es); i++ {
		es[i].Hot = false
	}
	return es
}

// Inspect shows the counters and what was derived for the fleet.
func (p *pooled) Inspect(c *engine.Counters, f *engine.Fit) {
	h := p.h
	removed := h[wRemoved]
	*c = engine.Counters{
		Admitted: h[wAdmitted], Replaced: h[wReplaced], EvictedOldest: h[wEvicted], DroppedStale: h[wStale],
		RemovedWorst: (removed + 1) / 2, RemovedOldest: removed / 2, Expired: h[wExpired], Forgotten: h[wForgotten],
		Decisions: h[wDecisions], Fallbacks: h[wFallbacks], Readings: h[wAdmitted] + h[wReplaced] + h[wStale], ProbesDue: h[wProbesDue], HeldFit: h[wHeld],
	}
	// What was admitted and went no other way was used up.
	c.Exhausted = c.Admitted - c.EvictedOldest - removed - c.Expired - c.Forgotten - h[wLeft] - uint64(p.pool.Len())
	*f = engine.Fit{
		Pool: uint32(p.pool.Limit()), RemoveRate: uint32(p.b.removeRate), ReuseBudget: p.b.num * probe.Unit / p.b.den,
		Threshold: engine.NoThreshold, Shrunk: p.b.shrunk, Held: p.held,
	}
}

// Valid checks the restored words.
func (p *pooled) Valid() bool {
	h := p.h
	return p.errs.valid() && h[wRemove] < probe.Unit && h[wDecisions] < 1<<44 && h[wSpent] <= h[wDecisions]*p.c.ProbeRate && h[wProbed] <= 1 &&
		p.pool.Limit() == int(p.b.pool) && p.pool.Valid(p.set.Last())
}
