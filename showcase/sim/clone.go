package sim

import "github.com/headroom-lb/headroom/engine"

// Clone is a second world in exactly the state of this one: both run on to the same [World.Hash].
// It shares nothing with the first and may run beside it; keep one as a snapshot, and clone that
// one to go back. Its machines come from the same maker and take a snapshot of the old ones'
// state; what a maker wraps around a machine starts anew. Nobody is focused in a clone, no tape
// runs, and it has measures of its own: [World.Measures].
func (w *World) Clone() (*World, error) {
	c := w.twin()
	for i := range c.clients {
		if err := c.copyMachine(&w.clients[i], i); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// copyMachine gives client i a machine in the state of another client's.
func (w *World) copyMachine(from *client, i int) error {
	block, err := from.machine.Snapshot(nil)
	if err != nil {
		return err
	}
	ms, err := w.prepare(from.spec, i, i+1)
	if err != nil {
		return err
	}
	m := ms[0]
	w.clients[i].machine = m
	if err := m.SetCandidates(engine.Instant(w.now), w.candidates(i)); err != nil {
		return err
	}
	return m.Restore(block)
}

// Fork is a clone in which every client starts anew with another policy: the same fleet, the same
// queries in flight, the same traffic to come.
func (w *World) Fork(spec string) (*World, error) {
	c := w.twin()
	if err := c.SetSpec(spec); err != nil {
		return nil, err
	}
	return c, nil
}

// twin copies everything but the machines.
func (w *World) twin() *World {
	c := *w
	c.Explained, c.Held, c.hold, c.focus, c.tape = Explained{}, nil, 0, -1, nil
	c.scratch, c.due, c.ask = nil, nil, engine.Query{}
	c.sc.Script = append([]Change(nil), w.sc.Script...)
	c.queue, c.alarms = w.queue.clone(), w.alarms.clone()
	c.loads = append([]loadHistory(nil), w.loads...)
	c.replicas = append([]replica(nil), w.replicas...)
	for i := range c.replicas {
		r := &c.replicas[i]
		r.jobs, r.est = append([]job(nil), r.jobs...), r.est.Clone()
	}
	c.clients = append([]client(nil), w.clients...)
	for i := range c.clients {
		c.clients[i].machine = nil
	}
	c.members = append([]int32(nil), w.members...)
	c.queries = append([]query(nil), w.queries...)
	c.free = append([]int32(nil), w.free...)
	c.flights = append([]flight(nil), w.flights...)
	c.landed = append([]int32(nil), w.landed...)
	c.ballots = append([]ballot(nil), w.ballots...)
	c.counted = append([]int32(nil), w.counted...)
	c.measures = make([]*Measure, len(w.measures))
	for i, m := range w.measures {
		c.measures[i] = m.clone()
		if m == w.active {
			c.active = c.measures[i]
		}
	}
	return &c
}
