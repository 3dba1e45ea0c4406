package showcase

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// Setup is everything a link can say: the scenario, both policies and the knobs. Shares and
// rates are in parts per 10,000.
type Setup struct {
	Scenario string
	A, B     string // specs as given
	Seed     uint64
	Load     int
	Noisy    int
	Quantile int // of every Prequal here; -1 leaves the spec's own
	Probe    int // probes per query of every Prequal here; -1 leaves the spec's own
	Speed    int // of simulated time
	Start    int // seconds of simulated time to run before the first frame
	Replicas int
	Clients  int
	Focus    int // the client that is explained
	Room     string
}

// unit is one, in parts per 10,000.
const unit = 10_000

// Ranges of the knobs. Whatever comes from outside is clamped to them.
const (
	minLoad, maxLoad         = 3000, 20_000
	maxNoisy                 = 12
	minProbe, maxProbe       = 2500, 50_000
	minSpeed, maxSpeed       = 500, 20_000
	maxStart                 = 60
	minReplicas, maxReplicas = 4, 100
	minClients, maxClients   = 2, 32
	maxSpec                  = 200 // bytes
	maxRoom                  = 40  // bytes
)

// DefaultSetup is the scene that the page opens with.
func DefaultSetup() Setup {
	sc := sim.Neighbours()
	return Setup{
		Scenario: sc.Name, A: "prequal", B: "round_robin", Seed: sc.Seed, Load: sc.Load, Noisy: sc.Noisy,
		Quantile: -1, Probe: -1, Speed: unit, Replicas: 48, Clients: 24,
	}
}

// ParseSetup reads a query string. Numbers out of range are clamped, and notes say which; what
// is no number, no scenario or no policy is an error that names the key.
func ParseSetup(q url.Values) (s Setup, notes []string, err error) {
	s = DefaultSetup()
	if name := q.Get("s"); name != "" {
		sc, ok := sim.Named(name)
		if !ok {
			return s, nil, fmt.Errorf("s=%q: no such scenario; there are neighbours, weather and calm", name)
		}
		s.Scenario, s.Load, s.Noisy = sc.Name, sc.Load, sc.Noisy
	}
	// The form carries the scenario that its knobs were set for: those of another do not apply.
	kept := q.Get("was") == "" || q.Get("was") == s.Scenario
	s.A, s.B = cmp.Or(q.Get("a"), s.A), cmp.Or(q.Get("b"), s.B)
	s.Room = q.Get("room")
	if len(s.Room) > maxRoom {
		return s, nil, fmt.Errorf("room: at most %d bytes", maxRoom)
	}
	clamped := func(key, used string) {
		notes = append(notes, fmt.Sprintf("%s=%s is out of range: %s is used", key, q.Get(key), used))
	}
	parts := func(key string, to *int, low, high int) {
		if text := q.Get(key); text != "" && err == nil {
			var v float64
			if v, err = strconv.ParseFloat(text, 64); err != nil || v != v {
				err = fmt.Errorf("%s=%q: must be a number", key, text)
				return
			}
			*to = int(min(max(v*unit+0.5, float64(low)), float64(high)))
			if v*unit < float64(low) || v*unit > float64(high) {
				clamped(key, decimal(*to))
			}
		}
	}
	whole := func(key string, to *int, low, high int) {
		var v int
		if q.Get(key) == "" {
			return
		}
		if parts(key, &v, low*unit, high*unit); err == nil {
			*to = v / unit
		}
	}
	if kept {
		parts("load", &s.Load, minLoad, maxLoad)
		whole("noisy", &s.Noisy, 0, maxNoisy)
	}
	parts("q", &s.Quantile, 0, unit)
	parts("probe", &s.Probe, minProbe, maxProbe)
	parts("speed", &s.Speed, minSpeed, maxSpeed)
	whole("t", &s.Start, 0, maxStart)
	whole("replicas", &s.Replicas, minReplicas, maxReplicas)
	whole("clients", &s.Clients, minClients, maxClients)
	whole("focus", &s.Focus, 0, maxClients-1)
	if text := q.Get("seed"); text != "" && err == nil {
		if s.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = fmt.Errorf("seed=%q: must be a whole number from 0 to 2^64-1", text)
		}
	}
	if err != nil {
		return s, notes, err
	}
	for _, k := range []struct {
		key  string
		to   *int
		most int
	}{{"noisy", &s.Noisy, s.Replicas}, {"focus", &s.Focus, s.Clients - 1}} {
		if *k.to > k.most {
			*k.to = k.most
			clamped(k.key, strconv.Itoa(k.most))
		}
	}
	for _, k := range []struct{ key, spec string }{{"a", s.A}, {"b", s.B}} {
		if _, err := s.spec(k.spec); err != nil {
			return s, notes, fmt.Errorf("%s: %w", k.key, err)
		}
	}
	return s, notes, nil
}

// Query is the link's query string: what differs from the default, in a fixed order.
func (s Setup) Query() string {
	var b strings.Builder
	add := func(key, value, usual string) {
		if value != usual {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			b.WriteString(key + "=" + url.QueryEscape(value))
		}
	}
	d := DefaultSetup()
	sc, _ := sim.Named(s.Scenario)
	add("s", s.Scenario, d.Scenario)
	add("a", s.A, d.A)
	add("b", s.B, d.B)
	add("seed", strconv.FormatUint(s.Seed, 10), strconv.FormatUint(d.Seed, 10))
	add("load", decimal(s.Load), decimal(sc.Load))
	add("noisy", strconv.Itoa(s.Noisy), strconv.Itoa(sc.Noisy))
	if s.Quantile >= 0 {
		add("q", decimal(s.Quantile), "")
	}
	if s.Probe >= 0 {
		add("probe", decimal(s.Probe), "")
	}
	add("speed", decimal(s.Speed), decimal(d.Speed))
	add("t", strconv.Itoa(s.Start), "0")
	add("replicas", strconv.Itoa(s.Replicas), strconv.Itoa(d.Replicas))
	add("clients", strconv.Itoa(s.Clients), strconv.Itoa(d.Clients))
	add("focus", strconv.Itoa(s.Focus), "0")
	add("room", s.Room, "")
	return b.String()
}

// decimal prints parts per 10,000 in the shortest exact form.
func decimal(parts int) string {
	return strconv.FormatFloat(float64(parts)/unit, 'f', -1, 64)
}

// Situation is the simulator's scenario of this setup.
func (s Setup) Situation() sim.Scenario {
	sc, _ := sim.Named(s.Scenario)
	sc.Seed, sc.Load, sc.Noisy, sc.Replicas, sc.Clients = s.Seed, s.Load, s.Noisy, s.Replicas, s.Clients
	return sc
}

// Specs are the specs in force, in their canonical form.
func (s Setup) Specs() (a, b string, err error) {
	if a, err = s.spec(s.A); err == nil {
		b, err = s.spec(s.B)
	}
	return a, b, err
}

// spec puts the knobs into a spec.
func (s Setup) spec(given string) (string, error) {
	if len(given) > maxSpec {
		return "", fmt.Errorf("a spec of %d bytes: at most %d", len(given), maxSpec)
	}
	fields := strings.Fields(given)
	if _, err := sim.Canonical(given); err != nil {
		return "", err
	}
	if slices.Contains(fields, "mode=sync") {
		return "", errors.New("prequal: mode=sync: the page shows pools, and this mode has none; want mode=async")
	}
	put := func(key, value string, override bool) {
		at := slices.IndexFunc(fields[1:], func(f string) bool { return strings.HasPrefix(f, key+"=") }) + 1
		switch {
		case at == 0:
			fields = append(fields, key+"="+value)
		case override:
			fields[at] = key + "=" + value
		}
	}
	if fields[0] == "prequal" && s.Quantile >= 0 {
		put("quantile", decimal(s.Quantile), true)
	}
	if fields[0] == "prequal" && s.Probe >= 0 {
		put("probe_rate", decimal(s.Probe), true)
	}
	unseeded := strings.Join(fields, " ")
	put("seed", strconv.FormatUint(s.Seed, 10), false)
	if spec, err := sim.Canonical(strings.Join(fields, " ")); err == nil {
		return spec, nil
	}
	return sim.Canonical(unseeded) // a policy that draws nothing has no seed
}

// Title is a policy's name for people.
func Title(spec string) string {
	name, _, _ := strings.Cut(spec, " ")
	switch name {
	case "peak_ewma":
		return "Peak EWMA"
	case "yarp_power_of_two":
		return "YARP power of two"
	}
	name = strings.ReplaceAll(name, "_", " ")
	if name == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
