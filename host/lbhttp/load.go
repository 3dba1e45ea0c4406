package lbhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/headroom-lb/headroom/engine"
)

// loadMetrics reads an ORCA report in its TEXT or JSON form, names as TEXT has them. Any other
// form is errNoReading.
func loadMetrics(v string) (map[string]string, error) {
	form, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
	metrics := map[string]string{}
	switch form {
	case "TEXT":
		for pair := range strings.SplitSeq(rest, ",") {
			i := strings.IndexAny(pair, "=:") // a colon is the older form
			if i < 0 {
				return nil, fmt.Errorf("load report: %.40q is not name=value", pair)
			}
			name := strings.TrimSpace(pair[:i])
			if _, twice := metrics[name]; twice {
				return nil, fmt.Errorf("load report: %.40q given twice", name)
			}
			metrics[name] = pair[i+1:]
		}
	case "JSON":
		var report map[string]json.RawMessage
		if err := json.Unmarshal([]byte(rest), &report); err != nil || report == nil {
			return nil, errors.New("load report: not a JSON object")
		}
		for name, value := range report {
			var inner map[string]json.RawMessage
			if json.Unmarshal(value, &inner) != nil { // a number, or something that will not be one
				inner, name = map[string]json.RawMessage{name: value}, ""
			} else {
				name += "."
			}
			for key, v := range inner {
				if string(v) != "null" {
					metrics[name+key] = string(v)
				}
			}
		}
	default:
		return nil, errNoReading
	}
	return metrics, nil
}

// loadReport reads what an ORCA report says of load: utilisation as the application tells it, or
// else the processor's, and queries and errors per second (gRFC A51, A58). Without queries per
// second it is errNoReading.
func loadReport(v string) (l engine.LoadReport, err error) {
	metrics, err := loadMetrics(v)
	if err != nil {
		return l, err
	}
	if metrics["rps_fractional"] == "" {
		return l, errNoReading
	}
	read := func(name string, unit uint64) uint32 {
		s, ok := metrics[name]
		if !ok {
			return 0
		}
		n, nerr := number(s, unit, math.MaxUint32)
		if nerr != nil && err == nil {
			err = fmt.Errorf("load report: %s: %w", name, nerr)
		}
		return uint32(n)
	}
	l.QPS, l.EPS = read("rps_fractional", 1000), read("eps", 1000)
	if l.Utilization = read("application_utilization", 10000); l.Utilization == 0 {
		l.Utilization = read("cpu_utilization", 10000)
	}
	return l, err
}
