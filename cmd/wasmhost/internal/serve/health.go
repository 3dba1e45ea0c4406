package serve

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
)

// Health is which replicas may have requests. The YAML names are those of --config files; defaults and meanings are
// in docs/health.md.
type Health struct {
	Interval  Duration `yaml:"health_interval"`  // between checks of one endpoint; 0 for none
	Timeout   Duration `yaml:"health_timeout"`   // of one check
	Path      string   `yaml:"health_path"`      // that a check asks for; empty for a connection alone
	Healthy   int      `yaml:"health_healthy"`   // passed checks that bring an endpoint back
	Unhealthy int      `yaml:"health_unhealthy"` // failed checks that take it out
	Failures  int      `yaml:"health_failures"`  // failed requests in a row that open its circuit; 0 for no circuits
	Panic     int      `yaml:"health_panic"`     // percentage of fit endpoints below which all are used; 0 for never
	Outlier   bool     `yaml:"outlier"`          // take out those that fail more often than the fleet
	SlowStart Duration `yaml:"slow_start"`       // until an endpoint that comes into service has all its weight; 0 for at once
}

func healthDefaults() Health {
	return Health{
		Interval: Duration(5 * time.Second), Timeout: Duration(time.Second), Healthy: 2, Unhealthy: 3, Failures: 5, Panic: 50,
	}
}

// mostRampedWeight is the largest weight of which slow start can give shares.
const mostRampedWeight = 42_949_672

// validate names the first setting that is out of range.
func (h Health) validate(endpoints []Endpoint) error {
	for _, d := range []struct {
		name        string
		value       Duration
		least, most time.Duration
		off         bool
	}{
		{"health_interval", h.Interval, 10 * time.Millisecond, time.Hour, true},
		{"health_timeout", h.Timeout, time.Millisecond, time.Minute, false},
		{"slow_start", h.SlowStart, 100 * time.Millisecond, time.Hour, true},
	} {
		if v := time.Duration(d.value); (v < d.least || v > d.most) && !(d.off && v == 0) {
			none := ""
			if d.off {
				none = "0 for none, or "
			}
			return setting.Errorf(d.name, "is %s: give %s%s to %s", v, none, d.least, d.most)
		}
	}
	for _, n := range []struct {
		name               string
		value, least, most int
	}{
		{"health_healthy", h.Healthy, 1, 100},
		{"health_unhealthy", h.Unhealthy, 1, 100},
		{"health_failures", h.Failures, 0, 1_000_000},
		{"health_panic", h.Panic, 0, 100},
	} {
		if n.value < n.least || n.value > n.most {
			return setting.Errorf(n.name, "is %d: give %d to %d", n.value, n.least, n.most)
		}
	}
	_, err := url.ParseRequestURI(h.Path)
	if h.Path != "" && (err != nil || !strings.HasPrefix(h.Path, "/") || strings.ContainsAny(h.Path, " #")) {
		return setting.Errorf("health_path", "is %q: give a path such as /healthz", h.Path)
	}
	for i, e := range endpoints {
		if h.SlowStart > 0 && e.Weight > mostRampedWeight {
			return setting.At("endpoints."+strconv.Itoa(i), fmt.Errorf("endpoint %q has weight %d: with --slow-start give at most %d", e.URL, e.Weight, mostRampedWeight))
		}
	}
	return nil
}
