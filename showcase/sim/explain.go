package sim

import "github.com/headroom-lb/headroom/engine"

// Explained is one decision with what its machine knew.
type Explained struct {
	Serial   uint64 // counts the focused client's decisions, from 1; 0 is none yet
	At       int64
	Client   int
	Decision engine.Decision
	Before   []engine.Entry // the pool as the decision found it
	After    []engine.Entry // the pool after removal, charge and compensation
	// What the policy had counted before and after, which tells removals apart.
	CountedBefore, CountedAfter engine.Counters
}

// Replica is the index of the replica behind an identity, or -1.
func (w *World) Replica(id engine.ID) int {
	return int(w.index.find(id))
}

// Focus says whose decisions to explain: a client, or -1 for none.
func (w *World) Focus(client int) {
	if client >= len(w.clients) {
		client = -1
	}
	if client != w.focus {
		w.focus = client
		w.Explained = Explained{}
	}
}

func (w *World) look(m engine.Machine) {
	// An error here is the machine's and comes back with the decision that follows.
	w.scratch, _ = m.Entries(engine.Instant(w.now), w.scratch[:0])
	_ = m.Inspect(&w.before, &engine.Fit{})
}

func (w *World) explain(m engine.Machine, d *engine.Decision) {
	e := &w.Explained
	e.Serial++
	e.At, e.Client, e.Decision = w.now, w.focus, *d
	e.Before = append(e.Before[:0], w.scratch...)
	e.After, _ = m.Entries(engine.Instant(w.now), e.After[:0])
	e.CountedBefore = w.before
	_ = m.Inspect(&e.CountedAfter, &engine.Fit{})
	if w.hold != 0 && w.hold == uint8(d.Regime)+1 {
		w.Held, w.hold = e.clone(), 0
	}
}

func (e *Explained) clone() *Explained {
	c := *e
	c.Before = append([]engine.Entry(nil), e.Before...)
	c.After = append([]engine.Entry(nil), e.After...)
	return &c
}

// Hold keeps the focused client's next decision of a regime in Held.
func (w *World) Hold(r engine.Regime) { w.hold, w.Held = uint8(r)+1, nil }

// Fit is what the focused client's policy derived for the fleet, and what it has counted.
func (w *World) Fit() (engine.Counters, engine.Fit, error) {
	var c engine.Counters
	var f engine.Fit
	err := w.clients[max(w.focus, 0)].machine.Inspect(&c, &f)
	return c, f, err
}

// Unhold lets go of a held decision, and of the wait for one.
func (w *World) Unhold() { w.hold, w.Held = 0, nil }
