package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/serve"
)

// healthFlags are the flags of serve that say which replicas may have requests.
func healthFlags(cmd *cobra.Command, h *serve.Health) {
	f := cmd.Flags()
	f.DurationVar((*time.Duration)(&h.Interval), "health-interval", time.Duration(h.Interval), "time between checks of a replica; 0 for no checks")
	f.DurationVar((*time.Duration)(&h.Timeout), "health-timeout", time.Duration(h.Timeout), "longest time that a check may take")
	f.StringVar(&h.Path, "health-path", h.Path, "path that a check asks for, which must answer 200 to 399; by default it only connects")
	f.IntVar(&h.Healthy, "health-healthy", h.Healthy, "passed checks in a row that bring a replica back")
	f.IntVar(&h.Unhealthy, "health-unhealthy", h.Unhealthy, "failed checks in a row that take a replica out")
	f.IntVar(&h.Failures, "health-failures", h.Failures, "failed requests in a row that open a replica's circuit; 0 for no circuits")
	f.IntVar(&h.Panic, "health-panic", h.Panic, "percentage of fit replicas below which all are used; 0 for never")
	f.BoolVar(&h.Outlier, "outlier", h.Outlier, "take replicas out whose requests fail more often than those of the fleet")
	f.DurationVar((*time.Duration)(&h.SlowStart), "slow-start", time.Duration(h.SlowStart), "time until a replica that comes into service has all its weight, for policies that read weights")
	for _, name := range []string{"health-interval", "health-timeout", "health-path", "health-healthy", "health-unhealthy", "health-failures", "health-panic", "outlier", "slow-start"} {
		complete(cmd, name)
	}
}

// healthOverrides put a flag over the config.
func healthOverrides(h *serve.Health, flags serve.Health) map[string]func() {
	return map[string]func(){
		"health-interval":  func() { h.Interval = flags.Interval },
		"health-timeout":   func() { h.Timeout = flags.Timeout },
		"health-path":      func() { h.Path = flags.Path },
		"health-healthy":   func() { h.Healthy = flags.Healthy },
		"health-unhealthy": func() { h.Unhealthy = flags.Unhealthy },
		"health-failures":  func() { h.Failures = flags.Failures },
		"health-panic":     func() { h.Panic = flags.Panic },
		"outlier":          func() { h.Outlier = flags.Outlier },
		"slow-start":       func() { h.SlowStart = flags.SlowStart },
	}
}
