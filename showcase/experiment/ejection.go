package experiment

import "github.com/headroom-lb/headroom/engine"

// ejection is outlier detection: after five failures in a row a replica gets no queries and no
// probes from this client for a second, and for twice as long each time that it comes back and
// fails again; but never more than half of the fleet at once. A failure drops its entry too.
type ejection struct {
	aside[ejected]
	ids  []engine.ID
	out  int
	next engine.Instant // the first at which one may come back
}

type ejected struct {
	failures int             // in a row
	backoff  engine.Duration // of the next ejection; 0 is the first
	until    engine.Instant  // out until then, if out
	out      bool
}

const (
	ejectAfter   = 5
	firstBackoff = engine.Second
	mostBackoff  = 30 * engine.Second
)

func newEjection(m engine.Machine) engine.Machine {
	return &ejection{aside: aside[ejected]{Machine: m}}
}

func (e *ejection) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	e.ids, e.out = e.ids[:0], 0
	for _, c := range cs {
		e.ids = append(e.ids, c.ID)
	}
	return e.aside.SetCandidates(now, cs)
}

func (e *ejection) Decide(q *engine.Query, d *engine.Decision) error {
	if e.out > 0 && q.Now >= e.next {
		if err := e.readmit(q.Now); err != nil {
			return err
		}
	}
	return e.Machine.Decide(q, d)
}

// readmit lets back whoever has been out for long enough.
func (e *ejection) readmit(now engine.Instant) error {
	e.next = 1<<63 - 1
	for i := range e.known {
		k := &e.known[i]
		switch {
		case !k.out:
		case k.until > now:
			e.next = min(e.next, k.until)
		default:
			k.out = false
			e.out--
			// One failure sends it out again: it is on trial.
			k.failures = ejectAfter - 1
			if err := e.Machine.SetStatus(now, e.ids[i], engine.StatusReady); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *ejection) Report(now engine.Instant, r engine.Report) error {
	if err := e.Machine.Report(now, r); err != nil {
		return err
	}
	k := &e.known[e.index[r.ID]]
	if k.out {
		return nil // sent before it went out
	}
	if !bad(r.Outcome) {
		if r.Outcome == engine.OutcomeSuccess {
			k.failures, k.backoff = 0, 0
		}
		return nil
	}
	if err := e.Machine.Forget(now, r.ID, now); err != nil {
		return err
	}
	k.failures++
	if k.failures < ejectAfter || 2*(e.out+1) > len(e.known) {
		return nil
	}
	k.backoff = min(max(2*k.backoff, firstBackoff), mostBackoff)
	k.out, k.until = true, now+engine.Instant(k.backoff)
	if e.out++; e.out == 1 || k.until < e.next {
		e.next = k.until
	}
	return e.Machine.SetStatus(now, r.ID, engine.StatusUnavailable)
}
