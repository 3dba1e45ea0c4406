package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// PoolConfig is what the rules over a pool of probes have in common. Rates and shares are in
// parts per 10,000. Start from [DefaultPool]: every zero means zero.
type PoolConfig struct {
	Seed       uint64
	Pool       int             // m, most entries held: 1 to 64
	MaxAge     engine.Duration // an entry this old informs nothing: 1us to 1h
	ProbeRate  uint64          // r_probe, probes per query: 0 to 16
	RemoveRate uint64          // r_remove, removals per query: 0 to 16
	Delta      uint64          // net growth of the pool per query in the reuse budget: 0 to 100
	MinPool    int             // with fewer entries on offer the fallback decides: 1 to Pool
	Idle       engine.Duration // without probes for this long, min_pool of them are due; 0 turns it off
	Reuse      uint64          // overrides the reuse budget; 0 derives it
	Strict     bool            // refuse a fleet outside the budget's domain instead of fitting to it
	Aversion   bool            // rank replicas that fail this client's queries behind the others
}

// DefaultPool is the paper's setting with fit=auto and error aversion.
func DefaultPool(seed uint64) PoolConfig {
	return PoolConfig{
		Seed: seed, Pool: 16, MaxAge: engine.Second, ProbeRate: 3 * probe.Unit, RemoveRate: probe.Unit,
		Delta: probe.Unit, MinPool: 2, Idle: engine.Second / 2, Aversion: true,
	}
}

const (
	leastAge = engine.Microsecond
	mostAge  = 3600 * engine.Second
	mostRate = 16 * probe.Unit
)

// A rule's own settings stand between these groups, in its spec and in the order of checks.

func (c *PoolConfig) checkSize(v *bounds) {
	v.whole("pool", c.Pool, 1, probe.MaxPool)
	v.span("max_age", c.MaxAge, leastAge, mostAge)
}

func (c *PoolConfig) checkRates(v *bounds) {
	v.parts("probe_rate", c.ProbeRate, 0, mostRate)
	v.parts("remove_rate", c.RemoveRate, 0, mostRate)
	v.parts("delta", c.Delta, 0, 100*probe.Unit)
	v.whole("min_pool", c.MinPool, 1, c.Pool)
}

func (c *PoolConfig) checkRest(v *bounds) {
	v.span("idle", c.Idle, 0, mostAge)
	if c.Reuse != 0 {
		v.parts("reuse", c.Reuse, probe.Unit, 1000000*probe.Unit)
	}
}

func (s *settings) poolSize(c *PoolConfig) {
	c.Pool = s.integer("pool", c.Pool)
	c.MaxAge = s.duration("max_age", c.MaxAge)
}

func (s *settings) poolRates(c *PoolConfig) {
	c.ProbeRate = s.parts("probe_rate", c.ProbeRate)
	c.RemoveRate = s.parts("remove_rate", c.RemoveRate)
	c.Delta = s.parts("delta", c.Delta)
	c.MinPool = s.integer("min_pool", min(c.MinPool, c.Pool))
}

func (s *settings) poolRest(c *PoolConfig) {
	c.Idle = s.duration("idle", c.MaxAge/2)
	c.Reuse = s.parts("reuse", 0)
	if v, ok := s.text("reuse"); ok && c.Reuse == 0 {
		s.fail("reuse", v, "1 to 1000000")
	}
	c.Strict = s.choice("fit", "auto", "strict") == "strict"
	c.Aversion = s.choice("aversion", "on", "off") == "on"
	s.choice("fallback", "random")
}

func (c *PoolConfig) printSize(l *line) {
	d := DefaultPool(c.Seed)
	l.whole("pool", c.Pool, d.Pool)
	l.span("max_age", c.MaxAge, d.MaxAge)
}

func (c *PoolConfig) printRates(l *line) {
	d := DefaultPool(c.Seed)
	l.parts("probe_rate", c.ProbeRate, d.ProbeRate)
	l.parts("remove_rate", c.RemoveRate, d.RemoveRate)
	l.parts("delta", c.Delta, d.Delta)
	l.whole("min_pool", c.MinPool, min(d.MinPool, c.Pool))
}

func (c *PoolConfig) printRest(l *line) {
	l.span("idle", c.Idle, c.MaxAge/2)
	l.parts("reuse", c.Reuse, 0)
	if c.Strict {
		l.set("fit", "strict")
	}
	if !c.Aversion {
		l.set("aversion", "off")
	}
}
