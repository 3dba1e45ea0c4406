package sim

import (
	"strconv"

	"github.com/headroom-lb/headroom/engine"
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

// World is one fleet under one policy.
type World struct {
	Totals    Totals
	Explained Explained  // the focused client's last decision
	Held      *Explained // the decision that Hold waited for

	sc       Scenario
	maker    Maker
	spec     string
	now      int64
	events   uint64
	queue    queue
	alarms   *timers
	traffic  traffic
	network  stream
	losses   stream
	replicas []replica
	loads    []loadHistory // of each replica
	clients  []client
	ids      []engine.ID
	index    directory
	members  []int32 // replicas that the clients know of: a machine's candidates, in order
	queries  []query
	free     []int32
	serial   uint64
	flights  []flight
	landed   []int32 // flights that are over
	ballots  []ballot
	counted  []int32 // ballots that are over
	due      []engine.ID
	ask      engine.Query // of the decision in the making
	made     engine.Decision
	inFlight int
	latency  Window
	run      Latencies
	hash     uint64
	measures []*Measure
	active   *Measure // the one that runs now
	focus    int
	hold     uint8 // regime waited for, plus one
	scratch  []engine.Entry
	before   engine.Counters
	tape     *Tape
}

// NewWorld makes a world at instant 0. An error is the scenario's, the spec's or the machine's.
func NewWorld(sc Scenario, spec string, mk Maker) (*World, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	sc.Script = append([]Change(nil), sc.Script...)
	w := &World{
		sc: sc, maker: mk, focus: -1,
		queue:    newQueue(),
		alarms:   newTimers(sc.Replicas),
		traffic:  newTraffic(&sc),
		network:  newStream(sc.Seed, streamNetwork, 0),
		losses:   newStream(sc.Seed, streamLosses, 0),
		replicas: make([]replica, sc.Replicas),
		loads:    make([]loadHistory, sc.Replicas),
		clients:  make([]client, sc.Clients),
		ids:      make([]engine.ID, sc.Replicas),
		index:    newDirectory(sc.Replicas),
	}
	for i := range w.replicas {
		w.ids[i] = engine.IDOf(Name(i))
		w.index.add(w.ids[i], int32(i))
		w.replicas[i].est = newEstimator(&sc)
		w.settle(i)
		if w.replicas[i].listed {
			w.members = append(w.members, int32(i))
		}
	}
	w.queue.push(w.traffic.draw(0), evArrival, 0)
	if err := w.SetSpec(spec); err != nil {
		return nil, err
	}
	w.schedule()
	return w, nil
}

// schedule sets off what happens by the clock.
func (w *World) schedule() {
	phases := newStream(w.sc.Seed, streamFleet, 0)
	if w.sc.ReportEvery > 0 {
		for i := range w.replicas {
			w.queue.push(int64(phases.below(uint64(w.sc.ReportEvery))), evReport, int32(i))
		}
	}
	if w.sc.Tick > 0 {
		for c := range w.clients {
			w.queue.push(int64(phases.below(uint64(w.sc.Tick))), evTick, int32(c))
		}
	}
	for i := range w.sc.Script {
		w.queue.push(w.sc.Script[i].At, evScript, int32(i))
	}
}

// Name is the name of replica i, from which its identity is hashed.
func Name(i int) string { return "r" + strconv.Itoa(i) }

// Run serves every event up to and including an instant. It stops at the first error of a
// machine, which leaves the world unusable.
func (w *World) Run(until int64) error {
	for {
		at, i := w.alarms.first()
		if lane, next := w.queue.first(); next <= at {
			if next > until {
				break
			}
			w.now = next
			w.events++
			if err := w.serve(w.queue.pop(lane)); err != nil {
				return err
			}
			continue
		}
		if at > until {
			break
		}
		w.now = at
		w.events++
		w.ring(i)
	}
	w.now = until
	return nil
}

func (w *World) serve(kind uint8, a int32) error {
	switch kind {
	case evArrival:
		return w.arrive()
	case evAdmit:
		w.admit(a)
	case evAnswer:
		return w.deliver(a)
	case evProbe:
		w.answer(a)
	case evReading:
		return w.receive(a)
	case evLost:
		return w.lose(a)
	case evHear:
		return w.hear(a)
	case evNeighbour:
		w.turn(a)
	case evRoll:
		return w.roll()
	case evReport:
		w.report(a)
	case evTold:
		return w.told(a)
	case evTick:
		w.queue.push(w.now+w.sc.Tick, evTick, a)
		return w.probe(a)
	case evScript:
		return w.change(&w.sc.Script[a])
	case evMeasure:
		w.turnMeasure(a)
	case evSample:
		w.sample(a)
	}
	return nil
}

// admit is a query at its replica.
func (w *World) admit(id int32) {
	q := &w.queries[id]
	r := &w.replicas[q.replica]
	r.coming--
	if r.state == StateDead {
		w.finish(id, endRefused)
		return
	}
	r.fault(q)
	q.met = r.est.Arrive(engine.Instant(w.now), r.tag())
	r.advance(w.now)
	r.admit(q, id, w.sc.Deadline)
	w.retune(q.replica)
}

// ring is a replica's alarm: its first query is done, or one may have met its deadline.
func (w *World) ring(i int32) {
	r := &w.replicas[i]
	r.advance(w.now)
	if len(r.jobs) > 0 && r.jobs[0].tag <= r.virtual {
		id := r.leave(w.queries, 0)
		q := &w.queries[id]
		r.finished++
		switch {
		case q.end == endFailed:
			r.failed++
			r.est.Fail(engine.Instant(w.now), q.met)
		case w.sc.WorkOnly && q.work == 0:
			r.est.Withdraw(q.met)
		default:
			r.est.Finish(engine.Instant(w.now), q.met)
		}
		w.finish(id, q.end)
	} else if len(r.jobs) > 0 {
		if k, is := r.late(w.now, w.sc.Deadline); is {
			id := r.leave(w.queries, k)
			r.expired++
			r.est.Fail(engine.Instant(w.now), w.queries[id].met)
			w.finish(id, endTimeout)
		}
	}
	w.retune(i)
}

func (w *World) retune(i int32) {
	r := &w.replicas[i]
	r.retune()
	w.alarms.set(i, r.alarm())
}

// note stirs an event into the hash of the run.
func (w *World) note(kind uint8, what uint64) {
	w.hash = mix(w.hash ^ mix(uint64(w.now)<<4|uint64(kind)) ^ what)
}
