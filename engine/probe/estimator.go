package probe

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// Estimator is a replica's memory of its own latencies, kept by the RIF that each query met on
// arrival, so that a probe is answered for the load of now and not for the load of a moment ago.
//
// A query arrives with a tag, the RIF before it is counted, and leaves its latency in the ring
// of that tag. [Estimator.Estimate] gathers the freshest latencies of the current RIF, then of
// RIF-1, RIF+1, RIF-2, …, until Samples are found, and answers with their lower median. Two
// rules guard it:
//
//   - Survivorship. Just after a jump of RIF only quick queries have finished near the new RIF
//     and their median flatters. So the newest query to have arrived with each tag looked at is
//     a sample too while it is still open and already older than the median of the finished
//     ones: its age is a lower bound of its latency. In steady state that moves the rank by
//     half a place at most per tag; when every tag is thin, as after a jump, it decides.
//   - Staleness. Samples older than Memory count only when there is nothing younger, and none
//     counts once it is older than Hold. Then the estimate is unknown, which ranks as the
//     median of the fleet: a replica that idles after a slow spell is neither shunned for ever
//     nor taken for fast, and the next query tells.
//
// Before the first finished query the estimate is unknown.
//
// Tags from 0 to Tags-1 are told apart. Above, each doubling of RIF has eight shared tags (the
// widest spans an eighth of its doubling), and 61,440 and more are one tag; neighbours are then
// shared tags. Memory is fixed at construction: Ring samples of 16 bytes for each tag, about
// 40 KB with the defaults. No call allocates. Arrivals and ends cost a few nanoseconds; an
// estimate visits at most Samples tags that yield, plus tags gone stale since.
//
// An Estimator is not safe for concurrent use. Instants may not go backwards: an earlier one
// counts as the latest seen.
type Estimator struct {
	cfg     EstimatorConfig
	tags    []tagState
	samples []sample // Ring for each tag, oldest overwritten
	marked  []uint64 // bit set: the tag may have a sample or an open query worth looking at
	scratch []engine.Duration
	now     engine.Instant // latest seen
	newest  engine.Instant // latest finish recorded
	seen    bool           // an instant was seen
	any     bool           // a finish was recorded
}

type sample struct {
	at      engine.Instant
	latency engine.Duration
}

type tagState struct {
	opened engine.Instant // arrival of the newest query with this tag
	open   bool           // it has not ended
	next   uint16         // ring position to write
	held   uint16         // samples in the ring
}

// Arrival is what a query carries from its arrival to its end. It is a plain value.
type Arrival struct {
	At  engine.Instant
	Tag uint32 // RIF before the query was counted
}

// Tags above the told-apart ones: eight for each doubling, up to 65,536.
const (
	subTags    = 8
	subShift   = 3
	maxTagBits = 16
)

// NewEstimator makes an estimator that knows nothing, or says which setting is wrong.
func NewEstimator(c EstimatorConfig) (*Estimator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	n := c.Tags + subTags*(maxTagBits-bits.Len(uint(c.Tags))+1)
	return &Estimator{
		cfg:     c,
		tags:    make([]tagState, n),
		samples: make([]sample, n*c.Ring),
		marked:  make([]uint64, (n+63)/64),
		scratch: make([]engine.Duration, c.Samples),
	}, nil
}

// Arrive notes a query that arrives now and meets rif others in flight.
func (e *Estimator) Arrive(now engine.Instant, rif uint32) Arrival {
	now = e.advance(now)
	i := e.tag(rif)
	e.tags[i].opened, e.tags[i].open = now, true
	e.mark(i)
	return Arrival{At: now, Tag: rif}
}

// Finish ends a query that was answered and keeps its latency.
func (e *Estimator) Finish(now engine.Instant, a Arrival) {
	now = e.advance(now)
	e.settle(a)
	e.record(now, a)
}

// Fail ends a query that was not answered as it should: an error, a panic, a caller who left.
// A failure never lowers an estimate, however fast it was. Its latency is kept only if it is
// above the estimate for the RIF it met, for then the answer would have taken longer still.
func (e *Estimator) Fail(now engine.Instant, a Arrival) {
	now = e.advance(now)
	e.settle(a)
	if was := e.Estimate(now, a.Tag); was != engine.UnknownLatency && span(now, a) > was {
		e.record(now, a)
	}
}

// Withdraw forgets a query whose duration says nothing about latency, such as a connection that
// was taken over for a long conversation. Nothing further need be called for it.
func (e *Estimator) Withdraw(a Arrival) { e.settle(a) }

// settle closes the open mark if it is this query's. Two queries with one tag and one instant
// share the mark; the first to end closes it.
func (e *Estimator) settle(a Arrival) {
	t := &e.tags[e.tag(a.Tag)]
	if t.opened == a.At {
		t.open = false
	}
}

func (e *Estimator) record(now engine.Instant, a Arrival) {
	i := e.tag(a.Tag)
	t := &e.tags[i]
	e.samples[i*e.cfg.Ring+int(t.next)] = sample{now, span(now, a)}
	if t.next++; int(t.next) == e.cfg.Ring {
		t.next = 0
	}
	t.held = min(t.held+1, uint16(e.cfg.Ring))
	e.newest, e.any = now, true
	e.mark(i)
}

// Estimate is the latency that a query arriving now at this RIF may expect, or
// [engine.UnknownLatency].
func (e *Estimator) Estimate(now engine.Instant, rif uint32) engine.Duration {
	now = e.advance(now)
	age := since(now, e.newest)
	if !e.any || age >= e.cfg.Hold {
		return engine.UnknownLatency
	}
	horizon := e.cfg.Memory
	if age >= horizon {
		horizon = e.cfg.Hold
	}
	from := e.tag(rif)
	slowest := e.gather(now, from, horizon, engine.MaxLatency)
	m := e.median()
	if slowest > m && !e.cfg.FinishedOnly {
		e.gather(now, from, horizon, m)
		m = e.median()
	}
	return m
}

// gather fills scratch with latencies younger than horizon, nearest tag first and freshest
// first within a tag. The newest open query of a tag goes before the finished ones if it is
// older than floor. It returns the greatest age of such a query in the tags it visited.
func (e *Estimator) gather(now engine.Instant, from int, horizon, floor engine.Duration) (slowest engine.Duration) {
	e.scratch = e.scratch[:0]
	lo, hi := e.below(from), e.above(from+1)
	for len(e.scratch) < e.cfg.Samples && (lo >= 0 || hi < len(e.tags)) {
		var i int
		if hi >= len(e.tags) || lo >= 0 && from-lo <= hi-from {
			i, lo = lo, e.below(lo-1)
		} else {
			i, hi = hi, e.above(hi+1)
		}
		age := e.openAge(now, i, horizon)
		slowest = max(slowest, age)
		if age > floor {
			e.scratch = append(e.scratch, age)
		}
		e.take(now, i, horizon)
	}
	return slowest
}

// take appends the fresh samples of a tag, newest first, while there is room, and unmarks a tag
// that has nothing left to say.
func (e *Estimator) take(now engine.Instant, i int, horizon engine.Duration) {
	t, ring := &e.tags[i], e.samples[i*e.cfg.Ring:(i+1)*e.cfg.Ring]
	k := int(t.next)
	for n := range int(t.held) {
		if k--; k < 0 {
			k = e.cfg.Ring - 1
		}
		if age := since(now, ring[k].at); age >= horizon {
			if n == 0 && age >= e.cfg.Hold {
				t.held = 0
			}
			break
		}
		if len(e.scratch) == e.cfg.Samples {
			return
		}
		e.scratch = append(e.scratch, ring[k].latency)
	}
	if t.held == 0 && !t.open {
		e.marked[i/64] &^= 1 << (i % 64)
	}
}

// openAge is the age of the newest query of a tag, or 0 if it ended or is past the horizon.
func (e *Estimator) openAge(now engine.Instant, i int, horizon engine.Duration) engine.Duration {
	t := &e.tags[i]
	if !t.open {
		return 0
	}
	age := since(now, t.opened)
	if age >= e.cfg.Hold {
		t.open = false
	}
	if age >= horizon {
		return 0
	}
	return age
}

// median is the lower median of scratch, which it sorts.
func (e *Estimator) median() engine.Duration {
	slices.Sort(e.scratch)
	return e.scratch[(len(e.scratch)-1)/2]
}

// tag maps a RIF to its place among the tags; greater RIF never has a lower place.
func (e *Estimator) tag(rif uint32) int {
	if rif < uint32(e.cfg.Tags) {
		return int(rif)
	}
	high := bits.Len32(rif) - 1
	if high >= maxTagBits {
		return len(e.tags) - 1
	}
	first := bits.Len(uint(e.cfg.Tags)) - 1
	return e.cfg.Tags + subTags*(high-first) + int(rif>>(high-subShift))&(subTags-1)
}

func (e *Estimator) mark(i int) { e.marked[i/64] |= 1 << (i % 64) }

// below is the greatest marked tag up to i, or -1.
func (e *Estimator) below(i int) int {
	if i < 0 {
		return -1
	}
	w := e.marked[i/64] << (63 - i%64) >> (63 - i%64)
	for k := i / 64; ; w = e.marked[k] {
		if w != 0 {
			return 64*k + bits.Len64(w) - 1
		}
		if k--; k < 0 {
			return -1
		}
	}
}

// above is the least marked tag from i on, or the number of tags.
func (e *Estimator) above(i int) int {
	if i >= len(e.tags) {
		return len(e.tags)
	}
	w := e.marked[i/64] >> (i % 64) << (i % 64)
	for k := i / 64; ; w = e.marked[k] {
		if w != 0 {
			return 64*k + bits.TrailingZeros64(w)
		}
		if k++; k == len(e.marked) {
			return len(e.tags)
		}
	}
}

func (e *Estimator) advance(now engine.Instant) engine.Instant {
	if !e.seen || now > e.now {
		e.now, e.seen = now, true
	}
	return e.now
}

// since is an age, held within what the engine tells apart even if instants are far apart.
func since(now, then engine.Instant) engine.Duration {
	if d := uint64(now) - uint64(then); now >= then {
		return engine.Duration(min(d, uint64(engine.MaxLatency)))
	}
	return 0
}

func span(now engine.Instant, a Arrival) engine.Duration { return since(now, a.At) }
