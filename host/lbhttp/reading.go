package lbhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/replica"
)

// errNoReading says that an answer names no RIF in any dialect.
var errNoReading = errors.New("the answer holds no RIF in a known form; send x-prequal-rif")

// headerReading finds a reading in headers: the plain ones of these dialects first, then an ORCA
// report. It is errNoReading if there is none, another error if there is one that makes no sense.
func headerReading(h http.Header, dialects []dialect) (engine.Reading, error) {
	for _, d := range dialects {
		rd, err := d.read(func(name string) (string, bool, error) { return single(h, name) })
		if !errors.Is(err, errNoReading) {
			return rd, err
		}
	}
	v, ok, err := single(h, replica.HeaderLoad)
	if err != nil || !ok {
		return engine.Reading{}, cmp.Or(err, errNoReading)
	}
	return loadReading(v)
}

// loadReading reads an ORCA report's named metrics. A report without RIF, or in a form other
// than TEXT and JSON, is errNoReading: it may be meant for somebody else.
func loadReading(v string) (engine.Reading, error) {
	metrics, err := loadMetrics(v)
	if err != nil {
		return engine.Reading{}, err
	}
	return loadDialect.read(func(name string) (string, bool, error) {
		s, ok := metrics["named_metrics."+name]
		return s, ok, nil
	})
}

// bodyReading finds a reading in a JSON object.
func bodyReading(b []byte) (engine.Reading, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil || object == nil {
		return engine.Reading{}, errNoReading
	}
	for _, d := range bodyDialects {
		rd, err := d.read(member(object))
		if !errors.Is(err, errNoReading) {
			return rd, err
		}
	}
	return engine.Reading{}, errNoReading
}

// read takes RIF, which must be there, and the first known latency.
func (d dialect) read(get func(name string) (string, bool, error)) (engine.Reading, error) {
	rd := engine.Reading{Latency: engine.UnknownLatency}
	v, ok, err := get(d.rif)
	if err != nil || !ok {
		return rd, cmp.Or(err, errNoReading)
	}
	n, err := number(v, 1, math.MaxUint32)
	if err != nil {
		return rd, fmt.Errorf("%s: %w", d.rif, err)
	}
	rd.RIF = uint32(n)
	for _, a := range d.latency {
		v, ok, err := get(a.name)
		if err != nil {
			return rd, err
		}
		if !ok {
			continue
		}
		n, err := number(v, uint64(a.unit), uint64(engine.MaxLatency))
		if err != nil {
			return rd, fmt.Errorf("%s: %w", a.name, err)
		}
		if n > 0 {
			rd.Latency = engine.Duration(n)
			break
		}
	}
	return rd, nil
}

// number reads a decimal that is not negative and returns it times unit, a fraction dropped; it
// refuses what exceeds limit. Whole numbers are exact.
func number(s string, unit, limit uint64) (uint64, error) {
	s = strings.TrimSpace(s)
	// Only decimals: no hexadecimal, no "inf", no "NaN", no underscores.
	if s == "" || len(s) > 40 || strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, fmt.Errorf("%.40q is not a number", s)
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		if n > limit/unit {
			return 0, fmt.Errorf("%s is out of range", s)
		}
		return n * unit, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	if f *= float64(unit); err != nil || math.Signbit(f) || f > float64(limit) {
		return 0, fmt.Errorf("%s is out of range", s)
	}
	return min(uint64(f), limit), nil
}

// single is a header's only value.
func single(h http.Header, name string) (string, bool, error) {
	switch vs := h[name]; {
	case len(vs) == 0:
		return "", false, nil
	case len(vs) > 1:
		return "", false, fmt.Errorf("%s given %d times", name, len(vs))
	case len(vs[0]) > maxAnswer:
		return "", false, fmt.Errorf("%s is longer than %d bytes", name, maxAnswer)
	default:
		return vs[0], true, nil
	}
}

// member looks a number up in a JSON object; null is absent.
func member(object map[string]json.RawMessage) func(string) (string, bool, error) {
	return func(name string) (string, bool, error) {
		v, ok := object[name]
		if !ok || string(v) == "null" {
			return "", false, nil
		}
		return string(v), true, nil
	}
}
