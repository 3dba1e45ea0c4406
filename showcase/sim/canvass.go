package sim

import "github.com/headroom-lb/headroom/engine"

// ballot is a query that waits for the answers to probes of its own. Slots are used again.
type ballot struct {
	answers [engine.MaxAnswers]engine.Answer
	born    int64
	work    int64
	client  int32
	n       int32 // answers so far
	out     int32 // probes still on their way
	decided bool
}

// canvass sends a query's own probes. It is decided once enough answers are there, or none can
// come any more; at the latest when its probes time out.
func (w *World) canvass(c int32, work int64) error {
	due, err := w.clients[c].machine.Probes(engine.Instant(w.now), w.due[:0])
	w.due = due
	if err != nil {
		return err
	}
	k := w.newBallot()
	w.ballots[k] = ballot{born: w.now, work: work, client: c, out: int32(len(due))}
	w.inFlight++
	if len(due) == 0 {
		return w.tally(k)
	}
	w.send(c, k)
	return nil
}

// poll counts a probe of a query in: with its answer, or nil if it was lost. Answers that come
// after the decision are readings like any other.
func (w *World) poll(k int32, p *flight) error {
	b := &w.ballots[k]
	cl := &w.clients[b.client]
	b.out--
	if p != nil {
		w.note(evReading, uint64(p.replica)<<32|uint64(p.reading.RIF))
	}
	switch {
	case p != nil && b.decided:
		if p.generation == cl.generation {
			if _, err := cl.machine.Record(engine.Instant(w.now), w.ids[p.replica], p.reading); known(err) != nil {
				return err
			}
		}
	case p != nil:
		b.answers[b.n] = engine.Answer{ID: w.ids[p.replica], Reading: p.reading}
		b.n++
	}
	if !b.decided {
		if b.n >= cl.wait || b.out == 0 {
			return w.tally(k)
		}
	} else if b.out == 0 {
		w.counted = append(w.counted, k)
	}
	return nil
}

// tally decides on what has come.
func (w *World) tally(k int32) error {
	b := &w.ballots[k]
	b.decided = true
	if b.out == 0 {
		w.counted = append(w.counted, k)
	}
	w.inFlight--
	w.ask = engine.Query{Now: engine.Instant(w.now), Answers: b.answers[:b.n]}
	return w.place(b.client, b.work, b.born)
}

func (w *World) newBallot() int32 {
	if n := len(w.counted); n > 0 {
		k := w.counted[n-1]
		w.counted = w.counted[:n-1]
		return k
	}
	w.ballots = append(w.ballots, ballot{})
	return int32(len(w.ballots) - 1)
}
