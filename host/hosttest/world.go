package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// guest is what is judged: an instance of a module. The tests of the laws put natives in its place.
type guest interface {
	engine.Machine
	Spec() string
	MemorySize() int
	Close(ctx context.Context) error
}

// raw is a guest that can be called past the host's own checks.
type raw interface {
	Call(name string, args ...uint64) (uint64, error)
}

// world is a guest and what it was told.
type world struct {
	guest
	now   engine.Instant
	fleet []engine.Candidate
	said  []string

	made    int // calls
	trapped bool
	looped  bool // and it took the time that a call may take
}

// reply is what came of a call.
type reply struct {
	err  error
	d    engine.Decision // of a decide; its index also where the host refused it
	ids  []engine.ID
	held []engine.Entry
	what string
}

// broken says that the guest cannot be called again. Two laws are about that; for the others the
// walk ends.
func (r *reply) broken() bool {
	return errors.Is(r.err, host.ErrTrap) || errors.Is(r.err, host.ErrAnswer)
}

// tooOld is what became of a call that the guest has no export for.
const tooOld = "not known to this guest"

func (r *reply) text() string {
	switch {
	case errors.Is(r.err, host.ErrTrap):
		return "trap"
	case errors.Is(r.err, host.ErrAnswer):
		return fmt.Sprint("a wrong answer, index ", r.d.Index)
	case r.err != nil:
		return abi.NameOf(r.err)
	}
	return r.what
}

// do makes a call.
func (w *world) do(c *call) reply {
	w.now += engine.Instant(c.gap)
	return w.doAt(c, w.now)
}

// doAt makes a call that names another instant than the walk has come to.
func (w *world) doAt(c *call, now engine.Instant) (r reply) {
	begun := time.Now()
	id := identities[c.who]
	asked := w.now - engine.Instant(c.asked)
	switch c.op {
	case opFleet:
		cs := candidates(c.fleet)
		if r.err = w.SetCandidates(now, cs); r.err == nil {
			w.fleet = cs
		}
	case opDecide:
		q := engine.Query{Now: now, Key: c.key}
		for _, who := range c.tried {
			q.Tried = append(q.Tried, identities[who])
		}
		for _, a := range c.answers {
			q.Answers = append(q.Answers, engine.Answer{ID: identities[a.who], Reading: engine.Reading{RIF: a.rif, Latency: a.latency, Asked: w.now}})
		}
		if r.err = w.Decide(&q, &r.d); r.err == nil {
			r.what = fmt.Sprintf("%s, index %d, %s", nameOfID(r.d.ID), r.d.Index, r.d.Regime)
			if r.d.Offered > 0 || r.d.Cause != engine.CauseNone {
				r.what += fmt.Sprintf("%s, %d offered, %d cold, threshold %d, RIF %d, latency %d, age %d, %d uses left",
					prefix(" because ", r.d.Cause.String()), r.d.Offered, r.d.Cold, r.d.Threshold, r.d.RIF, r.d.Latency, r.d.Age, r.d.UsesLeft)
			}
		}
	case opReport:
		r.err = w.Report(now, engine.Report{ID: id, Outcome: c.outcome, Latency: c.latency})
	case opRecord:
		var a engine.Admission
		a, r.err = w.Record(now, id, engine.Reading{RIF: c.rif, Latency: c.latency, Asked: asked})
		r.what = [...]string{"not kept", "admitted", "replaced", "evicted the oldest", "dropped as stale"}[min(a, engine.DroppedStale)]
	case opStatus:
		if r.err = w.SetStatus(now, id, c.status); r.err == nil {
			for i := range w.fleet {
				if w.fleet[i].ID == id {
					w.fleet[i].Status = c.status
				}
			}
		}
	case opLoad:
		r.err = w.RecordLoad(now, id, c.load)
	case opForget:
		r.err = w.Forget(now, id, asked)
	case opProbes:
		r.ids, r.err = w.Probes(now, nil)
		out := make([]string, len(r.ids))
		for i, id := range r.ids {
			out[i] = nameOfID(id)
		}
		r.what = strings.Join(out, " ")
	case opEntries:
		r.held, r.err = w.Entries(now, nil)
		r.what = fmt.Sprint(len(r.held), " entries")
		for _, e := range r.held {
			r.what += fmt.Sprintf("; %s RIF %d, latency %d, %d uses", nameOfID(e.ID), e.RIF, e.Latency, e.Uses)
		}
	case opTakeOver:
		open := make([]engine.InFlight, len(c.open))
		for i, f := range c.open {
			open[i] = engine.InFlight{ID: identities[f.who], Queries: f.queries}
		}
		if r.err = w.SetInFlight(open); errors.Is(r.err, host.ErrOldGuest) {
			r.err, r.what = nil, tooOld
		}
	}
	w.made++
	if errors.Is(r.err, host.ErrTrap) {
		w.trapped, w.looped = true, time.Since(begun) > slow
	}
	w.said = append(w.said, c.String()+prefix(" → ", r.text()))
	return r
}

func prefix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// open are the candidates that a query may go to.
func (w *world) open(c *call) (n int) {
	for i := range w.fleet {
		if w.fleet[i].Status.Eligible() && !w.tried(c, w.fleet[i].ID) {
			n++
		}
	}
	return n
}

func (w *world) tried(c *call, id engine.ID) bool {
	return slices.ContainsFunc(c.tried, func(who int) bool { return identities[who] == id })
}

func (w *world) has(who int) bool {
	return slices.ContainsFunc(w.fleet, func(c engine.Candidate) bool { return c.ID == identities[who] })
}

// trial is one attempt to break a law: calls, and the guests started for it.
type trial struct {
	ctx    context.Context
	start  func(spec string) (guest, error)
	spec   string
	calls  []call
	seed   uint64 // of what the law itself draws
	worlds []*world
}

// world starts a fresh guest.
func (t *trial) world() (*world, error) {
	g, err := t.start(t.spec)
	if err != nil {
		return nil, err
	}
	w := &world{guest: g}
	t.worlds = append(t.worlds, w)
	return w, nil
}

// end frees the guests and tells of the first what was said and how many calls were made, and of all
// whether one trapped, or looped.
func (t *trial) end() (said []string, made int, trapped, looped bool) {
	for i, w := range t.worlds {
		if i == 0 {
			said, made = w.said, w.made
		}
		trapped, looped = trapped || w.trapped, looped || w.looped
		_ = w.Close(t.ctx)
	}
	return said, made, trapped, looped
}

// walk makes the calls on a fresh guest and shows each to look.
func (t *trial) walk(look func(w *world, c *call, r *reply) error) error {
	w, err := t.world()
	if err != nil {
		return err
	}
	for i := range t.calls {
		r := w.do(&t.calls[i])
		if err := look(w, &t.calls[i], &r); err != nil {
			return err
		}
		if r.broken() {
			return nil
		}
	}
	return nil
}

// alike makes the calls on two fresh guests, on the second in its own way, and wants the same
// words of both. Between calls it lets something be done to the second.
func (t *trial) alike(second func(w *world, c *call, i int) reply, between func(a, b *world, i int) error) error {
	a, err := t.world()
	if err != nil {
		return err
	}
	b, err := t.world()
	if err != nil {
		return err
	}
	for i := range t.calls {
		c := &t.calls[i]
		one, two := a.do(c), second(b, c, i)
		if one.broken() || two.broken() {
			return nil
		}
		if one.text() != two.text() {
			return fmt.Errorf("the other guest says %q", two.text())
		}
		if err := between(a, b, i); err != nil {
			return err
		}
	}
	return nil
}

// plainly makes a call as it stands.
func plainly(w *world, c *call, _ int) reply { return w.do(c) }

func nothing(*world, *world, int) error { return nil }

// want is nil for the error it names.
func want(err, sentinel error) error {
	switch {
	case errors.Is(err, sentinel):
		return nil
	case err == nil:
		return fmt.Errorf("taken, and should be refused as %s", abi.NameOf(sentinel))
	}
	return fmt.Errorf("refused as %s (%w), and should be as %s", abi.NameOf(err), err, abi.NameOf(sentinel))
}
