package sim

import (
	"errors"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Totals count since the start of a world.
type Totals struct {
	Arrivals   uint64
	ByRegime   [engine.Regimes]uint64
	Completed  uint64 // answered in time
	Errors     uint64 // all of the four that follow
	Timeouts   uint64 // reached their deadline
	Refused    uint64 // sent to, or caught in, a dead replica
	Failed     uint64 // answered with an error by a failing replica
	Unplaced   uint64 // no replica was eligible
	ProbesSent uint64
	ProbesLost uint64
}

// query is one query in flight. Slots are used again; the serial tells uses apart.
type query struct {
	serial     uint64
	born       int64 // arrival at the client
	admitted   int64 // arrival at the replica
	work       int64
	tag        uint64 // virtual time at which it is done
	client     int32
	replica    int32
	pos        int32         // in its replica's heap, or -1
	met        probe.Arrival // what the replica's estimator noted
	generation uint32
	end        uint8
}

const (
	endDone = iota
	endTimeout
	endRefused
	endFailed
)

// World is one fleet under one policy.
type World struct {
	Totals    Totals
	Explained Explained  // the focused client's last decision
	Held      *Explained // the decision that Hold waited for

	sc          Scenario
	maker       Maker
	spec        string
	now         int64
	queue       queue
	alarms      *timers
	traffic     traffic
	network     stream
	replicas    []replica
	clients     []client
	ids         []engine.ID
	index       map[engine.ID]int32
	queries     []query
	free        []int32
	serial      uint64
	flights     []flight
	freeFlights []int32
	due         []engine.ID
	generation  uint32
	inFlight    int
	latency     Window
	run         Latencies
	hash        uint64
	focus       int
	hold        uint8 // regime waited for, plus one
	scratch     []engine.Entry
	counted     engine.Counters
	tape        *Tape
}

// NewWorld makes a world at instant 0. An error is the scenario's, the spec's or the machine's.
func NewWorld(sc Scenario, spec string, mk Maker) (*World, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	w := &World{
		sc: sc, maker: mk, focus: -1,
		alarms:   newTimers(sc.Replicas),
		traffic:  newTraffic(&sc),
		network:  newStream(sc.Seed, streamNetwork, 0),
		replicas: make([]replica, sc.Replicas),
		clients:  make([]client, sc.Clients),
		ids:      make([]engine.ID, sc.Replicas),
		index:    make(map[engine.ID]int32, sc.Replicas),
	}
	for i := range w.replicas {
		w.ids[i] = engine.IDOf(Name(i))
		w.index[w.ids[i]] = int32(i)
		w.replicas[i].est = newEstimator()
		w.settle(i)
	}
	w.queue.push(w.traffic.draw(), evArrival, 0, 0)
	if err := w.SetSpec(spec); err != nil {
		return nil, err
	}
	return w, nil
}

// Name is the name of replica i, from which its identity is hashed.
func Name(i int) string { return "r" + strconv.Itoa(i) }

// Run serves every event up to and including an instant. It stops at the first error of a
// machine, which leaves the world unusable.
func (w *World) Run(until int64) error {
	for {
		at, i := w.alarms.first()
		if next := w.queue.next(); next <= at {
			if next > until {
				break
			}
			w.now = next
			if err := w.serve(w.queue.pop()); err != nil {
				return err
			}
			continue
		}
		if at > until {
			break
		}
		w.now = at
		w.ring(i)
	}
	w.now = until
	return nil
}

func (w *World) serve(e event) error {
	switch e.kind {
	case evArrival:
		return w.arrive()
	case evAdmit:
		w.admit(e.a)
	case evAnswer:
		return w.deliver(e.a)
	case evProbe:
		w.answer(e.a)
	case evReading:
		return w.receive(e.a)
	case evLost:
		return w.lose(e.a)
	case evHear:
		return w.hear(e.a)
	case evNeighbour:
		w.turn(e.a)
	}
	return nil
}

// admit is a query at its replica.
func (w *World) admit(id int32) {
	q := &w.queries[id]
	r := &w.replicas[q.replica]
	if r.state == StateDead {
		w.finish(id, endRefused)
		return
	}
	r.fault(q)
	q.admitted = w.now
	q.met = r.est.Arrive(engine.Instant(w.now), uint32(len(r.jobs)))
	r.advance(w.now)
	r.admit(w.queries, id)
	w.retune(q.replica)
}

// ring is a replica's alarm: its first query is done, or its oldest has met its deadline.
func (w *World) ring(i int32) {
	r := &w.replicas[i]
	r.advance(w.now)
	if len(r.jobs) > 0 {
		id := r.jobs[0]
		if q := &w.queries[id]; q.tag <= r.virtual {
			r.leave(w.queries, id)
			r.finished++
			if q.end == endFailed {
				r.est.Fail(engine.Instant(w.now), q.met)
			} else {
				r.est.Finish(engine.Instant(w.now), q.met)
			}
			w.finish(id, q.end)
		} else if d := r.arrived[0]; r.present(w.queries, d) && w.now >= w.queries[d.query].born+w.sc.Deadline {
			r.leave(w.queries, d.query)
			r.expired++
			r.est.Fail(engine.Instant(w.now), w.queries[d.query].met)
			w.finish(d.query, endTimeout)
		}
	}
	w.retune(i)
}

func (w *World) retune(i int32) {
	r := &w.replicas[i]
	r.retune(w.queries)
	w.alarms.set(i, r.alarm(w.queries, w.sc.Deadline))
}

// finish sends a query's answer, good or bad, on its way to the client.
func (w *World) finish(id int32, end uint8) {
	w.queries[id].end = end
	w.queue.push(w.now+w.sc.Network, evAnswer, id, 0)
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
	w.free = append(w.free, id)
	if q.generation != w.generation {
		return nil
	}
	return w.clients[q.client].machine.Report(engine.Instant(w.now), rep)
}

func (w *World) count(took int64) {
	w.latency.Add(w.now, took)
	w.run.Add(took)
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
	w.queries[id] = query{serial: w.serial, pos: -1}
	return id
}

// note stirs an event into the hash of the run.
func (w *World) note(kind uint8, what uint64) {
	w.hash = mix(w.hash ^ mix(uint64(w.now)<<4|uint64(kind)) ^ what)
}

// refusal reports whether an error is a policy's answer and not a broken machine.
func refusal(err error) bool {
	return errors.Is(err, engine.ErrNoneEligible) || errors.Is(err, engine.ErrNoCandidates) ||
		errors.Is(err, engine.ErrRejected)
}
