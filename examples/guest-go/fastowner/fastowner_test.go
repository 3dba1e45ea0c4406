package fastowner

import (
	"strings"
	"testing"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
)

func machine(t *testing.T, spec string, n int) *engine.Engine {
	t.Helper()
	p, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	m := engine.New(p, engine.Config{})
	fleet := make([]engine.Candidate, n)
	for i := range fleet {
		fleet[i].ID = engine.ID(i + 1)
	}
	if err := m.SetCandidates(0, fleet); err != nil {
		t.Fatal(err)
	}
	return m
}

func decide(t *testing.T, m *engine.Engine, now engine.Instant, tried ...engine.ID) engine.Decision {
	t.Helper()
	var d engine.Decision
	if err := m.Decide(&engine.Query{Now: now, Key: 7, Tried: tried}, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The laws of every policy, natively.
func TestLaws(t *testing.T) {
	for _, spec := range []string{"fast_owner seed=3", "fast_owner owners=1", "fast_owner owners=8 spill=1 half_life=1"} {
		t.Run(spec, func(t *testing.T) { enginetest.TestPolicy(t, enginetest.Native(Parse, spec)) })
	}
}

// A key leaves its owner while that one is slow, for one of its other owners, and comes back.
func TestAKeySpillsAndComesBack(t *testing.T) {
	m := machine(t, Name, 8)
	first := decide(t, m, 0)
	second := decide(t, m, 0, first.ID)
	third := decide(t, m, 0, first.ID, second.ID)
	for _, r := range []engine.Report{
		{ID: first.ID, Latency: 9 * engine.Millisecond}, {ID: second.ID, Latency: 2 * engine.Millisecond}, {ID: third.ID, Latency: 3 * engine.Millisecond},
	} {
		if err := m.Report(1, r); err != nil {
			t.Fatal(err)
		}
	}
	if d := decide(t, m, 2); d.ID != second.ID || d.Regime != engine.RegimeSpill {
		t.Fatalf("the owner is slow, and %d decided by %s", d.ID, d.Regime)
	}
	if x := m.Explain(&engine.Query{Now: 2, Key: 7}); !strings.Contains(x.Because, "cheapest") || x.Decision.ID != third.ID {
		t.Fatalf("with one in flight on the second owner the third is cheapest: %+v", x)
	}
	later := engine.Instant(25 * engine.Second) // two half-lives: 9 ms counts as 2.25
	for range 30 {
		for _, id := range []engine.ID{second.ID, third.ID} {
			if err := m.Report(later, engine.Report{ID: id, Latency: 2 * engine.Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d := decide(t, m, later); d.ID != first.ID || d.Regime != engine.RegimeDirect {
		t.Fatalf("the estimate has faded, and %d decided by %s", d.ID, d.Regime)
	}
}

// A replica that fails fast attracts nothing.
func TestFailingFastCosts(t *testing.T) {
	m := machine(t, Name+" owners=2", 2)
	first := decide(t, m, 0)
	other := decide(t, m, 0, first.ID)
	for i := range engine.Instant(10) {
		if err := m.Report(i, engine.Report{ID: other.ID, Latency: engine.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if err := m.Report(i, engine.Report{ID: first.ID, Outcome: engine.OutcomeFailure, Latency: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	if d := decide(t, m, 11); d.ID != other.ID {
		t.Fatal("the failing one decided")
	}
}

func TestDecisionsDoNotAllocate(t *testing.T) {
	m := machine(t, Name, 64)
	var d engine.Decision
	q := engine.Query{Now: 1, Key: 7}
	if n := testing.AllocsPerRun(1000, func() { q.Key++; _ = m.Decide(&q, &d) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestSpecs(t *testing.T) {
	for spec, want := range map[string]string{
		Name: "fast_owner seed=0 owners=3 spill=2 half_life=10000",
		Name + " spill=1.5 seed=7 owners=2 half_life=250": "fast_owner seed=7 owners=2 spill=1.5 half_life=250",
		Name + " spill=10": "fast_owner seed=0 owners=3 spill=10 half_life=10000",
	} {
		p, err := Parse(spec)
		if err != nil || p.Spec() != want {
			t.Errorf("%s: %v, %v", spec, p, err)
			continue
		}
		if again, err := Parse(p.Spec()); err != nil || again.Spec() != want {
			t.Errorf("%s: not itself again", want)
		}
	}
	for spec, reason := range map[string]string{
		"": "want fast_owner", Name + " owners=0": "want 1 to 8", Name + " owners=9": "want 1 to 8", Name + " spill=0.99": "want 1 to 10",
		Name + " spill=10.01": "want 1 to 10", Name + " spill=1.555": "two digits", Name + " half_life=0": "milliseconds",
		Name + " seed=x": "whole number", Name + " seed=1 seed=1": "twice", Name + " sed=1": "no such setting",
	} {
		if _, err := Parse(spec); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v, want %q", spec, err, reason)
		}
	}
}
