package sim

import "github.com/headroom-lb/headroom/engine"

// flight is a probe on its way. Slots are used again.
type flight struct {
	asked      int64
	client     int32
	replica    int32
	ballot     int32 // of the query that it belongs to, or nobody
	generation uint32
	reading    engine.Reading
}

// probe sends the probes that a client's machine says are due.
func (w *World) probe(c int32) error {
	cl := &w.clients[c]
	if cl.wait > 0 {
		return nil // its probes belong to queries
	}
	due, err := cl.machine.Probes(engine.Instant(w.now), w.due[:0])
	w.due = due
	w.send(c, nobody)
	return err
}

// send sends a probe to everyone who is due.
func (w *World) send(c, ballot int32) {
	generation := w.clients[c].generation
	for _, id := range w.due {
		i := w.index.find(id)
		w.Totals.ProbesSent++
		if int(c) == w.focus {
			w.tape.add(w.now, i, c, KindProbe, 0)
		}
		f := w.newFlight()
		w.flights[f] = flight{asked: w.now, client: c, replica: i, ballot: ballot, generation: generation}
		if w.sc.ProbeLoss > 0 && w.losses.below(whole) < uint64(w.sc.ProbeLoss) {
			w.queue.push(w.now+w.sc.ProbeTimeout, evLost, f)
			continue
		}
		w.queue.push(w.now+w.leg(), evProbe, f)
	}
}

// leg is the delay of one leg of a probe.
func (w *World) leg() int64 {
	if w.sc.ProbeJitter == 0 {
		return w.sc.Network
	}
	return w.sc.Network + w.network.exponential(w.sc.ProbeJitter)
}

// answer is a probe at its replica: the reading is taken now. One that would come after the
// timeout is lost.
func (w *World) answer(f int32) {
	p := &w.flights[f]
	r := &w.replicas[p.replica]
	if r.state == StateDead {
		w.queue.push(max(w.now, p.asked+w.sc.ProbeTimeout), evLost, f)
		return
	}
	p.reading = r.reading(engine.Instant(w.now))
	p.reading.Asked = engine.Instant(p.asked)
	at := w.now + w.leg()
	if lost := p.asked + w.sc.ProbeTimeout; at >= lost {
		w.queue.push(max(w.now, lost), evLost, f)
		return
	}
	w.queue.push(at, evReading, f)
}

// lose ends a probe without an answer: its client forgets what it held of the replica.
func (w *World) lose(f int32) error {
	p := &w.flights[f]
	w.landed = append(w.landed, f)
	w.Totals.ProbesLost++
	if cl := &w.clients[p.client]; p.generation == cl.generation {
		if err := known(cl.machine.Forget(engine.Instant(w.now), w.ids[p.replica], engine.Instant(p.asked))); err != nil {
			return err
		}
	}
	if p.ballot != nobody {
		return w.poll(p.ballot, nil)
	}
	return nil
}

// receive is a reading at its client.
func (w *World) receive(f int32) error {
	p := &w.flights[f]
	w.landed = append(w.landed, f)
	if p.ballot != nobody {
		return w.poll(p.ballot, p)
	}
	cl := &w.clients[p.client]
	if p.generation != cl.generation {
		return nil
	}
	w.note(evReading, uint64(p.replica)<<32|uint64(p.reading.RIF))
	_, err := cl.machine.Record(engine.Instant(w.now), w.ids[p.replica], p.reading)
	return known(err)
}

func (w *World) newFlight() int32 {
	if n := len(w.landed); n > 0 {
		f := w.landed[n-1]
		w.landed = w.landed[:n-1]
		return f
	}
	w.flights = append(w.flights, flight{})
	return int32(len(w.flights) - 1)
}
