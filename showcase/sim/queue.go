package sim

// Kinds of event in the queue; at most sixteen.
const (
	evArrival   = iota // a query reaches its client
	evAdmit            // a query reaches its replica
	evAnswer           // an answer reaches its client
	evProbe            // a probe reaches its replica
	evReading          // a reading reaches its client
	evLost             // a probe's timeout ends
	evHear             // the clients notice a replica's status
	evNeighbour        // a neighbour comes or goes
	evRoll             // the clients learn who belongs to the fleet
	evReport           // a replica says what its load was
	evTold             // that reaches the clients
	evTick             // a client sends what probes are due without a query
	evScript           // a line of the script is due
	evMeasure          // a measure begins or ends
	evSample           // a measure looks at the fleet
)

const kindBits = 4

// event is something that will happen at an instant. a is an index by kind.
type event struct {
	at  int64
	key uint64 // order of equal instants, first scheduled, first served; then the kind
	a   int32
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.key < o.key
}

// The lanes of a queue. Each is in order by itself, and the earliest head is next: what has a
// lane to itself does not have to find its place among what has not.
const (
	laneArrival = iota // the one next arrival
	laneLine           // queries and answers on their way: all take equally long, so first in, first out
	laneSoon           // probes
	laneLate           // what lies far ahead
	lanes
)

var laneOf = [1 << kindBits]uint8{
	evArrival: laneArrival, evAdmit: laneLine, evAnswer: laneLine,
	evProbe: laneSoon, evReading: laneSoon, evLost: laneSoon,
	evHear: laneLate, evNeighbour: laneLate, evRoll: laneLate, evReport: laneLate, evTold: laneLate,
	evTick: laneLate, evScript: laneLate, evMeasure: laneLate, evSample: laneLate,
}

// queue is the events to come, in order.
type queue struct {
	seq  uint64
	head [lanes]event
	line ring
	heap [lanes]heap // of laneSoon and laneLate
}

func newQueue() queue {
	q := queue{}
	for l := range q.head {
		q.head[l].at = never
	}
	return q
}

func (q *queue) push(at int64, kind uint8, a int32) {
	q.seq++
	e := event{at: at, key: q.seq<<kindBits | uint64(kind), a: a}
	switch l := laneOf[kind]; l {
	case laneArrival:
		q.head[l] = e
	case laneLine:
		if q.line.n == 0 {
			q.head[l] = e
		}
		q.line.push(e)
	default:
		q.heap[l].push(e)
		q.head[l] = q.heap[l][0]
	}
}

// first is the lane of the earliest event, and its instant, or never.
func (q *queue) first() (lane int, at int64) {
	for l := 1; l < lanes; l++ {
		if q.head[l].before(&q.head[lane]) {
			lane = l
		}
	}
	return lane, q.head[lane].at
}

// pop takes the first event of a lane that is not empty.
func (q *queue) pop(lane int) (kind uint8, a int32) {
	e, h := q.head[lane], &q.head[lane]
	h.at = never
	switch lane {
	case laneArrival:
	case laneLine:
		if q.line.pop(); q.line.n > 0 {
			*h = q.line.events[q.line.from]
		}
	default:
		if q.heap[lane].pop(); len(q.heap[lane]) > 0 {
			*h = q.heap[lane][0]
		}
	}
	return uint8(e.key & (1<<kindBits - 1)), e.a
}

func (q *queue) clone() queue {
	c := *q
	c.line.events = append([]event(nil), q.line.events...)
	for l := range c.heap {
		c.heap[l] = append(heap(nil), q.heap[l]...)
	}
	return c
}

// ring is events in order of arrival.
type ring struct {
	events  []event // a power of two of them
	from, n int
}

func (r *ring) push(e event) {
	if r.n == len(r.events) {
		grown := make([]event, max(64, 2*len(r.events)))
		k := copy(grown, r.events[r.from:])
		copy(grown[k:], r.events[:r.from])
		r.events, r.from = grown, 0
	}
	r.events[(r.from+r.n)&(len(r.events)-1)] = e
	r.n++
}

func (r *ring) pop() {
	r.from = (r.from + 1) & (len(r.events) - 1)
	r.n--
}

// heap is events by their order, four children to a parent.
type heap []event

func (h *heap) push(e event) {
	s := append(*h, e)
	*h = s
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
}

func (h *heap) pop() {
	s := *h
	n := len(s) - 1
	last := s[n]
	s = s[:n]
	*h = s
	if n == 0 {
		return
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		for k, end := c+1, min(c+4, n); k < end; k++ {
			if s[k].before(&s[c]) {
				c = k
			}
		}
		if !s[c].before(&last) {
			break
		}
		s[i] = s[c]
		i = c
	}
	s[i] = last
}
