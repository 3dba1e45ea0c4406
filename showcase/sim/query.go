package sim

import (
	"errors"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// query is one query in flight. Slots are used again.
type query struct {
	born       int64 // arrival at the client
	work       int64
	met        probe.Arrival // what the replica's estimator noted at its arrival there
	serial     uint64        // counts queries; 0 is a free slot
	client     int32
	replica    int32
	generation uint32
	end        uint8
}

const (
	endDone = iota
	endTimeout
	endRefused
	endFailed
)

// arrive takes in the query that has just arrived, and lets the next one come.
func (w *World) arrive() error {
	w.traffic.mark(w.now)
	c, work := w.traffic.client, w.traffic.work
	w.queue.push(w.traffic.draw(w.now), evArrival, 0)
	w.Totals.Arrivals++
	if w.clients[c].wait > 0 {
		return w.canvass(c, work)
	}
	w.ask = engine.Query{Now: engine.Instant(w.now)}
	if err := w.place(c, work, w.now); err != nil {
		return err
	}
	return w.probe(c)
}

// place has a client decide on what it asks for a query, and sends it on its way.
func (w *World) place(c int32, work, born int64) error {
	cl, d := &w.clients[c], &w.made
	focused := int(c) == w.focus
	if focused {
		w.look(cl.machine)
	}
	if err := cl.machine.Decide(&w.ask, d); err != nil {
		if !refusal(err) {
			return err
		}
		w.Totals.Errors++
		w.Totals.Unplaced++
		return nil
	}
	if focused {
		w.explain(cl.machine, d)
	}
	to := w.index.find(d.ID)
	w.Totals.ByRegime[d.Regime]++
	if m := w.active; m != nil {
		m.ByReplica[to]++
		m.ByClient[c]++
	}
	w.note(evArrival, uint64(to)<<8|uint64(d.Regime))
	w.tape.add(w.now, to, c, Kind(d.Regime), work)
	id := w.newQuery()
	q := &w.queries[id]
	q.client, q.replica, q.born, q.work, q.generation = c, to, born, work, cl.generation
	w.replicas[to].coming++
	w.queue.push(w.now+w.sc.Network, evAdmit, id)
	return nil
}

// finish sends a query's answer, good or bad, on its way to the client.
func (w *World) finish(id int32, end uint8) {
	w.queries[id].end = end
	w.queue.push(w.now+w.sc.Network, evAnswer, id)
}

// deliver is an answer at its client.
func (w *World) deliver(id int32) error {
	q := &w.queries[id]
	took := w.now - q.born
	rep := engine.Report{ID: w.ids[q.replica], Latency: engine.Duration(took)}
	switch q.end {
	case endDone:
		w.Totals.Completed++
		w.count(took)
	case endTimeout:
		w.Totals.Timeouts++
		w.count(max(took, w.sc.Deadline))
	case endRefused:
		w.Totals.Refused++
	case endFailed:
		w.Totals.Failed++
	}
	if q.end != endDone {
		w.Totals.Errors++
		rep.Outcome = engine.OutcomeFailure
		w.tape.add(w.now, q.replica, q.client, KindError, 0)
	}
	w.note(evAnswer, uint64(q.replica)<<40^uint64(took)<<2^uint64(q.end))
	w.inFlight--
	q.serial = 0
	w.free = append(w.free, id)
	cl := &w.clients[q.client]
	if q.generation != cl.generation {
		return nil
	}
	return known(cl.machine.Report(engine.Instant(w.now), rep))
}

// known is an error of a machine, unless it is that a replica has left meanwhile.
func known(err error) error {
	if err != nil && errors.Is(err, engine.ErrUnknownID) {
		return nil
	}
	return err
}

func (w *World) count(took int64) {
	w.latency.Add(w.now, took)
	w.run.Add(took)
	if m := w.active; m != nil {
		m.Latency.Add(took)
	}
}

func (w *World) newQuery() int32 {
	w.serial++
	w.inFlight++
	id := int32(len(w.queries))
	if n := len(w.free); n > 0 {
		id = w.free[n-1]
		w.free = w.free[:n-1]
	} else {
		w.queries = append(w.queries, query{})
	}
	w.queries[id] = query{serial: w.serial}
	return id
}

// refusal reports whether an error is a policy's answer and not a broken machine.
func refusal(err error) bool {
	return errors.Is(err, engine.ErrNoneEligible) || errors.Is(err, engine.ErrNoCandidates) ||
		errors.Is(err, engine.ErrRejected)
}
