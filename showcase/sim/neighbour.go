package sim

// settle gives a replica its machine: how fast it is, and whether a neighbour is there.
func (w *World) settle(i int) {
	r := &w.replicas[i]
	r.cores, r.spare, r.cost = int64(w.sc.Cores), int64(w.sc.Spare), cost(&w.sc, i)
	r.weather = newStream(w.sc.Seed, streamNeighbours, uint64(i))
	r.faults = newStream(w.sc.Seed, streamFaults, uint64(i))
	r.busy = i < w.sc.Noisy
	if w.sc.Weather > 0 {
		r.busy = r.weather.next()>>63 == 0 || i < w.sc.Noisy
		w.queue.push(w.now+r.weather.exponential(w.sc.Weather), evNeighbour, int32(i), 0)
	}
}

// turn begins a new phase of a replica's neighbour: there, or gone, with even odds.
func (w *World) turn(i int32) {
	r := &w.replicas[i]
	busy := r.weather.next()>>63 == 0
	w.queue.push(w.now+r.weather.exponential(w.sc.Weather), evNeighbour, i, 0)
	w.setBusy(i, busy || int(i) < w.sc.Noisy)
}

func (w *World) setBusy(i int32, busy bool) {
	r := &w.replicas[i]
	if r.busy == busy {
		return
	}
	r.advance(w.now)
	r.busy = busy
	w.retune(i)
}

// SetNoisy gives the first n replicas a neighbour that never rests, and takes it from the
// others, unless the weather holds one there.
func (w *World) SetNoisy(n int) {
	n = min(max(n, 0), len(w.replicas))
	old := w.sc.Noisy
	w.sc.Noisy = n
	for i := min(old, n); i < max(old, n); i++ {
		w.setBusy(int32(i), i < n)
	}
}

// SetLoad changes the offered load, in parts per 10,000, from the query after the next on.
func (w *World) SetLoad(load int) {
	w.sc.Load = min(max(load, 1), MaxLoad)
	w.traffic.setLoad(&w.sc)
}

// SetState kills, drains or restores a replica. A dead one drops its queries at once; the
// clients notice every change after the scenario's Detect.
func (w *World) SetState(i int, s State) {
	r := &w.replicas[i]
	if r.state == s {
		return
	}
	r.advance(w.now)
	r.state = s
	if s == StateDead {
		for len(r.jobs) > 0 {
			id := r.jobs[len(r.jobs)-1]
			r.leave(w.queries, id)
			w.finish(id, endRefused)
		}
		r.est = newEstimator()
	}
	w.retune(int32(i))
	w.queue.push(w.now+w.sc.Detect, evHear, int32(i), 0)
}
