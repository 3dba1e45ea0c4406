package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// PrequalConfig is everything that can be set of [Prequal]. Rates, shares and the quantile
// are in parts per 10,000. Start from [DefaultPrequal]: every zero means zero.
type PrequalConfig struct {
	PoolConfig
	Quantile  uint64          // of the RIF window, above which an entry is hot; 0 ranks by RIF alone, 1 by latency alone
	Window    int             // RIF readings remembered: 1 to 4096
	WindowAge engine.Duration // and for how long; raising it steadies the threshold
}

// DefaultPrequal is the paper's setting with a window of 128, fit=auto and error aversion.
func DefaultPrequal(seed uint64) PrequalConfig {
	return PrequalConfig{PoolConfig: DefaultPool(seed), Quantile: 8400, Window: 128, WindowAge: engine.Second}
}

// validate checks everything that does not need the fleet's size.
func (c *PrequalConfig) validate() error {
	v := bounds{policy: "prequal"}
	c.checkSize(&v)
	v.parts("quantile", c.Quantile, 0, probe.Unit)
	c.checkRates(&v)
	v.whole("window", c.Window, 1, probe.MaxWindow)
	v.span("window_age", c.WindowAge, leastAge, mostAge)
	c.checkRest(&v)
	return v.err()
}

// prequal reads the settings of a variant, given its defaults.
func (s *settings) prequal(of func(seed uint64) PrequalConfig) PrequalConfig {
	c := of(s.uint64("seed", 0))
	s.poolSize(&c.PoolConfig)
	c.Quantile = s.parts("quantile", c.Quantile)
	s.poolRates(&c.PoolConfig)
	c.Window = s.integer("window", c.Window)
	c.WindowAge = s.duration("window_age", c.MaxAge)
	s.poolRest(&c.PoolConfig)
	return c
}

// spec prints what differs from the defaults, in a fixed order.
func (c *PrequalConfig) spec() string {
	return c.print(newLine("prequal").seed(c.Seed), DefaultPrequal(c.Seed))
}

// keenSpec is the same of the keen variant.
func (c *PrequalConfig) keenSpec() string {
	return c.print(newLine("prequal").seed(c.Seed).set("variant", "keen"), DefaultPrequalKeen(c.Seed))
}

func (c *PrequalConfig) print(l *line, d PrequalConfig) string {
	c.printSize(l)
	l.parts("quantile", c.Quantile, d.Quantile)
	c.printRates(l)
	l.whole("window", c.Window, d.Window)
	l.span("window_age", c.WindowAge, c.MaxAge)
	c.printRest(l)
	return l.String()
}
