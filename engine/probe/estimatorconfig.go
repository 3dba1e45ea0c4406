package probe

import (
	"math/bits"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
)

// EstimatorConfig bounds an [Estimator]. A field left at zero takes its default.
type EstimatorConfig struct {
	// Samples is how many latencies make a median, 1 to 64; default 9. More is steadier and
	// reaches further away from the current RIF.
	Samples int
	// Memory is the age up to which a latency counts while younger ones exist; default 10 s. A
	// short memory starves the estimate: with one second the simulated p99 is up to 29 % worse.
	// Give it several times the longest usual latency.
	Memory engine.Duration
	// Hold is the age at which the last latencies are forgotten when nothing younger finished;
	// from Memory upwards, default three times Memory.
	Hold engine.Duration
	// Ring is how many latencies each tag keeps, 1 to 256; default 16.
	Ring int
	// Tags is how many values of RIF are told apart before they share tags, a power of two from
	// 8 to 4,096; default 64.
	Tags int
	// FinishedOnly looks at finished queries alone, as the paper does, to show survivorship after
	// a jump of RIF: it costs the tail, the more the higher the load and the fewer the clients.
	FinishedOnly bool
}

func (c EstimatorConfig) withDefaults() EstimatorConfig {
	if c.Samples == 0 {
		c.Samples = 9
	}
	if c.Memory == 0 {
		c.Memory = 10 * engine.Second
	}
	if c.Hold == 0 {
		c.Hold = min(3*min(c.Memory, engine.MaxLatency), engine.MaxLatency)
	}
	if c.Ring == 0 {
		c.Ring = 16
	}
	if c.Tags == 0 {
		c.Tags = 64
	}
	return c
}

// Validate says which setting is out of range: an [engine.ConfigError].
func (c EstimatorConfig) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Samples < 1 || c.Samples > 64:
		return refuse("samples", int64(c.Samples), "must be from 1 to 64")
	case c.Memory < 1 || c.Memory > engine.MaxLatency:
		return refuse("memory", int64(c.Memory), "must be a positive number of nanoseconds below 4.5 years")
	case c.Hold < c.Memory || c.Hold > engine.MaxLatency:
		return refuse("hold", int64(c.Hold), "must be at least the memory and below 4.5 years")
	case c.Ring < 1 || c.Ring > 256:
		return refuse("ring", int64(c.Ring), "must be from 1 to 256")
	case c.Tags < 8 || c.Tags > 4096 || bits.OnesCount(uint(c.Tags)) != 1:
		return refuse("tags", int64(c.Tags), "must be a power of two from 8 to 4096")
	}
	return nil
}

func refuse(key string, value int64, reason string) error {
	return &engine.ConfigError{Policy: "estimator", Key: key, Value: strconv.FormatInt(value, 10), Reason: reason}
}
