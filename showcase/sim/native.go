package sim

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Native makes machines of the native engine.
func Native(spec string, salt uint64) (engine.Machine, error) {
	p, err := policy.Parse(spec)
	if err != nil {
		return nil, err
	}
	return engine.New(p, engine.Config{Salt: salt}), nil
}

// Policies lists the policies there are, sorted.
func Policies() []string { return policy.Names() }

// Canonical parses a spec and prints it in full, settings in their fixed order.
func Canonical(spec string) (string, error) {
	p, err := policy.Parse(spec)
	if err != nil {
		return "", err
	}
	return p.Spec(), nil
}

// PrequalDefaults are the quantile and the probes per query of a Prequal whose spec names
// neither, in parts per 10,000.
func PrequalDefaults() (quantile, probeRate int) {
	c := policy.DefaultPrequal(0)
	return int(c.Quantile), int(c.ProbeRate)
}
