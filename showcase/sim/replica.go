package sim

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// State of a replica.
type State uint8

const (
	StateUp       State = iota
	StateDraining       // finishing its work; clients have been told
	StateDead           // refuses queries and answers no probes
	StateAbsent         // not of the fleet, or not yet; it serves what it still has
)

const (
	rateBits = 20              // fractional bits of a service rate; 1<<20 is a whole core
	rebaseAt = uint64(1) << 60 // virtual time at which tags are brought back to zero
	perMille = 1000
	nobody   = int32(-1) // no query
)

// replica serves its queries by egalitarian processor sharing: all of them progress at the
// same rate, at most one core each. Instead of touching every query when the rate changes, a
// virtual clock counts the work that each query present has received; a query leaves when the
// clock reaches its tag.
type replica struct {
	virtual  uint64 // work received by each query present, ns << rateBits
	rate     uint64 // of each query, cores << rateBits
	since    int64  // instant of virtual
	due      int64  // no query present meets its deadline before
	jobs     []job  // heap of the queries present, by tag
	est      *probe.Estimator
	blind    bool  // its estimator does not know its RIF
	cost     int64 // work multiplier, parts per 10,000
	cores    int64 // allocation, thousandths of a core
	spare    int64 // beyond it while the machine is quiet, parts per 10,000 of it
	hobble   int64 // share of the allocation that a neighbour leaves under pressure, parts per 10,000
	pressed  int64 // pressure is more queries than this
	coming   int32 // queries on their way to it
	state    State
	heard    engine.Status // what the clients know of it
	listed   bool          // the clients know that it belongs to the fleet
	busy     bool          // a neighbour takes everything beyond the allocation
	held     bool          // ... and never rests
	rough    bool          // ... as the weather has it
	area     int64         // sum of RIF over time, ns
	used     int64         // work done, ns of one core
	stay     int64         // sum of the stays of queries that left, ns
	finished uint64
	expired  uint64
	failed   uint64 // of those that finished
	failing  uint64 // share of queries that fail at once, parts per 10,000
	weather  stream
	faults   stream
}

// job is a query present. It says what its replica has to know, so that sharing the processor
// leaves the queries themselves alone.
type job struct {
	tag  uint64 // virtual time at which it is done
	born int64
	id   int32
}

// advance brings the virtual clock to now.
func (r *replica) advance(now int64) {
	r.area, r.used = r.account(now)
	r.virtual += uint64(now-r.since) * r.rate
	r.since = now
}

// account is area and used as they will stand now.
func (r *replica) account(now int64) (area, used int64) {
	dt, n := now-r.since, int64(len(r.jobs))
	return r.area + dt*n, r.used + int64(uint64(dt)*r.rate>>rateBits)*n
}

// available is what the replica may use for n queries, in thousandths of a core.
func (r *replica) available(n int64) int64 {
	switch {
	case !r.busy:
		return r.cores + r.cores*r.spare/whole
	case n > r.pressed:
		return r.cores * r.hobble / whole
	}
	return r.cores
}

// retune follows every change of RIF or of the neighbour. It wants advance first.
func (r *replica) retune() {
	n := int64(len(r.jobs))
	if n == 0 {
		r.virtual, r.rate, r.due = 0, 0, never
		return
	}
	r.rate = min(wholeRate, max(1, uint64(r.available(n)<<rateBits/(perMille*n))))
	if r.virtual >= rebaseAt {
		for i := range r.jobs {
			r.jobs[i].tag -= r.virtual
		}
		r.virtual = 0
	}
}

// alarm is the instant of the replica's next completion, or at which a deadline may be met.
func (r *replica) alarm() int64 {
	if len(r.jobs) == 0 {
		return never
	}
	left := uint64(0)
	if tag := r.jobs[0].tag; tag > r.virtual {
		left = tag - r.virtual
	}
	return min(r.due, r.since+int64((left+r.rate-1)/r.rate))
}

// admit takes a query in. The caller advances first and retunes after.
func (r *replica) admit(q *query, id int32, deadline int64) {
	r.due = min(r.due, q.born+deadline)
	r.jobs = append(r.jobs, job{r.virtual + uint64(q.work*r.cost/whole)<<rateBits, q.born, id})
	r.up(len(r.jobs) - 1)
}

// late finds a query that has met its deadline, and notes when the next one may. If there is
// none, it notes when the first may: due falls behind as queries leave, and is put right when it
// comes, which is about once in the length of a deadline.
func (r *replica) late(now, deadline int64) (at int, is bool) {
	first, second := never, never
	for i := range r.jobs {
		if born := r.jobs[i].born; born < first {
			at, first, second = i, born, first
		} else {
			second = min(second, born)
		}
	}
	if is = now >= first+deadline; is {
		first = second
	}
	r.due = min(first+deadline, never)
	return at, is
}

// leave takes a query out, wherever it stands. The caller retunes after.
func (r *replica) leave(qs []query, i int) (id int32) {
	id = r.jobs[i].id
	r.stay += r.since - int64(qs[id].met.At)
	n := len(r.jobs) - 1
	r.jobs[i] = r.jobs[n]
	r.jobs = r.jobs[:n]
	if i < n {
		r.up(r.down(i))
	}
	return id
}

// ahead orders by tag, then by arrival.
func (a *job) ahead(b *job) bool { return a.tag < b.tag || a.tag == b.tag && a.born < b.born }

func (r *replica) up(i int) {
	j := r.jobs[i]
	for i > 0 {
		p := (i - 1) / 2
		if !j.ahead(&r.jobs[p]) {
			break
		}
		r.jobs[i] = r.jobs[p]
		i = p
	}
	r.jobs[i] = j
}

func (r *replica) down(i int) int {
	j, n := r.jobs[i], len(r.jobs)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && r.jobs[c+1].ahead(&r.jobs[c]) {
			c++
		}
		if !r.jobs[c].ahead(&j) {
			break
		}
		r.jobs[i] = r.jobs[c]
		i = c
	}
	r.jobs[i] = j
	return i
}

// newEstimator is a replica's estimator, the one that real replicas have.
func newEstimator(sc *Scenario) *probe.Estimator {
	e, err := probe.NewEstimator(sc.Estimator)
	if err != nil {
		panic(err) // the scenario is valid
	}
	return e
}

// tag is the RIF by which the estimator keeps latencies.
func (r *replica) tag() uint32 {
	if r.blind {
		return 0
	}
	return uint32(len(r.jobs))
}

// reading answers a probe: RIF now, and the latency that a query arriving now may expect.
func (r *replica) reading(now engine.Instant) engine.Reading {
	return engine.Reading{RIF: uint32(len(r.jobs)), Latency: r.est.Estimate(now, r.tag())}
}
