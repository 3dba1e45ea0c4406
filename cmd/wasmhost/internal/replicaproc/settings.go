// Package replicaproc is a replica whose speed, concurrency, neighbours and faults can be set, also while it runs.
// It sleeps instead of computing, so that its queue and not the machine's cores carries the load.
package replicaproc

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Duration is a time.Duration that is written like "40ms" in JSON.
type Duration time.Duration

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads text such as "40ms".
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is text such as %q", "40ms")
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// Settings are all that can be changed while a replica runs. The JSON names are those of POST /control.
type Settings struct {
	Slots   int      `json:"slots"`   // queries served at the same time; the others wait in order of arrival
	Service Duration `json:"service"` // mean service time: a fifth fixed, the rest exponential

	SlowFactor float64  `json:"slow_factor"` // how much longer service takes beside a noisy neighbour
	SlowShare  float64  `json:"slow_share"`  // share of the time that the neighbour is noisy; 1 is always
	SlowSpell  Duration `json:"slow_spell"`  // mean length of a noisy spell

	ErrorRate   float64 `json:"error_rate"`   // share of the queries that fail
	ErrorStatus int     `json:"error_status"` // how they fail
	FailFast    bool    `json:"fail_fast"`    // they fail at once, without waiting or service
}

// Defaults is a healthy replica: four slots, 40 ms, no neighbour, no errors.
func Defaults() Settings {
	return Settings{
		Slots: 4, Service: Duration(40 * time.Millisecond),
		SlowFactor: 3, SlowShare: 0, SlowSpell: Duration(time.Second),
		ErrorStatus: http.StatusInternalServerError,
	}
}

// Validate refuses what no replica can do, naming the setting, its value and its range.
func (s Settings) Validate() error {
	bad := func(name string, value any, want string) error {
		return fmt.Errorf("%s is %v: %s", name, value, want)
	}
	switch {
	case s.Slots < 1 || s.Slots > 10_000:
		return bad("slots", s.Slots, "give 1 to 10000")
	case s.Service < 0 || s.Service > Duration(time.Minute):
		return bad("service", time.Duration(s.Service), "give 0 to 1m")
	case !(s.SlowFactor >= 1 && s.SlowFactor <= 1000):
		return bad("slow_factor", s.SlowFactor, "give 1 to 1000")
	case !(s.SlowShare >= 0 && s.SlowShare <= 1):
		return bad("slow_share", s.SlowShare, "give 0 to 1")
	case s.SlowSpell < Duration(time.Millisecond) || s.SlowSpell > Duration(time.Hour):
		return bad("slow_spell", time.Duration(s.SlowSpell), "give 1ms to 1h")
	case !(s.ErrorRate >= 0 && s.ErrorRate <= 1):
		return bad("error_rate", s.ErrorRate, "give 0 to 1")
	case s.ErrorStatus < 400 || s.ErrorStatus > 599:
		return bad("error_status", s.ErrorStatus, "give 400 to 599")
	}
	return nil
}

// patch reads JSON over the settings: what it does not name stays.
func (s Settings) patch(r io.Reader) (Settings, error) {
	dec := json.NewDecoder(io.LimitReader(r, 1<<16))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf(`the body is not the JSON expected, such as {"slots":2,"service":"80ms"}: %w`, err)
	}
	return s, s.Validate()
}
