package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headroom-lb/headroom/engine"
)

func TestNamesAndTheirInverses(t *testing.T) {
	for s, name := range map[engine.Status]string{engine.StatusReady: "ready", engine.StatusDraining: "draining", engine.StatusUnavailable: "unavailable"} {
		assert.Equal(t, name, s.String())
		back, ok := engine.ParseStatus(name)
		assert.True(t, ok)
		assert.Equal(t, s, back)
		assert.Equal(t, s == engine.StatusReady, s.Eligible())
	}
	for o, name := range map[engine.Outcome]string{
		engine.OutcomeSuccess: "success", engine.OutcomeFailure: "failure", engine.OutcomeOverloaded: "overloaded", engine.OutcomeCancelled: "cancelled",
	} {
		assert.Equal(t, name, o.String())
		back, ok := engine.ParseOutcome(name)
		assert.True(t, ok)
		assert.Equal(t, o, back)
	}
	s, ok := engine.ParseStatus("")
	assert.True(t, ok && s == engine.StatusReady)
	o, ok := engine.ParseOutcome("")
	assert.True(t, ok && o == engine.OutcomeSuccess)
	s, ok = engine.ParseStatus("busy")
	assert.False(t, ok)
	assert.Zero(t, s)
	o, ok = engine.ParseOutcome("busy")
	assert.False(t, ok)
	assert.Zero(t, o)
	assert.Equal(t, "invalid", engine.Status(9).String())
	assert.Equal(t, "invalid", engine.Outcome(9).String())
	for r, name := range []string{"direct", "cold", "hot", "fallback", "spill", "panic", "invalid"} {
		assert.Equal(t, name, engine.Regime(r).String())
	}
	for c, name := range []string{"", "empty", "thin", "unknown", "trap", "invalid"} {
		assert.Equal(t, name, engine.Cause(c).String())
	}
	assert.Equal(t, 6, engine.Regimes)
	assert.Equal(t, 5, engine.Causes)
}

// The bounds and units are part of the contract with hosts and guests.
func TestNumbersOfTheContract(t *testing.T) {
	assert.Equal(t, []engine.Duration{1, 1e3, 1e6, 1e9}, []engine.Duration{engine.Nanosecond, engine.Microsecond, engine.Millisecond, engine.Second})
	assert.Equal(t, engine.Duration(-1), engine.UnknownLatency)
	assert.Equal(t, engine.Duration(144115188075855870), engine.MaxLatency)
	assert.Equal(t, ^uint32(0), engine.NoThreshold)
	assert.Equal(t, [2]int{32, 16}, [2]int{engine.MaxTried, engine.MaxAnswers})
}

// The vectors are frozen: identities outlive versions.
func TestIdentitiesAndKeysAreHashes(t *testing.T) {
	assert.Equal(t, engine.ID(0xf52a15e9a9b5e89b), engine.IDOf(""))
	assert.NotEqual(t, engine.IDOf("a"), engine.IDOf("b"))
	assert.Equal(t, engine.Key(engine.IDOf("request-00001")), engine.KeyOf("request-00001"))
	zero := "\xd5\x6b\xb9\x53\x42\x87\x08\x36" // whose hash is zero
	assert.Zero(t, engine.IDOf(zero))
	assert.Equal(t, engine.Key(1), engine.KeyOf(zero), "zero means no key")
}

func TestErrorsSayWhatWasWrong(t *testing.T) {
	for want, err := range map[string]engine.ConfigError{
		"spec: empty":                {Reason: "empty"},
		"random: no":                 {Policy: "random", Reason: "no"},
		"random: seed: given twice":  {Policy: "random", Key: "seed", Reason: "given twice"},
		"random: seed=x: not a seed": {Policy: "random", Key: "seed", Value: "x", Reason: "not a seed"},
		"random: odd":                {Policy: "random", Value: "x", Reason: "odd"},
	} {
		assert.EqualError(t, &err, want)
		assert.ErrorIs(t, &err, engine.ErrConfig)
	}
	err := &engine.DetailError{Err: engine.ErrOverflow, Detail: "too much"}
	assert.EqualError(t, err, "overflow: too much")
	assert.ErrorIs(t, err, engine.ErrOverflow)
}

func TestCountersAreListedInTheOrderOfTheABI(t *testing.T) {
	var c engine.Counters
	for i, p := range c.Each() {
		*p = uint64(i + 1)
	}
	assert.Equal(t, engine.Counters{
		Admitted: 1, Replaced: 2, EvictedOldest: 3, DroppedStale: 4, RemovedWorst: 5, RemovedOldest: 6, Expired: 7, Exhausted: 8,
		Forgotten: 9, Decisions: 10, Fallbacks: 11, Readings: 12, ProbesDue: 13, HeldFit: 14,
	}, c)
}

// A policy that embeds Base and overrides nothing keeps nothing and refuses nothing.
func TestTheBaseDoesNothing(t *testing.T) {
	var b engine.Base
	assert.Zero(t, b.Seed())
	assert.Zero(t, b.Layout())
	assert.NoError(t, b.Admit(ids(1, 1)))
	assert.Equal(t, engine.NotKept, b.Record(0, 0, engine.Reading{}))
	assert.Equal(t, []engine.ID{4}, b.Probes(0, []engine.ID{4}))
	assert.Len(t, b.Entries(0, make([]engine.Entry, 2)), 2)
	assert.True(t, b.Valid())
	s := &engine.Set{}
	b.Bind(nil, s, true)
	assert.Same(t, s, b.Set)
}
