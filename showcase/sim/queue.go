package sim

// Kinds of event in the queue.
const (
	evArrival   = iota // a query reaches its client
	evAdmit            // a query reaches its replica
	evAnswer           // an answer reaches its client
	evProbe            // a probe reaches its replica
	evReading          // a reading reaches its client
	evLost             // a probe's timeout ends
	evHear             // the clients notice a replica's status
	evNeighbour        // a neighbour comes or goes
)

// event is something that will happen at an instant. a and b are indexes by kind.
type event struct {
	at   int64
	seq  uint64 // order of equal instants: first scheduled, first served
	kind uint8
	a, b int32
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// queue is a binary heap of events.
type queue struct {
	heap []event
	seq  uint64
}

func (q *queue) push(at int64, kind uint8, a, b int32) {
	q.seq++
	e := event{at: at, seq: q.seq, kind: kind, a: a, b: b}
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = e
}

// next is the instant of the first event, or never.
func (q *queue) next() int64 {
	if len(q.heap) == 0 {
		return never
	}
	return q.heap[0].at
}

func (q *queue) pop() event {
	first := q.heap[0]
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap = q.heap[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && q.heap[c+1].before(&q.heap[c]) {
			c++
		}
		if !q.heap[c].before(&last) {
			break
		}
		q.heap[i] = q.heap[c]
		i = c
	}
	q.heap[i] = last
	return first
}
