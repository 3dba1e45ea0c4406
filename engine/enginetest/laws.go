package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// Maker starts a machine under test, the same each time. Close frees it, if it must be.
type Maker func() (m engine.Machine, close func(), err error)

// Native makes native engines of a policy; parse is policy.Parse or one's own.
func Native(parse func(string) (engine.Policy, error), spec string) Maker {
	return func() (engine.Machine, func(), error) {
		p, err := parse(spec)
		if err != nil {
			return nil, nil, err
		}
		return engine.New(p, engine.Config{}), func() {}, nil
	}
}

// Law is a property of every policy. Check returns what breaks it.
type Law struct {
	Name  string
	Check func(mk Maker, seed uint64, steps int) error
}

// Laws are the laws of every policy, in the order in which a failure is best understood.
func Laws() []Law {
	return []Law{
		{"a decision is eligible and not tried, or the precise error", eligible},
		{"the same calls give the same answers", deterministic},
		{"shifting all instants changes nothing", shifted},
		{"snapshot and restore is the identity", restored},
		{"a refused fleet leaves the old one serving", transactional},
		{"a decision's counts add up", countsAddUp},
		{"an explanation foretells the decision and changes nothing", foretold},
	}
}

// TestPolicy checks every law over several walks.
func TestPolicy(t *testing.T, mk Maker) {
	t.Helper()
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			for seed := range uint64(8) {
				if err := law.Check(mk, seed, 3000); err != nil {
					t.Fatalf("walk %d: %v", seed, err)
				}
			}
		})
	}
}

// during walks a fresh machine and hands every step to look.
func during(mk Maker, seed uint64, steps int, look func(w *Walker, m engine.Machine, s Step) error) error {
	m, done, err := mk()
	if err != nil {
		return err
	}
	defer done()
	w := NewWalker(seed)
	if err := w.Begin(m); err != nil {
		return fmt.Errorf("first fleet: %w", err)
	}
	for i := range steps {
		if err := look(w, m, w.Step(m)); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

func eligible(mk Maker, seed uint64, steps int) error {
	return during(mk, seed, steps, func(w *Walker, _ engine.Machine, s Step) error { return w.allowed(s) })
}

// Check holds one step against the laws that need no second machine.
func (w *Walker) Check(s Step) error { return errors.Join(w.allowed(s), addsUp(s)) }

func (w *Walker) allowed(s Step) error {
	if s.Op != "decide" {
		return nil
	}
	open := 0
	for _, c := range w.Fleet {
		if c.Status.Eligible() && !slices.Contains(s.Query.Tried, c.ID) {
			open++
		}
	}
	switch {
	case len(w.Fleet) == 0:
		return want(s.Err, engine.ErrNoCandidates)
	case open == 0:
		return want(s.Err, engine.ErrNoneEligible)
	case s.Err != nil:
		return fmt.Errorf("%d candidates are open, and it says %w", open, s.Err)
	case int(s.Decision.Index) >= len(w.Fleet):
		return fmt.Errorf("index %d of %d", s.Decision.Index, len(w.Fleet))
	}
	c := w.Fleet[s.Decision.Index]
	if c.ID != s.Decision.ID || !c.Status.Eligible() || slices.Contains(s.Query.Tried, c.ID) {
		return fmt.Errorf("candidate %d is %s, tried %t", s.Decision.Index, c.Status, slices.Contains(s.Query.Tried, c.ID))
	}
	return nil
}

func want(err, sentinel error) error {
	if !errors.Is(err, sentinel) {
		return fmt.Errorf("want %w, got %w", sentinel, err)
	}
	return nil
}

// alongside walks two machines in step and wants the same words of both.
func alongside(mk Maker, seed uint64, steps int, second func(w *Walker), between func(now engine.Instant, a, b engine.Machine) error) error {
	other, done, err := mk()
	if err != nil {
		return err
	}
	defer done()
	shadow := NewWalker(seed)
	second(shadow)
	if err := shadow.Begin(other); err != nil {
		return err
	}
	return during(mk, seed, steps, func(_ *Walker, m engine.Machine, s Step) error {
		if got := shadow.Step(other); s.Op != "entries" && !s.Same(got) {
			return fmt.Errorf("one says %q, the other %q", s.Text(), got.Text())
		}
		return between(shadow.Now, m, other)
	})
}

func deterministic(mk Maker, seed uint64, steps int) error {
	return alongside(mk, seed, steps, func(*Walker) {}, func(engine.Instant, engine.Machine, engine.Machine) error { return nil })
}

// shifted leaves entries out, which carry instants.
func shifted(mk Maker, seed uint64, steps int) error {
	return alongside(mk, seed, steps, func(w *Walker) { w.Now += 1 << 50 }, func(engine.Instant, engine.Machine, engine.Machine) error { return nil })
}

func restored(mk Maker, seed uint64, steps int) error {
	n := 0
	return alongside(mk, seed, steps, func(*Walker) {}, func(now engine.Instant, a, b engine.Machine) error {
		if n++; n%7 != 0 {
			return nil
		}
		for range 5 { // the other goes its own way, to be brought back
			var d engine.Decision
			_ = b.Decide(&engine.Query{Now: now}, &d)
		}
		block, err := a.Snapshot(nil)
		if err != nil {
			return err
		}
		if err := b.Restore(block); err != nil {
			return fmt.Errorf("restoring the other's block: %w", err)
		}
		again, err := b.Snapshot(nil)
		if err != nil {
			return err
		}
		if !slices.Equal(block, again) {
			return errors.New("the restored block reads otherwise")
		}
		return nil
	})
}

func transactional(mk Maker, seed uint64, steps int) error {
	return alongside(mk, seed, steps, func(*Walker) {}, func(_ engine.Instant, a, _ engine.Machine) error {
		twice := []engine.Candidate{{ID: 1}, {ID: 2}, {ID: 1}}
		if err := want(a.SetCandidates(0, twice), engine.ErrDuplicateID); err != nil {
			return err
		}
		return want(a.SetCandidates(0, []engine.Candidate{{ID: 1, Status: 9}}), engine.ErrConfig)
	})
}

func countsAddUp(mk Maker, seed uint64, steps int) error {
	return during(mk, seed, steps, func(_ *Walker, _ engine.Machine, s Step) error { return addsUp(s) })
}

func addsUp(s Step) error {
	d := s.Decision
	if d == nil {
		return nil
	}
	if d.Cold+d.Hot != d.Offered || (d.Regime == engine.RegimeFallback) != (d.Cause != engine.CauseNone) ||
		d.Regime == engine.RegimeCold && (d.Cold == 0 || d.RIF > d.Threshold) ||
		d.Regime == engine.RegimeHot && (d.Cold != 0 || d.RIF <= d.Threshold) {
		return fmt.Errorf("%+v", *d)
	}
	return nil
}

// Explainer is a machine that says why; a guest is asked through a native one with its block.
type Explainer interface {
	Explain(q *engine.Query) *engine.Explanation
}

func foretold(mk Maker, seed uint64, steps int) error {
	return during(mk, seed, steps/4, func(w *Walker, m engine.Machine, s Step) error {
		if s.Op != "decide" {
			return nil
		}
		q := *s.Query
		q.Key = engine.Key(w.next(100))
		return w.Foretell(m, &q)
	})
}

// Foretell decides a query and holds the decision against what was explained before it, if
// the machine explains.
func (w *Walker) Foretell(m engine.Machine, q *engine.Query) error {
	e, ok := m.(Explainer)
	if !ok {
		return nil
	}
	before, err := m.Snapshot(nil)
	if err != nil {
		return err
	}
	x := e.Explain(q)
	if after, _ := m.Snapshot(nil); !slices.Equal(before, after) {
		return errors.New("explaining changed the state")
	}
	var d engine.Decision
	if err := m.Decide(q, &d); (err == nil) != (x.Err == nil) || err == nil && d != x.Decision {
		return fmt.Errorf("explained %+v (%v), decided %+v (%v)", x.Decision, x.Err, d, err)
	}
	if x.Err != nil {
		return nil
	}
	return sound(w, x, d.ID)
}

// sound checks an explanation of a decision in itself.
func sound(w *Walker, x *engine.Explanation, chosen engine.ID) error {
	rows := map[engine.Verdict]int{}
	for _, r := range x.Weighed {
		rows[r.Verdict]++
		if r.Verdict == engine.VerdictChosen && r.ID != chosen {
			return fmt.Errorf("%d is %s, and %d decided", r.ID, r.Verdict, chosen)
		}
		if int(r.Slot) >= len(w.Fleet) || w.Fleet[r.Slot].ID != r.ID {
			return fmt.Errorf("candidate %d is not %d", r.Slot, r.ID)
		}
	}
	switch {
	case rows[engine.VerdictChosen] != 1:
		return fmt.Errorf("%d rows are chosen", rows[engine.VerdictChosen])
	case len(x.Weighed) < len(w.Fleet):
		return fmt.Errorf("%d rows for %d candidates", len(x.Weighed), len(w.Fleet))
	case x.Because == "":
		return errors.New("no reason")
	case x.Second && x.RunnerUp == chosen:
		return errors.New("its own runner-up")
	}
	return nil
}
