package sim

// A failed query takes this much work of one core: an error costs little, which is what makes a
// replica that fails look attractive.
const (
	leastFailure = Millisecond
	mostFailure  = 5 * Millisecond
)

// SetFailing makes a share of the queries that reach replica i fail from now on, in parts per
// 10,000, each after one to five milliseconds' work; 0 repairs it. Probes are answered as
// before. A share out of range is clamped. Queries that it already has are served.
func (w *World) SetFailing(i, share int) {
	w.replicas[i].failing = uint64(min(max(share, 0), whole))
}

// fault settles whether a query fails that has just reached its replica. What fails draws from
// the replica's own stream, so that it hits no other.
func (r *replica) fault(q *query) {
	if r.failing != 0 && r.faults.below(whole) < r.failing {
		q.end = endFailed
		q.work = leastFailure + int64(r.faults.below(uint64(mostFailure-leastFailure+1)))
	}
}
