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
	machine    engine.Machine
	spec       string
	generation uint32 // of its machine: what an earlier one began ends without it
	wait       int32  // answers to its own probes that a query waits for; 0 if it has none
	listens    bool   // its policy weighs load reports
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
	return w.prepare(spec, 0, len(w.clients))
}

func (w *World) prepare(spec string, from, to int) ([]engine.Machine, error) {
	machines := make([]engine.Machine, 0, to-from)
	for i := from; i < to; i++ {
		salts := newStream(w.sc.Seed, streamMachines, uint64(i))
		m, err := w.machine(spec, salts.next())
		if err != nil {
			w.Discard(machines)
			return nil, err
		}
		machines = append(machines, m)
	}
	return machines, nil
}

func (w *World) machine(spec string, salt uint64) (engine.Machine, error) {
	if spec == Omniscient {
		return newOmniscient(w, salt), nil
	}
	return w.maker.Machine(spec, salt)
}

// Brief tells prepared machines of the present replicas. An error means that the policy cannot
// run with them; nothing of the world has changed then.
func (w *World) Brief(machines []engine.Machine) error { return w.brief(0, machines) }

func (w *World) brief(from int, machines []engine.Machine) error {
	for i, m := range machines {
		if err := m.SetCandidates(engine.Instant(w.now), w.candidates(from+i)); err != nil {
			return err
		}
	}
	return nil
}

// Adopt puts prepared machines in place. Queries in flight end where they are, and report to no
// one: their machine is gone. On an error nothing changes, and the machines are given back.
func (w *World) Adopt(spec string, machines []engine.Machine) error {
	if err := w.adopt(spec, 0, machines); err != nil {
		return err
	}
	w.spec = spec
	w.Explained = Explained{}
	return nil
}

// adopt is Adopt for some clients.
func (w *World) adopt(spec string, from int, machines []engine.Machine) error {
	if err := w.brief(from, machines); err != nil {
		w.Discard(machines)
		return err
	}
	return w.seat(spec, from, machines, true)
}

// seat puts machines that know the fleet in place. Afresh, they know nothing of what is open.
func (w *World) seat(spec string, from int, machines []engine.Machine, afresh bool) error {
	old := make([]engine.Machine, 0, len(machines))
	for i, m := range machines {
		c := &w.clients[from+i]
		if c.machine != nil {
			old = append(old, c.machine)
		}
		c.machine, c.spec, c.listens = m, spec, listens(spec)
		if afresh {
			c.generation++
		}
		var f engine.Fit
		if err := m.Inspect(&engine.Counters{}, &f); err != nil {
			return err
		}
		c.wait = int32(f.Wait)
	}
	w.Discard(old)
	return nil
}

// listens reports whether a policy weighs load reports.
func listens(spec string) bool {
	const name = "weighted_round_robin"
	return spec == name || len(spec) > len(name) && spec[:len(name)+1] == name+" "
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

// candidates are the replicas that a client knows of. All know the same, unless the scenario
// gives each a subset: then clients share a shuffled fleet out in rounds, so that every replica
// is known to as many clients as any other, give or take one for what a round leaves over.
func (w *World) candidates(c int) []engine.Candidate {
	n, k := len(w.members), w.sc.Subset
	if k == 0 || k >= n {
		return w.list(w.members)
	}
	round, part := c/(n/k), c%(n/k)
	s, fleet := newStream(w.sc.Seed, streamSubsets, uint64(round)), append([]int32(nil), w.members...)
	for i := n - 1; i > 0; i-- {
		j := s.below(uint64(i + 1))
		fleet[i], fleet[j] = fleet[j], fleet[i]
	}
	return w.list(fleet[part*k : (part+1)*k])
}

func (w *World) list(replicas []int32) []engine.Candidate {
	cs := make([]engine.Candidate, len(replicas))
	for k, i := range replicas {
		cs[k] = engine.Candidate{ID: w.ids[i], Status: w.replicas[i].heard}
	}
	return cs
}

// roll tells every client who belongs to the fleet now.
func (w *World) roll() error {
	changed := false
	for i := range w.replicas {
		r := &w.replicas[i]
		if is := r.state != StateAbsent; is != r.listed {
			r.listed, r.heard, changed = is, r.state.status(), true
		}
	}
	if !changed {
		return nil
	}
	w.members = w.members[:0]
	for i := range w.replicas {
		if w.replicas[i].listed {
			w.members = append(w.members, int32(i))
		}
	}
	for c := range w.clients {
		if err := w.clients[c].machine.SetCandidates(engine.Instant(w.now), w.candidates(c)); err != nil {
			return err
		}
	}
	return nil
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
	if st := r.state.status(); st != r.heard && r.listed {
		r.heard = st
		for c := range w.clients {
			if err := known(w.clients[c].machine.SetStatus(engine.Instant(w.now), w.ids[i], st)); err != nil {
				return err
			}
		}
	}
	return nil
}
