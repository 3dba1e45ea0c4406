package serve

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/headroom-lb/headroom/engine"
)

// byKey are the policies that place by a query's key.
var byKey = []string{"bounded_load", "maglev", "rendezvous", "ring_hash", "weighted_rendezvous"}

// warnings are settings of a route that serve would take, and that do nothing there. The spec is canonical.
func warnings(c Config, spec string, fit engine.Fit) (out []string) {
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if name, _, _ := strings.Cut(spec, " "); c.Key == "" && slices.Contains(byKey, name) {
		warn("%s places by key, and there is none: each request is placed as if its key were drawn at random; name the header with key", name)
	}
	if c.Attempts.Hedge != HedgeOff && c.File == "" && len(c.Endpoints) == 1 {
		warn("hedge %s does nothing with a single endpoint: give another, or leave it out", c.Attempts.Hedge)
	}
	if fit.Probes > 0 {
		return out
	}
	if c.ProbeWait != Defaults().ProbeWait {
		warn("probe_wait %s does nothing: no request waits for probes without mode=sync in spec", short(c.ProbeWait.String()))
	}
	if c.Hint != "" {
		warn("hint %s does nothing: no request has probes of its own without mode=sync in spec", c.Hint)
	}
	return out
}

// elsewhere are the settings that a check shows in lines of their own.
var elsewhere = []string{"listen", "admin", "spec", "endpoints", "endpoints_file", "tls_cert", "tls_key", "h2c", "routes"}

// changed are the settings that are not at their default, with their values: those of a route, or of the whole proxy.
func changed(c Config, route bool) (out []string) {
	defaults := map[string]string{}
	eachSetting(reflect.ValueOf(Defaults()), func(name string, _ reflect.StructField, v reflect.Value) { defaults[name] = valueText(v) })
	eachSetting(reflect.ValueOf(c), func(name string, _ reflect.StructField, v reflect.Value) {
		if text := valueText(v); route == slices.Contains(perRoute, name) && !slices.Contains(elsewhere, name) && text != defaults[name] {
			out = append(out, name+" "+text)
		}
	})
	return out
}

func valueText(v reflect.Value) string {
	if d, ok := v.Interface().(Duration); ok {
		return short(d.String())
	}
	return fmt.Sprint(v.Interface())
}
