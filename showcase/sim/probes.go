package sim

import "github.com/headroom-lb/headroom/engine"

// flight is a probe on its way. Slots are used again.
type flight struct {
	asked      int64
	client     int32
	replica    int32
	generation uint32
	reading    engine.Reading
}

// probe sends the probes that a client's machine says are due.
func (w *World) probe(c int32) error {
	due, err := w.clients[c].machine.Probes(engine.Instant(w.now), w.due[:0])
	w.due = due
	for _, id := range due {
		i := w.index[id]
		w.Totals.ProbesSent++
		if int(c) == w.focus {
			w.tape.add(w.now, i, c, KindProbe, 0)
		}
		f := w.newFlight()
		w.flights[f] = flight{asked: w.now, client: c, replica: i, generation: w.generation}
		w.queue.push(w.now+w.leg(), evProbe, f, 0)
	}
	return err
}

// leg is the delay of one leg of a probe.
func (w *World) leg() int64 {
	if w.sc.ProbeJitter == 0 {
		return w.sc.Network
	}
	return w.sc.Network + w.network.exponential(w.sc.ProbeJitter)
}

// answer is a probe at its replica: the reading is taken now.
func (w *World) answer(f int32) {
	p := &w.flights[f]
	r := &w.replicas[p.replica]
	if r.state == StateDead {
		w.queue.push(max(w.now, p.asked+w.sc.ProbeTimeout), evLost, f, 0)
		return
	}
	p.reading = r.reading(engine.Instant(w.now))
	w.queue.push(w.now+w.leg(), evReading, f, 0)
}

// lose ends a probe without an answer: its client forgets what it held of the replica.
func (w *World) lose(f int32) error {
	p := w.flights[f]
	w.freeFlights = append(w.freeFlights, f)
	w.Totals.ProbesLost++
	if p.generation != w.generation {
		return nil
	}
	return w.clients[p.client].machine.Forget(engine.Instant(w.now), w.ids[p.replica], engine.Instant(p.asked))
}

// receive is a reading at its client. One that comes after the timeout is lost.
func (w *World) receive(f int32) error {
	p := w.flights[f]
	if w.now-p.asked >= w.sc.ProbeTimeout {
		return w.lose(f)
	}
	w.freeFlights = append(w.freeFlights, f)
	if p.generation != w.generation {
		return nil
	}
	p.reading.Asked = engine.Instant(p.asked)
	w.note(evReading, uint64(p.replica)<<32|uint64(p.reading.RIF))
	_, err := w.clients[p.client].machine.Record(engine.Instant(w.now), w.ids[p.replica], p.reading)
	return err
}

func (w *World) newFlight() int32 {
	if n := len(w.freeFlights); n > 0 {
		f := w.freeFlights[n-1]
		w.freeFlights = w.freeFlights[:n-1]
		return f
	}
	w.flights = append(w.flights, flight{})
	return int32(len(w.flights) - 1)
}
