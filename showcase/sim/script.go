package sim

import (
	"errors"
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
)

// Action is what a line of a script does.
type Action uint8

const (
	ChangeLoad     Action = iota // the offered load becomes Value, in parts per 10,000
	ChangeState                  // replicas take the [State] Value: killed, drained, back, joined, gone
	ChangeFailing                // Value of the queries that reach these replicas fail at once, in parts per 10,000
	ChangeNoise                  // these replicas have a neighbour that never rests: Value 1 gives it, 0 takes it away
	RestartClients               // these clients start anew with the policy Spec, and know nothing
	ReloadClients                // these clients go over to Spec and keep what they know, as a host's reload does
	actions
)

// Change is a line of a script: what happens at an instant.
type Change struct {
	At       int64
	Do       Action
	From, To int // which replicas or clients, To not included; both zero is all
	Value    int
	Spec     string
}

// checkScript says which line of a script cannot be.
func (s *Scenario) checkScript() error {
	last := int64(0)
	for i, c := range s.Script {
		wrong := func(what string) error {
			return errors.New("scenario: script line " + strconv.Itoa(i+1) + ": " + what)
		}
		n, most := s.Replicas, int64(0)
		switch c.Do {
		case ChangeLoad:
			most = MaxLoad
		case ChangeState:
			most = int64(StateAbsent)
		case ChangeFailing:
			most = whole
		case ChangeNoise:
			most = 1
		case RestartClients, ReloadClients:
			if n = s.Clients; c.Spec == "" {
				return wrong("needs a policy: set Spec")
			}
		default:
			return wrong("no such action")
		}
		switch {
		case c.At < last:
			return wrong("lines must be in order of time")
		case c.From < 0 || c.To < 0 || c.To > n || c.To != 0 && c.From >= c.To || c.To == 0 && c.From != 0:
			return wrong("From and To must be within 0 to " + strconv.Itoa(n) + ", in order, or both 0 for all")
		case int64(c.Value) < 0 || int64(c.Value) > most || c.Do == ChangeLoad && c.Value == 0:
			return wrong("Value " + strconv.Itoa(c.Value) + " is out of range; at most " + strconv.FormatInt(most, 10))
		}
		last = c.At
	}
	return nil
}

// change does what a line says.
func (w *World) change(c *Change) error {
	from, to := c.From, c.To
	clients := c.Do == RestartClients || c.Do == ReloadClients
	if to == 0 {
		if to = len(w.replicas); clients {
			to = len(w.clients)
		}
	}
	switch c.Do {
	case ChangeLoad:
		w.SetLoad(c.Value)
	case RestartClients:
		return w.Restart(c.Spec, from, to)
	case ReloadClients:
		return w.Reload(c.Spec, from, to)
	default:
		for i := from; i < to; i++ {
			switch c.Do {
			case ChangeState:
				w.SetState(i, State(c.Value))
			case ChangeFailing:
				w.SetFailing(i, c.Value)
			case ChangeNoise:
				w.setHeld(int32(i), c.Value == 1)
			}
		}
	}
	return nil
}

// Restart gives the clients [from, to) new machines with a policy. They know nothing, and what
// the old ones had open reports to no one. On an error nothing changes.
func (w *World) Restart(spec string, from, to int) error {
	ms, err := w.prepare(spec, from, to)
	if err != nil {
		return err
	}
	return w.adopt(spec, from, ms)
}

// Reload gives the clients [from, to) another policy, as a host does under traffic: the new
// machine takes the old one's state where the policies are the same, else its readings, and in
// either case what is open. On an error nothing changes.
func (w *World) Reload(spec string, from, to int) error {
	ms, err := w.prepare(spec, from, to)
	if err != nil {
		return err
	}
	for i, m := range ms {
		if err := w.handOver(from+i, m, spec); err != nil {
			w.Discard(ms)
			return err
		}
	}
	for i, m := range ms {
		if err := m.SetInFlight(w.open(int32(from + i))); err != nil {
			w.Discard(ms)
			return err
		}
	}
	return w.seat(spec, from, ms, false)
}

// handOver brings a new machine to where the old one stands.
func (w *World) handOver(i int, m engine.Machine, spec string) error {
	c := &w.clients[i]
	// The fleet is no news: it was so an hour ago, for all that the new machine knows.
	if err := m.SetCandidates(engine.Instant(w.now-3600*Second), w.candidates(i)); err != nil {
		return err
	}
	if c.spec == spec {
		block, err := c.machine.Snapshot(nil)
		if err != nil {
			return err
		}
		return m.Restore(block)
	}
	held, err := c.machine.Entries(engine.Instant(w.now), nil)
	if err != nil {
		return err
	}
	slices.SortStableFunc(held, func(a, b engine.Entry) int { return int(min(max(a.At-b.At, -1), 1)) })
	for _, e := range held {
		if _, err := m.Record(e.At, e.ID, engine.Reading{RIF: e.RawRIF, Latency: e.RawLatency, Asked: e.Asked}); err != nil {
			return err
		}
	}
	return nil
}

// open counts a client's queries in flight, by replica.
func (w *World) open(c int32) (open []engine.InFlight) {
	counts := make([]uint32, len(w.replicas))
	for i := range w.queries {
		if q := &w.queries[i]; q.serial != 0 && q.client == c && q.generation == w.clients[c].generation {
			counts[q.replica]++
		}
	}
	for i, n := range counts {
		if n > 0 {
			open = append(open, engine.InFlight{ID: w.ids[i], Queries: n})
		}
	}
	return open
}
