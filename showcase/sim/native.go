package sim

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Native makes machines of the native engine.
func Native(spec string, salt uint64) (engine.Machine, error) {
	p, err := parse(spec)
	if err != nil {
		return nil, err
	}
	return engine.New(p, engine.Config{Salt: salt}), nil
}

// parse refuses what a world cannot show: its clients probe in the background only.
func parse(spec string) (engine.Policy, error) {
	p, err := policy.Parse(spec)
	if _, ok := p.(*policy.PrequalSync); ok {
		return nil, &engine.ConfigError{Policy: "prequal", Key: "mode", Value: "sync", Reason: "not in the simulator; want mode=async"}
	}
	return p, err
}

// Policies lists the policies there are, sorted.
func Policies() []string { return policy.Names() }

// Canonical parses a spec and prints it in full, settings in their fixed order.
func Canonical(spec string) (string, error) {
	p, err := parse(spec)
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
