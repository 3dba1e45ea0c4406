package policy

import (
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
)

// makers lists every policy by spec name, sorted.
var makers = []struct {
	name string
	make func(*settings) (engine.Policy, error)
}{
	{"bounded_load", func(s *settings) (engine.Policy, error) {
		return NewBoundedLoad(s.uint64("seed", 0), s.parts("factor", defaultLoadFactor))
	}},
	{"c3", func(s *settings) (engine.Policy, error) { return NewC3(s.c3()) }},
	{"least_loaded", func(s *settings) (engine.Policy, error) { return NewLeastLoaded(s.uint64("seed", 0)), nil }},
	{"least_request", func(s *settings) (engine.Policy, error) { return NewLeastRequest(s.leastRequest()) }},
	{"linear", func(s *settings) (engine.Policy, error) { return NewLinear(s.linear()) }},
	{"locality", func(s *settings) (engine.Policy, error) { return NewLocality(s.locality()) }},
	{"maglev", func(s *settings) (engine.Policy, error) {
		return NewMaglev(s.uint64("seed", 0), s.integer("size", DefaultMaglevSize), s.choice("weighted", "false", "true") == "true")
	}},
	{"peak_ewma", func(s *settings) (engine.Policy, error) { return NewPeakEWMA(s.peakEWMA()) }},
	{"power_of_two", func(s *settings) (engine.Policy, error) {
		return NewPowerOfTwo(s.uint64("seed", 0), s.integer("choices", 2))
	}},
	{"prequal", func(s *settings) (engine.Policy, error) { return s.prequalMode() }},
	{"priority", func(s *settings) (engine.Policy, error) { return NewPriority(s.groups()) }},
	{"random", func(s *settings) (engine.Policy, error) { return NewRandom(s.uint64("seed", 0)), nil }},
	{"rendezvous", func(s *settings) (engine.Policy, error) { return NewRendezvous(s.uint64("seed", 0)), nil }},
	{"ring_hash", func(s *settings) (engine.Policy, error) {
		return NewRingHash(s.uint64("seed", 0), s.integer("points", DefaultRingPoints))
	}},
	{"round_robin", func(s *settings) (engine.Policy, error) { return NewRoundRobin(s.uint64("seed", 0)), nil }},
	{"smooth_weighted_round_robin", func(s *settings) (engine.Policy, error) {
		return NewSmoothWeightedRoundRobin(s.uint64("seed", 0), s.choice("start", "random", "zero"))
	}},
	{"weighted_random", func(s *settings) (engine.Policy, error) { return NewWeightedRandom(s.uint64("seed", 0)), nil }},
	{"weighted_rendezvous", func(s *settings) (engine.Policy, error) { return NewWeightedRendezvous(s.uint64("seed", 0)), nil }},
	{"weighted_round_robin", func(s *settings) (engine.Policy, error) { return NewWeightedRoundRobin(s.weightedRoundRobin()) }},
	{"yarp_power_of_two", func(s *settings) (engine.Policy, error) {
		return NewYARPPowerOfTwo(s.uint64("seed", 0), s.duration("poll", defaultPoll))
	}},
}

// Names lists the policies that [Parse] knows, sorted.
func Names() []string {
	names := make([]string, len(makers))
	for i, m := range makers {
		names[i] = m.name
	}
	return names
}

// Parse makes a policy from its spec: its name, then key=value settings in any order, set
// apart by spaces, as in
//
//	prequal seed=7 pool=16 quantile=0.84 max_age=1s
//
// An unknown or repeated key, or a value out of range, is an [engine.ConfigError] that names
// policy, key, value and range. Parsing a policy's Spec gives an equal policy.
func Parse(spec string) (engine.Policy, error) {
	words := fields(spec)
	if len(words) == 0 {
		return nil, &engine.ConfigError{Reason: "empty; want a policy name: " + join(Names())}
	}
	for _, m := range makers {
		if m.name != words[0] {
			continue
		}
		s := &settings{policy: m.name}
		if err := s.split(words[1:]); err != nil {
			return nil, err
		}
		p, err := m.make(s)
		if s.err != nil {
			return nil, s.err
		}
		if err != nil {
			return nil, err
		}
		if err := s.leftover(); err != nil {
			return nil, err
		}
		return p, nil
	}
	return nil, &engine.ConfigError{Policy: clip(words[0]), Reason: "no such policy; want one of " + join(Names())}
}

// settings reads the keys of one spec; the first error sticks.
type settings struct {
	policy string
	keys   []string
	values []string
	asked  []string
	err    error
}

func (s *settings) split(words []string) error {
	for _, w := range words {
		at := slices.Index([]byte(w), '=')
		if at <= 0 || at == len(w)-1 {
			return &engine.ConfigError{Policy: s.policy, Key: clip(w), Reason: "want key=value"}
		}
		key := w[:at]
		if slices.Contains(s.keys, key) {
			return &engine.ConfigError{Policy: s.policy, Key: clip(key), Reason: "given twice"}
		}
		s.keys, s.values = append(s.keys, key), append(s.values, w[at+1:])
	}
	return nil
}

func (s *settings) text(key string) (string, bool) {
	if !slices.Contains(s.asked, key) {
		s.asked = append(s.asked, key)
	}
	if i := slices.Index(s.keys, key); i >= 0 {
		return s.values[i], true
	}
	return "", false
}

func (s *settings) leftover() error {
	for _, k := range s.keys {
		if !slices.Contains(s.asked, k) {
			return &engine.ConfigError{Policy: s.policy, Key: clip(k), Reason: "no such setting; want one of " + join(s.asked)}
		}
	}
	return nil
}

func (s *settings) fail(key, value, want string) {
	if s.err == nil {
		s.err = &engine.ConfigError{Policy: s.policy, Key: key, Value: clip(value), Reason: "want " + want}
	}
}

func (s *settings) uint64(key string, unset uint64) uint64 {
	v, ok := s.text(key)
	if !ok {
		return unset
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		s.fail(key, v, "a whole number from 0 to 18446744073709551615")
	}
	return n
}

func (s *settings) integer(key string, unset int) int {
	v, ok := s.text(key)
	if !ok {
		return unset
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		s.fail(key, v, "a whole number")
	}
	return n
}

// parts reads a decimal with up to four places as parts per 10,000.
func (s *settings) parts(key string, unset uint64) uint64 {
	v, ok := s.text(key)
	if !ok {
		return unset
	}
	n, good := parseDecimal(v, 4)
	if !good {
		s.fail(key, v, "a number that is not negative, with at most four decimals")
	}
	return n
}

func (s *settings) duration(key string, unset engine.Duration) engine.Duration {
	v, ok := s.text(key)
	if !ok {
		return unset
	}
	d, good := parseDuration(v)
	if !good {
		s.fail(key, v, "a duration such as 250ms")
	}
	return d
}

// choice reads one of a few words; the first is the one when unset.
func (s *settings) choice(key string, words ...string) string {
	v, ok := s.text(key)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, v) {
		s.fail(key, v, "one of "+join(words))
	}
	return v
}

// bounds collects the first setting that is out of its range.
type bounds struct {
	policy string
	first  *engine.ConfigError
}

func (b *bounds) check(ok bool, key, value, least, most string) {
	if !ok && b.first == nil {
		b.first = &engine.ConfigError{Policy: b.policy, Key: key, Value: value, Reason: "want " + least + " to " + most}
	}
}

func (b *bounds) whole(key string, v, least, most int) {
	b.check(v >= least && v <= most, key, itoa(v), itoa(least), itoa(most))
}

func (b *bounds) parts(key string, v, least, most uint64) {
	b.check(v >= least && v <= most, key, decimal(v), decimal(least), decimal(most))
}

func (b *bounds) span(key string, v, least, most engine.Duration) {
	b.check(v >= least && v <= most, key, durationText(v), durationText(least), durationText(most))
}

func (b *bounds) err() error {
	if b.first == nil {
		return nil
	}
	return b.first
}

// line builds a canonical spec: the name, the seed, and what differs from the defaults.
type line struct{ b []byte }

func newLine(name string) *line { return &line{[]byte(name)} }

// Copied into its many callers, set would add 10 KB to the module.
//
//go:noinline
func (l *line) set(key, value string) *line {
	l.b = append(append(append(append(l.b, ' '), key...), '='), value...)
	return l
}

func (l *line) whole(key string, v, unset int) {
	if v != unset {
		l.set(key, itoa(v))
	}
}

func (l *line) parts(key string, v, unset uint64) {
	if v != unset {
		l.set(key, decimal(v))
	}
}

func (l *line) span(key string, v, unset engine.Duration) {
	if v != unset {
		l.set(key, durationText(v))
	}
}

func (l *line) seed(n uint64) *line { return l.set("seed", utoa(n)) }

func (l *line) String() string { return string(l.b) }
