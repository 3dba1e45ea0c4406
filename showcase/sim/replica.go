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
	virtual  uint64  // work received by each query present, ns << rateBits
	rate     uint64  // of each query, cores << rateBits
	since    int64   // instant of virtual
	jobs     []int32 // heap of queries by tag
	oldest   int32   // the queries present are linked in order of deadline
	newest   int32
	state    State
	heard    engine.Status // what the clients know of it
	listed   bool          // the clients know that it belongs to the fleet
	busy     bool          // a neighbour takes everything beyond the allocation
	held     bool          // ... and never rests
	rough    bool          // ... as the weather has it
	cores    int64         // allocation, thousandths of a core
	spare    int64         // beyond it while the machine is quiet, parts per 10,000 of it
	cost     int64         // work multiplier, parts per 10,000
	hobble   int64         // share of the allocation that a neighbour leaves under pressure, parts per 10,000
	pressed  int64         // pressure is more queries than this
	area     int64         // sum of RIF over time, ns
	used     int64         // work done, ns of one core
	stay     int64         // sum of the stays of queries that left, ns
	finished uint64
	expired  uint64
	failed   uint64 // of those that finished
	failing  uint64 // share of queries that fail at once, parts per 10,000
	coming   int32  // queries on their way to it
	weather  stream
	faults   stream
	est      *probe.Estimator
	load     loadHistory
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
func (r *replica) retune(qs []query) {
	n := int64(len(r.jobs))
	if n == 0 {
		r.virtual, r.rate = 0, 0
		return
	}
	r.rate = min(wholeRate, uint64(r.available(n)<<rateBits/(perMille*n)))
	if r.virtual >= rebaseAt {
		for _, q := range r.jobs {
			qs[q].tag -= r.virtual
		}
		r.virtual = 0
	}
}

// alarm is the instant of the replica's next completion or deadline.
func (r *replica) alarm(qs []query, deadline int64) int64 {
	if len(r.jobs) == 0 {
		return never
	}
	at := qs[r.oldest].born + deadline
	if r.rate > 0 {
		first := &qs[r.jobs[0]]
		left := uint64(0)
		if first.tag > r.virtual {
			left = first.tag - r.virtual
		}
		at = min(at, r.since+int64((left+r.rate-1)/r.rate))
	}
	return at
}

// admit takes a query in. The caller advances first and retunes after.
func (r *replica) admit(qs []query, id int32) {
	q := &qs[id]
	q.tag = r.virtual + uint64(q.work*r.cost/whole)<<rateBits
	// Queries come in order of deadline, nearly: some may have waited for probes of their own.
	q.older, q.newer = r.newest, nobody
	for q.older != nobody && qs[q.older].born > q.born {
		q.older, q.newer = qs[q.older].older, q.older
	}
	*r.newerThan(qs, q.older), *r.olderThan(qs, q.newer) = id, id
	r.jobs = append(r.jobs, id)
	r.up(qs, len(r.jobs)-1)
}

// newerThan is where the next newer query than one stands, and olderThan where the next older
// one does. With nobody they are the ends.
func (r *replica) newerThan(qs []query, id int32) *int32 {
	if id == nobody {
		return &r.oldest
	}
	return &qs[id].newer
}

func (r *replica) olderThan(qs []query, id int32) *int32 {
	if id == nobody {
		return &r.newest
	}
	return &qs[id].older
}

// leave takes a query out, wherever it stands. The caller retunes after.
func (r *replica) leave(qs []query, id int32) {
	q := &qs[id]
	r.stay += r.since - q.admitted
	i, n := int(q.pos), len(r.jobs)-1
	moved := r.jobs[n]
	r.jobs = r.jobs[:n]
	q.pos = -1
	*r.newerThan(qs, q.older), *r.olderThan(qs, q.newer) = q.newer, q.older
	if i == n {
		return
	}
	r.jobs[i] = moved
	qs[moved].pos = int32(i)
	r.down(qs, i)
	r.up(qs, int(qs[moved].pos))
}

// ahead orders by tag, then by arrival.
func ahead(a, b *query) bool { return a.tag < b.tag || a.tag == b.tag && a.serial < b.serial }

func (r *replica) up(qs []query, i int) {
	id := r.jobs[i]
	for i > 0 {
		p := (i - 1) / 2
		if !ahead(&qs[id], &qs[r.jobs[p]]) {
			break
		}
		r.jobs[i] = r.jobs[p]
		qs[r.jobs[i]].pos = int32(i)
		i = p
	}
	r.jobs[i] = id
	qs[id].pos = int32(i)
}

func (r *replica) down(qs []query, i int) {
	id, n := r.jobs[i], len(r.jobs)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && ahead(&qs[r.jobs[c+1]], &qs[r.jobs[c]]) {
			c++
		}
		if !ahead(&qs[r.jobs[c]], &qs[id]) {
			break
		}
		r.jobs[i] = r.jobs[c]
		qs[r.jobs[i]].pos = int32(i)
		i = c
	}
	r.jobs[i] = id
	qs[id].pos = int32(i)
}

// newEstimator is a replica's estimator as real replicas have it.
func newEstimator() *probe.Estimator {
	e, err := probe.NewEstimator(probe.EstimatorConfig{})
	if err != nil {
		panic(err) // the zero value asks for the defaults
	}
	return e
}

// reading answers a probe: RIF now, and the latency that a query arriving now may expect.
func (r *replica) reading(now engine.Instant) engine.Reading {
	rif := uint32(len(r.jobs))
	return engine.Reading{RIF: rif, Latency: r.est.Estimate(now, rif)}
}
