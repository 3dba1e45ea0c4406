package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Prequal decides on what replicas say of themselves in answer to asynchronous probes
// (Wydrowski, Kleinberg, Rumble, Archer: "Load is not what you should balance", NSDI 2024).
//
// Per query: entries that are too old leave; remove_rate entries leave, worst and oldest in
// turn; of the rest, an entry is hot when its RIF is above the quantile of recent RIFs; the
// fastest cold entry decides, or, when all are hot, the one with the least RIF; it is charged
// one use and its RIF grows by one; probe_rate probes become due. With fewer than min_pool
// entries on offer a uniform draw decides.
//
// Cost O(1) on pools of up to sixteen entries that are all eligible and of known latency, else
// O(pool), whatever the fleet. Ties: RIF and latency, then the newer receipt, then a hash of
// seed and replica, so that clients do not agree on them. It fails as the engine does, when no
// candidate is open; under fit=strict it refuses a fleet outside its budget's domain.
type Prequal struct {
	self *Prequal // see probe.Pool
	pooled
	spec   string
	window probe.Window
	life   engine.Duration // of entries or readings, whichever is shorter
}

// NewPrequal makes the policy, or says which setting is wrong.
func NewPrequal(c PrequalConfig) (*Prequal, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	p := &Prequal{spec: c.spec(), life: min(c.MaxAge, c.WindowAge)}
	p.self = p
	p.init("prequal", c.PoolConfig, hotCold)
	p.window.Init(c.Window, c.WindowAge, c.Quantile)
	return p, nil
}

// Spec is the canonical line.
func (p *Prequal) Spec() string { return p.spec }

// Layout asks for the window too.
func (p *Prequal) Layout() engine.Layout {
	return engine.Layout{Fixed: p.words() + p.window.Words(), PerSlot: pooledSlot}
}

// Bind attaches pool and window to their words.
func (p *Prequal) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	p.attach(fixed, s, fresh)
	p.window.Bind(fixed[p.words():])
	p.pool.SetThreshold(p.window.Threshold())
	p.rearm()
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
		p.decideWithCare(now)
		return nil
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
func (p *Prequal) decideWithCare(now engine.Instant) {
	if now >= p.due {
		p.expire(now)
	}
	p.removeDue()
	o := p.pool.Offered()
	if o.Entries < p.c.MinPool {
		p.fallback(o.Entries, o.Cold, p.window.Threshold())
		return
	}
	p.pool.Take(now, o.Best, o.Entries, o.Cold)
	if d := &p.set.Out; d.Latency == engine.UnknownLatency {
		d.Latency = o.Median
	}
}

// rearm finds the next instant at which something could have aged.
func (p *Prequal) rearm() { p.due = min(p.pool.Due(p.c.MaxAge), p.window.Due()) }

// Record takes a reading into the window and, unless it is stale, into the pool.
func (p *Prequal) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	p = p.self
	if now >= p.due {
		p.expire(now)
	}
	p.window.Add(now, rd.RIF)
	p.pool.SetThreshold(p.window.Threshold())
	a := p.admit(now, slot, rd)
	p.due = min(p.due, probe.Later(now, p.life))
	return a
}

// expire lets go what has aged.
func (p *Prequal) expire(now engine.Instant) {
	p.window.Expire(now)
	p.pool.SetThreshold(p.window.Threshold())
	p.h[wExpired] += uint64(p.pool.Expire(now, p.c.MaxAge))
	p.rearm()
}

// Entries shows the pool as a decision at that instant would rank it: by then, readings may
// have left the window that no call has let go yet.
func (p *Prequal) Entries(now engine.Instant, dst []engine.Entry) []engine.Entry {
	p.pool.SetThreshold(p.window.At(now))
	dst = p.pool.Entries(now, p.c.MaxAge, dst)
	p.pool.SetThreshold(p.window.Threshold())
	return dst
}

// Inspect adds the window.
func (p *Prequal) Inspect(c *engine.Counters, f *engine.Fit) {
	p.pooled.Inspect(c, f)
	f.Threshold, f.WindowFilled = p.window.Threshold(), uint32(p.window.Len())
}

// Valid checks the restored words.
func (p *Prequal) Valid() bool { return p.pooled.Valid() && p.window.Valid(p.set.Last()) }
