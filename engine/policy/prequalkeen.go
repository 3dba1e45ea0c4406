package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// PrequalKeen is Prequal with a keener eye (variant=keen). Pool, threshold, hot before cold, reuse
// budget, compensation, removal and fallback are those of [Prequal]; what differs:
//
// A latency is smoothed per replica: a reading counts three tenths, what was remembered of the last
// ten seconds the rest. Cold entries, and equally busy hot ones, are ordered by weight,
//
//	latency * (1 + 0.7 * RIF / (1 + median)) * (1 + age / 100ms)
//
// the median being that of the last 128 RIFs read. Each probe goes to the best remembered of
// three random replicas, by latency and RIF; one that nothing is remembered of comes first, so that
// each is asked again when ten seconds have passed and a draw names it.
//
// Cost O(pool), whatever the fleet. Ties: RIF and latency, then the newer receipt, then a hash of
// seed and replica, so that clients do not agree on them. It fails as the engine does, when no
// candidate is open; under fit=strict it refuses a fleet outside its budget's domain.
type PrequalKeen struct {
	pooled
	spec   string
	window probe.Window
	usual  probe.Window    // of the RIFs that the median is of
	life   engine.Duration // of entries or readings, whichever is shorter
}

// DefaultPrequalKeen is the keen variant's setting: a window of 1000 and a quantile of 0.95.
func DefaultPrequalKeen(seed uint64) PrequalConfig {
	c := DefaultPrequal(seed)
	c.Window, c.Quantile = 1000, 9500
	return c
}

// The words of a slot after the core's: what is remembered of a replica.
const (
	wKeenLatency = pooledSlot + iota // smoothed, plus one, or 0 for nothing
	wKeenRIF                         // the last one read
	wKeenAt                          // when that was
	keenSlot
)

const (
	keenMemory = 10 * engine.Second
	keenNewest = 3 // tenths that a reading counts
	keenRIF    = 7 // tenths of RIF over its median
	keenStale  = 100 * engine.Millisecond
	keenMedian = 128 // RIFs
	keenDraws  = 3   // replicas for each probe
	mostWeight = 1 << 31
)

// NewPrequalKeen makes the policy, or says which setting is wrong.
func NewPrequalKeen(c PrequalConfig) (*PrequalKeen, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	p := &PrequalKeen{spec: c.keenSpec(), life: min(c.MaxAge, c.WindowAge)}
	p.init("prequal", c.PoolConfig, hotCold)
	p.window.Init(c.Window, c.WindowAge, c.Quantile)
	p.usual.Init(keenMedian, c.WindowAge, probe.Unit/2)
	return p, nil
}

// Spec is the canonical line.
func (p *PrequalKeen) Spec() string { return p.spec }

// Layout asks for the windows, and for what is remembered of each replica.
func (p *PrequalKeen) Layout() engine.Layout {
	return engine.Layout{Fixed: p.words() + p.window.Words() + p.usual.Words(), PerSlot: keenSlot}
}

// Bind attaches pool and windows to their words.
func (p *PrequalKeen) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	p.attach(fixed, s, fresh)
	rest := fixed[p.words():]
	p.window.Bind(rest)
	p.usual.Bind(rest[p.window.Words():])
	p.pool.SetThreshold(p.window.Threshold())
	p.rearm()
}

// rearm finds the next instant at which something could have aged.
func (p *PrequalKeen) rearm() {
	p.due = min(p.pool.Due(p.c.MaxAge), p.window.Due(), p.usual.Due())
}

// expire lets go what has aged.
func (p *PrequalKeen) expire(now engine.Instant) {
	p.window.Expire(now)
	p.usual.Expire(now)
	p.pool.SetThreshold(p.window.Threshold())
	p.h[wExpired] += uint64(p.pool.Expire(now, p.c.MaxAge))
	p.rearm()
}

// settle lets go what is due to leave, before a decision.
func (p *PrequalKeen) settle(now engine.Instant) {
	p.h[wRemove] += p.b.removeRate
	if now >= p.due {
		p.expire(now)
	}
	for {
		switch p.nextRemoval() {
		case probe.Worst:
			used := p.pool.Used()
			v := p.view(now, used)
			p.pool.Remove(p.find(&v, used, true))
		case probe.Oldest:
			p.pool.RemoveOldest()
		default:
			return
		}
	}
}

// Decide applies the rule.
func (p *PrequalKeen) Decide(now engine.Instant, _ engine.Key) error {
	p.h[wDecisions]++
	p.settle(now)
	open := p.pool.Open()
	n, cold := bits.OnesCount64(open), p.pool.Cold(open)
	if n < p.c.MinPool {
		p.fallback(n, cold, p.window.Threshold())
		return nil
	}
	v := p.view(now, open)
	p.pool.Take(now, p.find(&v, open, false), n, cold)
	if d := &p.set.Out; d.Latency == engine.UnknownLatency {
		d.Latency = v.standIn
	}
	return nil
}

// Inspect adds the window.
func (p *PrequalKeen) Inspect(c *engine.Counters, f *engine.Fit) {
	p.pooled.Inspect(c, f)
	f.Threshold, f.WindowFilled = p.window.Threshold(), uint32(p.window.Len())
}

// Valid checks the restored words.
func (p *PrequalKeen) Valid() bool {
	for slot := range uint32(p.set.Len()) {
		if !p.validMemory(p.set.Words(slot)) {
			return false
		}
	}
	return p.pooled.Valid() && p.window.Valid(p.set.Last()) && p.usual.Valid(p.set.Last())
}
