package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// PrequalConfig is everything that can be set of [Prequal]. Rates, shares and the quantile
// are in parts per 10,000. Start from [DefaultPrequal]: every zero means zero.
type PrequalConfig struct {
	Seed       uint64
	Pool       int             // m, most entries held: 1 to 64
	MaxAge     engine.Duration // an entry this old informs nothing: 1us to 1h
	Quantile   uint64          // of the RIF window, above which an entry is hot; 0 ranks by RIF alone, 1 by latency alone
	ProbeRate  uint64          // r_probe, probes per query: 0 to 16
	RemoveRate uint64          // r_remove, removals per query: 0 to 16
	Delta      uint64          // net growth of the pool per query in the reuse budget: 0 to 100
	MinPool    int             // with fewer entries on offer the fallback decides: 1 to Pool
	Window     int             // RIF readings remembered: 1 to 4096
	WindowAge  engine.Duration // and for how long; raising it steadies the threshold
	Idle       engine.Duration // without probes for this long, min_pool of them are due; 0 turns it off
	Reuse      uint64          // overrides the reuse budget; 0 derives it
	Strict     bool            // refuse a fleet outside the budget's domain instead of fitting to it
	Aversion   bool            // rank replicas that fail this client's queries behind the others
}

// DefaultPrequal is the paper's setting with a window of 128, fit=auto and error aversion.
func DefaultPrequal(seed uint64) PrequalConfig {
	return PrequalConfig{
		Seed: seed, Pool: 16, MaxAge: engine.Second, Quantile: 8400, ProbeRate: 3 * probe.Unit,
		RemoveRate: probe.Unit, Delta: probe.Unit, MinPool: 2, Window: 128,
		WindowAge: engine.Second, Idle: engine.Second / 2, Aversion: true,
	}
}

const (
	leastAge = engine.Microsecond
	mostAge  = 3600 * engine.Second
	mostRate = 16 * probe.Unit
)

// Validate checks everything that does not need the fleet's size.
func (c *PrequalConfig) Validate() error {
	v := bounds{policy: "prequal"}
	v.whole("pool", c.Pool, 1, probe.MaxPool)
	v.span("max_age", c.MaxAge, leastAge, mostAge)
	v.parts("quantile", c.Quantile, 0, probe.Unit)
	v.parts("probe_rate", c.ProbeRate, 0, mostRate)
	v.parts("remove_rate", c.RemoveRate, 0, mostRate)
	v.parts("delta", c.Delta, 0, 100*probe.Unit)
	v.whole("min_pool", c.MinPool, 1, c.Pool)
	v.whole("window", c.Window, 1, probe.MaxWindow)
	v.span("window_age", c.WindowAge, leastAge, mostAge)
	v.span("idle", c.Idle, 0, mostAge)
	if c.Reuse != 0 {
		v.parts("reuse", c.Reuse, probe.Unit, 1000000*probe.Unit)
	}
	return v.err()
}

func (s *settings) prequal() PrequalConfig {
	c := DefaultPrequal(s.uint64("seed", 0))
	c.Pool = s.integer("pool", c.Pool)
	c.MaxAge = s.duration("max_age", c.MaxAge)
	c.Quantile = s.parts("quantile", c.Quantile)
	c.ProbeRate = s.parts("probe_rate", c.ProbeRate)
	c.RemoveRate = s.parts("remove_rate", c.RemoveRate)
	c.Delta = s.parts("delta", c.Delta)
	c.MinPool = s.integer("min_pool", min(c.MinPool, c.Pool))
	c.Window = s.integer("window", c.Window)
	c.WindowAge = s.duration("window_age", c.MaxAge)
	c.Idle = s.duration("idle", c.MaxAge/2)
	c.Reuse = s.parts("reuse", 0)
	if v, ok := s.text("reuse"); ok && c.Reuse == 0 {
		s.fail("reuse", v, "1 to 1000000")
	}
	c.Strict = s.choice("fit", "auto", "strict") == "strict"
	c.Aversion = s.choice("aversion", "on", "off") == "on"
	s.choice("fallback", "random")
	return c
}

// spec prints what differs from the defaults, in a fixed order.
func (c *PrequalConfig) spec() string {
	d := DefaultPrequal(c.Seed)
	l := newLine("prequal").seed(c.Seed)
	l.whole("pool", c.Pool, d.Pool)
	l.span("max_age", c.MaxAge, d.MaxAge)
	l.parts("quantile", c.Quantile, d.Quantile)
	l.parts("probe_rate", c.ProbeRate, d.ProbeRate)
	l.parts("remove_rate", c.RemoveRate, d.RemoveRate)
	l.parts("delta", c.Delta, d.Delta)
	l.whole("min_pool", c.MinPool, min(d.MinPool, c.Pool))
	l.whole("window", c.Window, d.Window)
	l.span("window_age", c.WindowAge, c.MaxAge)
	l.span("idle", c.Idle, c.MaxAge/2)
	l.parts("reuse", c.Reuse, 0)
	if c.Strict {
		l.set("fit", "strict")
	}
	if !c.Aversion {
		l.set("aversion", "off")
	}
	return l.String()
}
