package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Linear decides for the entry of the probe pool with the least weighted sum of latency and RIF,
//
//	(1 - lambda) * latency + lambda * alpha * RIF
//
// the rule that the Prequal paper compares itself with (NSDI 2024, appendix A). Pool, probing,
// reuse budget, expiry, compensation and removal are Prequal's; the worst entry is the one with
// the greatest sum. With fewer than min_pool entries on offer a uniform draw decides.
//
// Cost O(1) on pools of up to sixteen entries that are all eligible and of known latency, else
// O(pool), whatever the fleet. Ties: RIF and latency, then the newer receipt, then a hash of
// seed and replica, so that clients do not agree on them. It fails as the engine does, when no
// candidate is open; under fit=strict it refuses a fleet outside its budget's domain.
type Linear struct {
	self *Linear // see probe.Pool
	pooled
	lambda uint64
	alpha  engine.Duration
	spec   string
}

// LinearConfig is everything that can be set of [Linear]. Start from [DefaultLinear].
type LinearConfig struct {
	PoolConfig
	Lambda uint64          // share of RIF in the sum: 0 to 1, in parts per 10,000
	Alpha  engine.Duration // latency that one request in flight counts as: 0 to 1h
}

// DefaultLinear is the paper's setting: half and half, and its latency at a RIF of one.
func DefaultLinear(seed uint64) LinearConfig {
	return LinearConfig{PoolConfig: DefaultPool(seed), Lambda: probe.Unit / 2, Alpha: 75 * engine.Millisecond}
}

// NewLinear makes the policy, or says which setting is wrong.
func NewLinear(c LinearConfig) (*Linear, error) {
	v := bounds{policy: "linear"}
	v.parts("lambda", c.Lambda, 0, probe.Unit)
	v.span("alpha", c.Alpha, 0, mostAge)
	c.checkSize(&v)
	c.checkRates(&v)
	c.checkRest(&v)
	if err := v.err(); err != nil {
		return nil, err
	}
	p := &Linear{lambda: c.Lambda, alpha: c.Alpha, spec: c.spec()}
	p.self = p
	p.init("linear", c.PoolConfig, p.rank)
	return p, nil
}

func (s *settings) linear() LinearConfig {
	c := DefaultLinear(s.uint64("seed", 0))
	c.Lambda = s.parts("lambda", c.Lambda)
	c.Alpha = s.duration("alpha", c.Alpha)
	s.poolSize(&c.PoolConfig)
	s.poolRates(&c.PoolConfig)
	s.poolRest(&c.PoolConfig)
	return c
}

func (c *LinearConfig) spec() string {
	d := DefaultLinear(c.Seed)
	l := newLine("linear").seed(c.Seed)
	l.parts("lambda", c.Lambda, d.Lambda)
	l.span("alpha", c.Alpha, d.Alpha)
	c.printSize(l)
	c.printRates(l)
	c.printRest(l)
	return l.String()
}

// rank is the sum in parts of a nanosecond, as a [probe.Rank]. Sums that do not fit, of some
// twenty days and more, tie. The threshold is always zero: at a RIF of zero the sum does not
// depend on it, and above, the pool moves an entry whenever its RIF changes. What the pool counts
// as cold is then nothing to go by; see flat.
func (p *Linear) rank(rif uint32, latency uint64, _ uint32) uint64 {
	const most = 1<<64 - 2
	over, slow := bits.Mul64(latency, probe.Unit-p.lambda)
	above, busy := bits.Mul64(p.lambda*uint64(rif), uint64(p.alpha))
	sum, carry := bits.Add64(slow, busy, 0)
	if over|above|carry != 0 {
		return most
	}
	return min(sum, most)
}

// Spec is the canonical line.
func (p *Linear) Spec() string { return p.spec }

// Bind attaches the pool.
func (p *Linear) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	p.attach(fixed, s, fresh)
	p.pool.SetThreshold(0)
	p.due = p.pool.Due(p.c.MaxAge)
}

// Decide applies the rule.
func (p *Linear) Decide(now engine.Instant, _ engine.Key) error {
	p = p.self
	h := p.h
	h[wDecisions]++
	h[wRemove] += p.b.removeRate
	turn := h[wRemoved] & 1
	if h[wRemove] < probe.Unit {
		turn = probe.Nobody
	}
	if now >= p.due || h[wRemove] >= 2*probe.Unit || !p.pool.Serve(now, turn) {
		p.decideWithCare(now)
		return nil
	}
	if turn != probe.Nobody {
		h[wRemove] -= probe.Unit
		h[wRemoved]++
	}
	p.flat()
	return nil
}

// decideWithCare is the same step by step, for pools where anything is out of the ordinary.
func (p *Linear) decideWithCare(now engine.Instant) {
	if now >= p.due {
		p.expire(now)
	}
	p.removeDue()
	o := p.pool.Offered()
	if o.Entries < p.c.MinPool {
		p.fallback(o.Entries, o.Entries, engine.NoThreshold)
		return
	}
	p.pool.Take(now, o.Best, o.Entries, o.Entries)
	p.flat()
	if d := &p.set.Out; d.Latency == engine.UnknownLatency {
		d.Latency = o.Median
	}
}

// Entries shows the pool. Nothing in it is hot.
func (p *Linear) Entries(now engine.Instant, dst []engine.Entry) []engine.Entry {
	return cool(p.pooled.Entries(now, dst), len(dst))
}

// Explain shows the pool in the order of sums.
func (p *Linear) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit = "place by weighted sum of latency and RIF"
	before := p.Entries(now, nil)
	p.h[wRemove] += p.b.removeRate
	if now >= p.due {
		p.expire(now)
	}
	p.removeDue()
	offers := cool(p.pool.Offers(now, p.c.MaxAge, nil), 0)
	o := p.pool.Offered()
	p.show(x, before, p.Entries(now, nil), offers)
	if o.Entries < p.c.MinPool {
		x.Because = p.tooFew(o.Entries)
		return
	}
	best := &offers[0]
	latency, how := best.Latency, ""
	if latency == engine.UnknownLatency {
		latency, how = max(0, o.Median), ", the median of the others, its own being unknown"
	}
	sum := engine.Duration(p.rank(best.RIF, uint64(latency), 0) / probe.Unit)
	x.Because = "has the least sum (" + latencyText(sum) + ") of the " + itoa(o.Entries) + " entries on offer: latency " +
		latencyText(latency) + how + ", RIF " + itoa(int(best.RIF)) + " at " + latencyText(p.alpha) + " each, of which " +
		decimal(p.lambda) + " counts"
}
