package sim

// settle gives a replica its machine: how fast it is, and whether a neighbour is there.
func (w *World) settle(i int) {
	r := &w.replicas[i]
	r.cores, r.cost = int64(w.sc.Cores), cost(&w.sc, i)
	r.hobble, r.pressed = int64(w.sc.Hobble), int64(w.sc.Cores)*int64(w.sc.Pressure)/(perMille*whole)
	r.due, r.blind = never, w.sc.RIFBlind
	r.weather = newStream(w.sc.Seed, streamNeighbours, uint64(i))
	r.faults = newStream(w.sc.Seed, streamFaults, uint64(i))
	r.held = i < w.sc.Noisy
	if r.listed = i < w.sc.Replicas-w.sc.Later; !r.listed {
		r.state = StateAbsent
	}
	if w.sc.Weather > 0 {
		w.phase(int32(i))
	} else {
		r.spare = int64(w.sc.Spare)
	}
	r.busy = r.held || r.rough
}

// phase begins a new phase of a replica's weather: a neighbour there, or gone and how much of
// the machine is free.
func (w *World) phase(i int32) {
	r := &w.replicas[i]
	r.rough = r.weather.below(whole) < uint64(w.sc.WeatherBusy)
	r.spare = int64(w.sc.Spare)
	if w.sc.SpareMost > w.sc.Spare {
		r.spare += int64(r.weather.below(uint64(w.sc.SpareMost - w.sc.Spare + 1)))
	}
	w.queue.push(w.now+r.weather.exponential(w.sc.Weather), evNeighbour, i)
}

// turn is the end of a phase.
func (w *World) turn(i int32) {
	r := &w.replicas[i]
	r.advance(w.now)
	w.phase(i)
	r.busy = r.held || r.rough
	w.retune(i)
}

// setHeld gives a replica a neighbour that never rests, or takes it away.
func (w *World) setHeld(i int32, held bool) {
	r := &w.replicas[i]
	r.advance(w.now)
	r.held = held
	r.busy = r.held || r.rough
	w.retune(i)
}

// SetNoisy gives the first n replicas a neighbour that never rests, and takes it from the
// others, unless the weather holds one there.
func (w *World) SetNoisy(n int) {
	n = min(max(n, 0), len(w.replicas))
	old := w.sc.Noisy
	w.sc.Noisy = n
	for i := min(old, n); i < max(old, n); i++ {
		w.setHeld(int32(i), i < n)
	}
}

// SetLoad changes the offered load, in parts per 10,000, from the query after the next on.
func (w *World) SetLoad(load int) {
	w.sc.Load = min(max(load, 1), MaxLoad)
	w.traffic.setLoad(&w.sc)
}

// SetState kills, drains, restores, adds or removes a replica. A dead one drops its queries at
// once; an absent one is not of the fleet, and serves what it has and what still comes. The
// clients notice every change after the scenario's Detect.
func (w *World) SetState(i int, s State) {
	r := &w.replicas[i]
	if r.state == s {
		return
	}
	r.advance(w.now)
	roll := s == StateAbsent || r.state == StateAbsent
	r.state = s
	if s == StateDead {
		for len(r.jobs) > 0 {
			w.finish(r.leave(w.queries, len(r.jobs)-1), endRefused)
		}
		r.est = newEstimator(&w.sc)
	}
	w.retune(int32(i))
	if roll {
		w.queue.push(w.now+w.sc.Detect, evRoll, 0)
		return
	}
	w.queue.push(w.now+w.sc.Detect, evHear, int32(i))
}
