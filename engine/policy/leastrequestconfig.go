package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
	"github.com/headroom-lb/headroom/engine/probe"
)

// LeastRequestConfig is everything that can be set of [LeastRequest]. Bias and aggression are
// in parts per 10,000. Start from [DefaultLeastRequest]: every zero means zero.
type LeastRequestConfig struct {
	Seed             uint64
	Choices          int             // draws compared while weights are equal: 1 to MaxChoices
	Bias             uint64          // how much queries in flight count where weights differ: 0 to 10
	SlowStart        engine.Duration // for how long a replica is ramped up: to 1h; 0 turns it off
	Aggression       uint64          // of the ramp; 1 is a straight line, more rises sooner: 0.1 to 10
	MinWeightPercent uint64          // where the ramp starts: 1 to 100
}

// DefaultLeastRequest is Envoy's setting.
func DefaultLeastRequest(seed uint64) LeastRequestConfig {
	return LeastRequestConfig{Seed: seed, Choices: 2, Bias: probe.Unit, Aggression: probe.Unit, MinWeightPercent: 10}
}

// NewLeastRequest makes the policy, or says which setting is wrong.
func NewLeastRequest(c LeastRequestConfig) (*LeastRequest, error) {
	v := bounds{policy: "least_request"}
	v.whole("choices", c.Choices, 1, MaxChoices)
	v.parts("bias", c.Bias, 0, 10*probe.Unit)
	v.span("slow_start", c.SlowStart, 0, mostAge)
	v.parts("aggression", c.Aggression, probe.Unit/10, 10*probe.Unit)
	v.whole("min_weight_percent", int(min(c.MinWeightPercent, 1<<31-1)), 1, 100)
	if err := v.err(); err != nil {
		return nil, err
	}
	p := &LeastRequest{c: c, even: PowerOfTwo{choices: uint32(c.Choices)}}
	for i := range p.power {
		p.power[i] = fixed.InversePower(uint64(i)+1, c.Bias, probe.Unit)
	}
	return p, nil
}

func (s *settings) leastRequest() LeastRequestConfig {
	c := DefaultLeastRequest(s.uint64("seed", 0))
	c.Choices = s.integer("choices", c.Choices)
	c.Bias = s.parts("bias", c.Bias)
	c.SlowStart = s.duration("slow_start", c.SlowStart)
	c.Aggression = s.parts("aggression", c.Aggression)
	c.MinWeightPercent = s.uint64("min_weight_percent", c.MinWeightPercent)
	return c
}

func (c *LeastRequestConfig) spec() string {
	d := DefaultLeastRequest(c.Seed)
	l := newLine("least_request").seed(c.Seed)
	l.whole("choices", c.Choices, d.Choices)
	l.parts("bias", c.Bias, d.Bias)
	l.span("slow_start", c.SlowStart, d.SlowStart)
	l.parts("aggression", c.Aggression, d.Aggression)
	l.whole("min_weight_percent", int(c.MinWeightPercent), int(d.MinWeightPercent))
	return l.String()
}
