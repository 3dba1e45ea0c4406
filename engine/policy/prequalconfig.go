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
	bad := func(key, value, want string) error { return outOfRange("prequal", key, value, want) }
	switch {
	case c.Pool < 1 || c.Pool > probe.MaxPool:
		return bad("pool", itoa(c.Pool), "1 to 64")
	case c.MaxAge < leastAge || c.MaxAge > mostAge:
		return bad("max_age", durationText(c.MaxAge), "1us to 60m")
	case c.Quantile > probe.Unit:
		return bad("quantile", decimal(c.Quantile), "0 to 1")
	case c.ProbeRate > mostRate:
		return bad("probe_rate", decimal(c.ProbeRate), "0 to 16")
	case c.RemoveRate > mostRate:
		return bad("remove_rate", decimal(c.RemoveRate), "0 to 16")
	case c.Delta > 100*probe.Unit:
		return bad("delta", decimal(c.Delta), "0 to 100")
	case c.MinPool < 1 || c.MinPool > c.Pool:
		return bad("min_pool", itoa(c.MinPool), "1 to pool, which is "+itoa(c.Pool))
	case c.Window < 1 || c.Window > probe.MaxWindow:
		return bad("window", itoa(c.Window), "1 to 4096")
	case c.WindowAge < leastAge || c.WindowAge > mostAge:
		return bad("window_age", durationText(c.WindowAge), "1us to 60m")
	case c.Idle < 0 || c.Idle > mostAge:
		return bad("idle", durationText(c.Idle), "0 to 60m")
	case c.Reuse != 0 && c.Reuse < probe.Unit:
		return bad("reuse", decimal(c.Reuse), "1 or more")
	}
	return nil
}

func (s *settings) prequal() PrequalConfig {
	c := DefaultPrequal(s.uint64("seed", 0))
	c.Pool = s.integer("pool", c.Pool, 1, probe.MaxPool)
	c.MaxAge = s.duration("max_age", c.MaxAge, leastAge, mostAge)
	c.Quantile = s.parts("quantile", c.Quantile, 0, probe.Unit)
	c.ProbeRate = s.parts("probe_rate", c.ProbeRate, 0, mostRate)
	c.RemoveRate = s.parts("remove_rate", c.RemoveRate, 0, mostRate)
	c.Delta = s.parts("delta", c.Delta, 0, 100*probe.Unit)
	c.MinPool = s.integer("min_pool", min(c.MinPool, c.Pool), 1, c.Pool)
	c.Window = s.integer("window", c.Window, 1, probe.MaxWindow)
	c.WindowAge = s.duration("window_age", c.MaxAge, leastAge, mostAge)
	c.Idle = s.duration("idle", c.MaxAge/2, 0, mostAge)
	c.Reuse = s.parts("reuse", 0, probe.Unit, 1000000*probe.Unit)
	c.Strict = s.choice("fit", "auto", "strict") == "strict"
	c.Aversion = s.choice("aversion", "on", "off") == "on"
	s.choice("fallback", "random")
	return c
}

// spec prints what differs from the defaults, in a fixed order.
func (c *PrequalConfig) spec() string {
	d := DefaultPrequal(c.Seed)
	l := newLine("prequal").seed(c.Seed)
	number := func(key string, v, unset int) {
		if v != unset {
			l.set(key, itoa(v))
		}
	}
	parts := func(key string, v, unset uint64) {
		if v != unset {
			l.set(key, decimal(v))
		}
	}
	span := func(key string, v, unset engine.Duration) {
		if v != unset {
			l.set(key, durationText(v))
		}
	}
	number("pool", c.Pool, d.Pool)
	span("max_age", c.MaxAge, d.MaxAge)
	parts("quantile", c.Quantile, d.Quantile)
	parts("probe_rate", c.ProbeRate, d.ProbeRate)
	parts("remove_rate", c.RemoveRate, d.RemoveRate)
	parts("delta", c.Delta, d.Delta)
	number("min_pool", c.MinPool, min(d.MinPool, c.Pool))
	number("window", c.Window, d.Window)
	span("window_age", c.WindowAge, c.MaxAge)
	span("idle", c.Idle, c.MaxAge/2)
	parts("reuse", c.Reuse, 0)
	if c.Strict {
		l.set("fit", "strict")
	}
	if !c.Aversion {
		l.set("aversion", "off")
	}
	return l.String()
}
