package sim

import (
	"errors"

	"github.com/headroom-lb/headroom/engine"
)

// A measure looks at the fleet this often.
const (
	RIFEvery = 20 * Millisecond
	CPUEvery = Second
)

// Measure is what happened in a world in [From, To): what ended then, whenever it began. Its
// memory is fixed, about 100 KB and 8 bytes for each replica and client. Read it once the world
// has run to its end.
type Measure struct {
	From, To int64
	// Latency of queries that were answered or met their deadline, ns.
	Latency Histogram
	// RIF of each replica of the fleet that is not dead, every [RIFEvery].
	RIF Histogram
	// CPU of each such replica over each [CPUEvery], in parts per 10,000 of its allocation.
	CPU Histogram
	// Totals of the span.
	Totals Totals
	// ByReplica and ByClient count decisions.
	ByReplica, ByClient []uint64
	// Used is the work that all replicas did, ns of one core.
	Used int64

	before Totals
	used   []int64 // of each replica, at the last look at CPU
	looked int64   // instant of that
	index  int32
}

// ErrMeasure says that a world cannot take a measure.
var ErrMeasure = errors.New("cannot measure: a span must begin now or later, and not before the last one ends")

// Measure sets a measure of the span [from, to). Spans come in order and do not overlap: measure
// each step of a ramp by itself, and put them together with [Measure.Merge] for the whole.
func (w *World) Measure(from, to int64) (*Measure, error) {
	last := w.now
	if n := len(w.measures); n > 0 {
		last = max(last, w.measures[n-1].To)
	}
	if from < last || to <= from {
		return nil, ErrMeasure
	}
	m := &Measure{
		From: from, To: to, index: int32(len(w.measures)),
		ByReplica: make([]uint64, len(w.replicas)), ByClient: make([]uint64, len(w.clients)), used: make([]int64, len(w.replicas)),
	}
	w.measures = append(w.measures, m)
	w.queue.push(to, evMeasure, m.index)
	w.queue.push(from, evMeasure, m.index)
	return m, nil
}

// Measures lists a world's measures, in order. In a clone they are its own.
func (w *World) Measures() []*Measure { return w.measures }

// Ended counts the queries that ended within the span, and those of them that failed.
func (m *Measure) Ended() (all, failed uint64) {
	return m.Totals.Completed + m.Totals.Errors, m.Totals.Errors
}

// Merge adds what another one measured. From and To stay.
func (m *Measure) Merge(o *Measure) {
	m.Latency.Merge(&o.Latency)
	m.RIF.Merge(&o.RIF)
	m.CPU.Merge(&o.CPU)
	m.Totals.add(&o.Totals, 1)
	for i, n := range o.ByReplica {
		m.ByReplica[i] += n
	}
	for i, n := range o.ByClient {
		m.ByClient[i] += n
	}
	m.Used += o.Used
}

func (m *Measure) clone() *Measure {
	c := *m
	c.ByReplica, c.ByClient = append([]uint64(nil), m.ByReplica...), append([]uint64(nil), m.ByClient...)
	c.used = append([]int64(nil), m.used...)
	return &c
}

// turnMeasure begins or ends a measure.
func (w *World) turnMeasure(k int32) {
	m := w.measures[k]
	if w.active != m {
		w.active = m
		m.before, m.looked, m.Used = w.Totals, w.now, -w.work()
		w.lookAtCPU(m, false)
		w.queue.push(w.now+RIFEvery, evSample, k)
		return
	}
	w.active = nil
	if w.now == m.looked+CPUEvery {
		w.lookAtCPU(m, true)
	}
	m.Used += w.work()
	m.Totals = w.Totals
	m.Totals.add(&m.before, ^uint64(0))
}

// sample looks at the fleet, until the measure ends.
func (w *World) sample(k int32) {
	m := w.measures[k]
	if w.active != m {
		return
	}
	for i := range w.replicas {
		if r := &w.replicas[i]; r.serves() {
			m.RIF.Add(int64(len(r.jobs)))
		}
	}
	if w.now == m.looked+CPUEvery {
		w.lookAtCPU(m, true)
	}
	w.queue.push(w.now+RIFEvery, evSample, k)
}

// lookAtCPU takes down what each replica has done, and, if asked to, counts its last stretch.
func (w *World) lookAtCPU(m *Measure, count bool) {
	for i := range w.replicas {
		r := &w.replicas[i]
		_, used := r.account(w.now)
		if count && r.serves() {
			m.CPU.Add((used - m.used[i]) / (CPUEvery / whole) * perMille / r.cores)
		}
		m.used[i] = used
	}
	m.looked = w.now
}

// serves reports whether a replica is of the fleet, as it is, and lives.
func (r *replica) serves() bool { return r.state == StateUp || r.state == StateDraining }

// work is what all replicas have done, ns of one core.
func (w *World) work() (sum int64) {
	for i := range w.replicas {
		_, used := w.replicas[i].account(w.now)
		sum += used
	}
	return sum
}

// add adds another's counts, each times a factor.
func (t *Totals) add(o *Totals, times uint64) {
	for i := range t.ByRegime {
		t.ByRegime[i] += times * o.ByRegime[i]
	}
	for _, c := range []struct {
		to   *uint64
		from uint64
	}{
		{&t.Arrivals, o.Arrivals}, {&t.Completed, o.Completed}, {&t.Errors, o.Errors}, {&t.Timeouts, o.Timeouts},
		{&t.Refused, o.Refused}, {&t.Failed, o.Failed}, {&t.Unplaced, o.Unplaced},
		{&t.ProbesSent, o.ProbesSent}, {&t.ProbesLost, o.ProbesLost},
	} {
		*c.to += times * c.from
	}
}

// Share is a regime's part of the decisions, in parts per 10,000.
func (m *Measure) Share(r engine.Regime) uint64 {
	var all uint64
	for _, n := range m.Totals.ByRegime {
		all += n
	}
	return m.Totals.ByRegime[r] * whole / max(1, all)
}
