package sim

import "github.com/headroom-lb/headroom/engine"

// Maker supplies the parts that a world does not contain.
type Maker struct {
	// Machine makes one client's machine. The salt tells the clients apart.
	Machine func(spec string, salt uint64) (engine.Machine, error)
	// Discard, if set, takes back machines that are no longer used.
	Discard func(ms []engine.Machine)
}

// client holds one machine and decides for the queries that arrive at it.
type client struct {
	machine engine.Machine
}

// SetSpec gives every client a new machine with another policy. On an error nothing changes.
func (w *World) SetSpec(spec string) error {
	ms, err := w.Prepare(spec)
	if err != nil {
		return err
	}
	return w.Adopt(spec, ms)
}

// Prepare makes the machines of every client for a policy. It may be called while the world
// runs elsewhere: making WebAssembly instances takes a while.
func (w *World) Prepare(spec string) ([]engine.Machine, error) {
	machines := make([]engine.Machine, 0, len(w.clients))
	for i := range w.clients {
		salts := newStream(w.sc.Seed, streamMachines, uint64(i))
		m, err := w.maker.Machine(spec, salts.next())
		if err != nil {
			w.Discard(machines)
			return nil, err
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// Brief tells prepared machines of the present replicas. An error means that the policy cannot
// run with them; nothing of the world has changed then.
func (w *World) Brief(machines []engine.Machine) error {
	cs := w.candidates()
	for _, m := range machines {
		if err := m.SetCandidates(engine.Instant(w.now), cs); err != nil {
			return err
		}
	}
	return nil
}

// Adopt puts prepared machines in place. Queries in flight end where they are, and report to no
// one: their machine is gone. On an error nothing changes, and the machines are given back.
func (w *World) Adopt(spec string, machines []engine.Machine) error {
	if err := w.Brief(machines); err != nil {
		w.Discard(machines)
		return err
	}
	old := make([]engine.Machine, 0, len(w.clients))
	for i := range w.clients {
		if c := &w.clients[i]; c.machine != nil {
			old = append(old, c.machine)
		}
		w.clients[i].machine = machines[i]
	}
	w.Discard(old)
	w.spec = spec
	w.generation++
	w.Explained = Explained{}
	return nil
}

// Discard gives back machines that are not used.
func (w *World) Discard(ms []engine.Machine) {
	if w.maker.Discard != nil && len(ms) > 0 {
		w.maker.Discard(ms)
	}
}

// Close gives the machines back.
func (w *World) Close() {
	for i := range w.clients {
		if m := w.clients[i].machine; m != nil {
			w.Discard([]engine.Machine{m})
			w.clients[i].machine = nil
		}
	}
}

func (w *World) candidates() []engine.Candidate {
	cs := make([]engine.Candidate, len(w.replicas))
	for i := range cs {
		cs[i] = engine.Candidate{ID: w.ids[i], Status: w.replicas[i].heard}
	}
	return cs
}

// status is what clients are told of a replica in a state.
func (s State) status() engine.Status {
	switch s {
	case StateDraining:
		return engine.StatusDraining
	case StateDead:
		return engine.StatusUnavailable
	}
	return engine.StatusReady
}

// hear tells every client of a replica's status.
func (w *World) hear(i int32) error {
	r := &w.replicas[i]
	if st := r.state.status(); st != r.heard {
		r.heard = st
		for c := range w.clients {
			if err := w.clients[c].machine.SetStatus(engine.Instant(w.now), w.ids[i], st); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrive places the query that has just arrived, and sends the probes that are then due.
func (w *World) arrive() error {
	w.traffic.mark(w.now)
	c, work := w.traffic.client, w.traffic.work
	w.queue.push(w.now+w.traffic.draw(), evArrival, 0, 0)
	w.Totals.Arrivals++

	m := w.clients[c].machine
	ask := engine.Query{Now: engine.Instant(w.now)}
	var d engine.Decision
	focused := int(c) == w.focus
	if focused {
		w.before(m)
	}
	if err := m.Decide(&ask, &d); err != nil {
		if !refusal(err) {
			return err
		}
		w.Totals.Errors++
		w.Totals.Unplaced++
		return nil
	}
	if focused {
		w.after(m, &d)
	}
	w.Totals.ByRegime[d.Regime]++
	w.note(evArrival, uint64(d.Index)<<8|uint64(d.Regime))
	w.tape.add(w.now, int32(d.Index), c, Kind(d.Regime), work)
	id := w.newQuery()
	q := &w.queries[id]
	q.client, q.replica, q.born, q.work, q.generation = c, int32(d.Index), w.now, work, w.generation
	w.queue.push(w.now+w.sc.Network, evAdmit, id, 0)
	return w.probe(c)
}
