package sim

// traffic says when queries arrive, at which client, with how much work. It knows nothing of
// policies, and draws from streams that nothing else reads.
type traffic struct {
	arrivals stream
	demands  stream
	clients  uint64
	demand   Demand
	scale    int64 // of the demand, and its mean
	mean     int64
	gap      int64 // mean time between arrivals, ns
	recorded []Arrival
	next     int // of those
	hash     uint64
	client   int32 // of the query that arrives next
	work     int64
}

func newTraffic(sc *Scenario) traffic {
	t := traffic{
		arrivals: newStream(sc.Seed, streamArrivals, 0),
		demands:  newStream(sc.Seed, streamDemands, 0),
		clients:  uint64(sc.Clients),
		demand:   sc.Demand,
		scale:    sc.Work,
		mean:     sc.MeanWork(),
		recorded: sc.Recorded,
	}
	t.setLoad(sc)
	return t
}

// setLoad derives the mean gap: load is offered work over the fleet's allocation, and old
// machines need more of it for the same query.
func (t *traffic) setLoad(sc *Scenario) {
	var perSecond int64 // milliqueries a second at load one
	for i := range sc.Replicas - sc.Later {
		perSecond += int64(sc.Cores) * Second / max(1, t.mean*cost(sc, i)/whole)
	}
	t.gap = Second * perMille / max(1, perSecond) * whole / int64(sc.Load)
}

// cost is the work multiplier of replica i. Old machines are spread evenly over the fleet.
func cost(sc *Scenario, i int) int64 {
	if sc.OldShare*(i+1)/100 != sc.OldShare*i/100 {
		return int64(sc.OldCost)
	}
	return whole
}

// draw settles the next query and returns the instant at which it arrives: never after the last
// recorded one.
func (t *traffic) draw(now int64) int64 {
	if len(t.recorded) > 0 {
		if t.next == len(t.recorded) {
			return never
		}
		a := &t.recorded[t.next]
		t.next++
		t.client, t.work = a.Client, a.Work
		return a.At
	}
	gap := t.arrivals.exponential(t.gap)
	t.client = int32(t.arrivals.below(t.clients))
	t.work = t.demand.draw(&t.demands, t.scale, t.mean)
	return now + gap
}

// mark stirs a query that has arrived into the hash of the traffic.
func (t *traffic) mark(at int64) {
	t.hash = mix(t.hash ^ mix(uint64(at)<<8^uint64(t.client)) ^ uint64(t.work))
}
