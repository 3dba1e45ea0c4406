package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// MaxProbes bounds the probes due at once; what is over stays due.
const MaxProbes = 64

// Prequal decides on what replicas say of themselves in answer to asynchronous probes
// (Wydrowski, Kleinberg, Rumble, Archer: "Load is not what you should balance", NSDI 2024).
//
// Per query: entries that are too old leave; remove_rate entries leave, worst and oldest in
// turn; of the rest, an entry is hot when its RIF is above the quantile of recent RIFs; the
// fastest cold entry decides, or, when all are hot, the one with the least RIF; it is charged
// one use and its RIF grows by one; probe_rate probes become due. With fewer than min_pool
// entries on offer a uniform draw decides.
//
// Cost O(pool), whatever the fleet. Ties: RIF and latency, then the newer receipt, then a
// hash of seed and replica, so that clients do not agree on them. It fails as the engine does,
// when no candidate is open; under fit=strict it refuses a fleet outside its budget's domain.
type Prequal struct {
	self   *Prequal // see probe.Pool
	set    *engine.Set
	c      PrequalConfig
	spec   string
	pool   probe.Pool
	window probe.Window
	h      *[prequalHead]uint64
	b      budget
	due    engine.Instant  // nothing ages before it
	life   engine.Duration // of entries or readings, whichever is shorter
	held   bool

	incoming probe.Incoming // scratch: a fresh one for each reading would have to be cleared
}

// The policy's own words; the pool's and the window's follow.
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
	prequalHead
)

// NewPrequal makes the policy, or says which setting is wrong.
func NewPrequal(c PrequalConfig) (*Prequal, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Prequal{c: c, spec: c.spec(), life: min(c.MaxAge, c.WindowAge)}
	p.self = p
	p.pool.Init(c.Pool, c.MinPool, hotCold)
	p.window.Init(c.Window, c.WindowAge, c.Quantile)
	return p, nil
}

// Name is "prequal".
func (*Prequal) Name() string { return "prequal" }

// Spec is the canonical line.
func (p *Prequal) Spec() string { return p.spec }

// Seed starts the fallback, the rounding of the reuse budget and the probe targets.
func (p *Prequal) Seed() uint64 { return p.c.Seed }

// Layout asks for the pool and the window, and an error average per replica.
func (p *Prequal) Layout() engine.Layout {
	return engine.Layout{Fixed: prequalHead + p.pool.Words() + p.window.Words(), PerSlot: 1}
}

// Bind attaches pool and window to their words.
func (p *Prequal) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	p.set = s
	p.h = (*[prequalHead]uint64)(fixed)
	pool := fixed[prequalHead : prequalHead+p.pool.Words()]
	p.pool.Bind(pool, s, fresh)
	p.window.Bind(fixed[prequalHead+len(pool):])
	p.pool.SetThreshold(p.window.Threshold())
	p.refit(s.Eligible())
	p.rearm()
}

// Admit refuses a fleet outside the reuse budget's domain under fit=strict, until one inside
// it has been served: a live fleet that shrinks keeps serving on the last good budget.
func (p *Prequal) Admit(cs []engine.Candidate) error {
	eligible := 0
	for i := range cs {
		if cs[i].Status.Eligible() {
			eligible++
		}
	}
	if eligible > 0 && p.c.Strict && p.c.Reuse == 0 && p.h[wGoodFleet] == 0 {
		if _, ok := p.c.derive(eligible); !ok {
			return p.c.outsideDomain(eligible)
		}
	}
	return nil
}

// Moved carries the pool to the new slots.
func (p *Prequal) Moved(remap []int32) { p.h[wLeft] += uint64(p.pool.Moved(remap)) }

// Changed fits pool, removal and reuse to the eligible fleet.
func (p *Prequal) Changed() {
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
func (p *Prequal) refit(n int) {
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

// Decide applies the rule.
func (p *Prequal) Decide(now engine.Instant, _ engine.Key) error {
	p = p.self
	h := p.h
	h[wDecisions]++
	credit, removed := h[wRemove]+p.b.removeRate, h[wRemoved]
	turn := removed & 1
	if credit < probe.Unit {
		turn = probe.Nobody
	}
	if now >= p.due || credit >= 2*probe.Unit || !p.pool.Serve(now, turn) {
		h[wRemove] = credit
		return p.decideWithCare(now)
	}
	h = p.self.h
	if turn == probe.Nobody {
		h[wRemove] = credit
		return nil
	}
	h[wRemove], h[wRemoved] = credit-probe.Unit, removed+1
	return nil
}

// decideWithCare is the same rule step by step, for pools where anything is out of the
// ordinary.
func (p *Prequal) decideWithCare(now engine.Instant) error {
	if now >= p.due {
		p.expire(now)
	}
	p.removeDue()
	o := p.pool.Offered()
	if o.Entries < p.c.MinPool {
		p.fallback(&o)
		return nil
	}
	p.pool.Take(now, o.Best, o.Entries, o.Cold)
	if d := &p.set.Out; d.Latency == engine.UnknownLatency {
		d.Latency = o.Median
	}
	return nil
}

// rearm finds the next instant at which something could have aged.
func (p *Prequal) rearm() { p.due = min(p.pool.Due(p.c.MaxAge), p.window.Due()) }

// removeDue spends the removal credit against degradation: decisions use up good entries,
// so what stays gets worse. With nothing to remove the credit goes, and the turn stays.
func (p *Prequal) removeDue() {
	for h := p.h; h[wRemove] >= probe.Unit; h[wRemove] -= probe.Unit {
		if p.pool.Len() == 0 {
			h[wRemove] %= probe.Unit
			return
		}
		if h[wRemoved]&1 == probe.Worst {
			p.pool.RemoveWorst()
		} else {
			p.pool.RemoveOldest()
		}
		h[wRemoved]++
	}
}

func (p *Prequal) fallback(o *probe.Offer) {
	d := &p.set.Out
	d.Offered, d.Cold, d.Hot = uint32(o.Entries), uint32(o.Cold), uint32(o.Entries-o.Cold)
	d.Threshold = p.window.Threshold()
	d.Index, d.Regime, d.Cause = p.set.DrawOpen(), engine.RegimeFallback, engine.CauseThin
	if o.Entries == 0 {
		d.Cause = engine.CauseEmpty
	}
	d.RIF, d.Latency, d.Age, d.UsesLeft = 0, 0, 0, 0
	p.h[wFallbacks]++
	p.pool.Compensate(d.Index)
}

// Observe weighs failures: see aversion.go.
func (p *Prequal) Observe(now engine.Instant, slot uint32, r engine.Report) {
	if !p.c.Aversion || r.Outcome == engine.OutcomeCancelled {
		return
	}
	w := &p.set.Words(slot)[0]
	failed := r.Outcome != engine.OutcomeSuccess
	*w = learn(*w, failed)
	if failed {
		p.Forget(slot, now)
	}
}

// RecordLoad does nothing: readings tell this policy more.
func (*Prequal) RecordLoad(engine.Instant, uint32, engine.LoadReport) {}

// Forget drops a replica's entry: a query to it failed, or a probe did that was sent when
// asked.
func (p *Prequal) Forget(slot uint32, asked engine.Instant) {
	if p.pool.Drop(slot, asked) {
		p.h[wForgotten]++
	}
}

// Record takes a reading into the window and, unless it is stale, into the pool.
func (p *Prequal) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	p = p.self
	if now >= p.due {
		p.expire(now)
	}
	p.window.Add(now, rd.RIF)
	p.pool.SetThreshold(p.window.Threshold())
	in := &p.incoming
	in.Slot, in.Uses, in.Asked = slot, p.uses(), rd.Asked
	in.RIF, in.RawRIF, in.Latency, in.RawLatency = rd.RIF, rd.RIF, rd.Latency, rd.Latency
	if w := &p.set.Words(slot)[0]; *w != 0 {
		*w = forgive(*w)
		in.RIF, in.Latency = averse(*w, rd.RIF, rd.Latency)
	}
	a := p.pool.Record(now, in)
	p.due = min(p.due, probe.Later(now, p.life))
	p.count(a)
	return a
}

func (p *Prequal) count(a engine.Admission) {
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

// expire lets go what has aged.
func (p *Prequal) expire(now engine.Instant) {
	p.window.Expire(now)
	p.pool.SetThreshold(p.window.Threshold())
	p.h[wExpired] += uint64(p.pool.Expire(now, p.c.MaxAge))
	p.rearm()
}

// uses rounds the reuse budget at random so that its mean is kept.
func (p *Prequal) uses() uint32 {
	b := &p.b
	if b.rest != 0 && uint64(p.set.Draw(1<<30))*b.den < b.rest<<30 {
		return b.whole + 1
	}
	return b.whole
}

// Probes spends the probe credit on distinct eligible replicas.
func (p *Prequal) Probes(now engine.Instant, dst []engine.ID) []engine.ID {
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
	if k == 0 {
		return dst
	}
	p.h[wProbed], p.h[wProbedAt] = 1, uint64(now)
	p.h[wProbesDue] += uint64(k)
	return drawEligible(p.set, k, dst)
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

// Entries shows the pool as a decision at that instant would rank it: by then, readings may
// have left the window that no call has let go yet.
func (p *Prequal) Entries(now engine.Instant, dst []engine.Entry) []engine.Entry {
	p.pool.SetThreshold(p.window.At(now))
	dst = p.pool.Entries(now, p.c.MaxAge, dst)
	p.pool.SetThreshold(p.window.Threshold())
	return dst
}

// Inspect shows the counters and what was derived for the fleet.
func (p *Prequal) Inspect(c *engine.Counters, f *engine.Fit) {
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
		Threshold: p.window.Threshold(), WindowFilled: uint32(p.window.Len()), Shrunk: p.b.shrunk, Held: p.held,
	}
}

// Valid checks the restored words.
func (p *Prequal) Valid() bool {
	h := p.h
	for slot := range p.set.Len() {
		if p.set.Words(uint32(slot))[0] > errorOne {
			return false
		}
	}
	now := p.set.Last()
	return h[wRemove] < probe.Unit && h[wDecisions] < 1<<44 && h[wSpent] <= h[wDecisions]*p.c.ProbeRate && h[wProbed] <= 1 &&
		p.pool.Limit() == int(p.b.pool) && p.pool.Valid(now) && p.window.Valid(now)
}
