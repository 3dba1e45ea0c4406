package showcase

import (
	"strings"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// stage is the two worlds of a room and what has been seen of them. It is pure: the clock is
// the caller's, and everything it shows follows from the setup and the changes made.
type stage struct {
	setup   Setup
	worlds  [2]*sim.World
	tapes   [2]sim.Tape
	from    int64        // start of the tick
	seen    [2]seenWorld // at the last column
	columns []Column
	held    *DecisionFrame
	now     int64
}

// seenWorld is what the last column was derived from.
type seenWorld struct {
	area, used []int64
	use        []uint8
	errors     uint64
	arrivals   [4]uint64 // at the last four columns
	completed  [4]uint64
	offered    int
	served     int
}

func newStage(s Setup, mk sim.Maker) (*stage, error) {
	a, b, err := s.Specs()
	if err != nil {
		return nil, err
	}
	st := &stage{setup: s}
	for i, spec := range []string{a, b} {
		w, err := sim.NewWorld(s.Situation(), spec, mk)
		if err != nil {
			st.close()
			return nil, err
		}
		w.Record(&st.tapes[i])
		w.Focus(s.Focus)
		st.worlds[i] = w
		st.seen[i].use = make([]uint8, s.Replicas)
	}
	st.look(0)
	return st, nil
}

func (st *stage) close() {
	for _, w := range st.worlds {
		if w != nil {
			w.Close()
		}
	}
}

// run lets both worlds run for a span of simulated time, and starts the next tick.
func (st *stage) run(span int64) error {
	st.from = st.now
	for i := range st.tapes {
		st.tapes[i].Dots = st.tapes[i].Dots[:0]
	}
	for end := st.now + span; st.now < end; {
		next := min(end, (st.now/columnSpan+1)*columnSpan)
		for _, w := range st.worlds {
			if err := w.Run(next); err != nil {
				return err
			}
		}
		st.now = next
		if next%columnSpan == 0 {
			st.look(next)
		}
	}
	for _, w := range st.worlds {
		if w.Held != nil && st.held == nil {
			d := explain(w, w.Held, true)
			st.held = &d
		}
	}
	return nil
}

// decide runs until the focused client of A has decided once more, at most for a second.
func (st *stage) decide() error {
	const piece = sim.Millisecond
	was := st.worlds[0].Explained.Serial
	start := st.now
	var dots [2][]sim.Dot
	for st.now-start < sim.Second && st.worlds[0].Explained.Serial == was {
		if err := st.run(piece); err != nil {
			return err
		}
		for i := range dots {
			dots[i] = append(dots[i], st.tapes[i].Dots...)
		}
	}
	st.from = start
	for i := range dots {
		st.tapes[i].Dots = dots[i]
	}
	return nil
}

// look adds the column that ends now.
func (st *stage) look(now int64) {
	c := Column{Index: uint32(now / columnSpan), Worlds: make([]WorldColumn, len(st.worlds))}
	for i, w := range st.worlds {
		seen := &st.seen[i]
		views := w.Replicas(nil)
		if seen.area == nil {
			seen.area, seen.used = make([]int64, len(views)), make([]int64, len(views))
		}
		wc := &c.Worlds[i]
		wc.RIF = make([]uint8, len(views))
		cores := int64(w.Scenario().Cores)
		for r, v := range views {
			mean := (v.Area - seen.area[r] + columnSpan/2) / columnSpan
			wc.RIF[r] = uint8(min(mean, 255))
			seen.use[r] = uint8(min((v.Used-seen.used[r])*100_000/(columnSpan*cores), 255))
			seen.area[r], seen.used[r] = v.Area, v.Used
		}
		q := st.quantiles(w)
		wc.P50, wc.P99 = q[0], q[2]
		wc.Errors = w.Totals.Errors - seen.errors
		wc.Threshold, _ = threshold(w)
		seen.errors = w.Totals.Errors
		k := c.Index % 4
		seen.offered = int(w.Totals.Arrivals - seen.arrivals[k])
		seen.served = int(w.Totals.Completed - seen.completed[k])
		seen.arrivals[k], seen.completed[k] = w.Totals.Arrivals, w.Totals.Completed
	}
	if len(st.columns) == columnsKept {
		st.columns = append(st.columns[:0], st.columns[1:]...)
	}
	st.columns = append(st.columns, c)
}

// quantiles are the recent p50, p90, p99 and p99.9; a deadline is none.
func (st *stage) quantiles(w *sim.World) (q [4]int64) {
	w.Recent(q[:0], 5000, 9000, 9900, 9990)
	for i := range q {
		if q[i] >= w.Scenario().Deadline {
			q[i] = -1
		}
	}
	return q
}

// threshold is that of the focused client, and whether its policy keeps a pool at all.
func threshold(w *sim.World) (uint32, bool) {
	_, f, err := w.Fit()
	if err != nil || f.Pool == 0 {
		return engine.NoThreshold, false
	}
	return f.Threshold, true
}

// frame shows the present instant; the room fills in what only it knows.
func (st *stage) frame() *Frame {
	f := &Frame{Sim: st.now, Clients: st.setup.Clients, Column: st.columns[len(st.columns)-1]}
	for i, w := range st.worlds {
		wf := WorldFrame{
			Totals: w.Totals, InFlight: w.InFlight(), Quantiles: st.quantiles(w),
			Offered: st.seen[i].offered, Served: st.seen[i].served, Traffic: w.TrafficHash(),
			Replicas: w.Replicas(nil), Use: st.seen[i].use, From: st.from,
		}
		wf.Threshold, wf.Pool = threshold(w)
		wf.Dots, wf.Queries, wf.Failures = sample(st.tapes[i].Dots)
		f.Worlds = append(f.Worlds, wf)
	}
	w := st.explained()
	if st.held != nil {
		f.Decision = *st.held
	} else {
		f.Decision = explain(st.worlds[w], &st.worlds[w].Explained, false)
	}
	f.Decision.World = w
	f.Decision.Client = st.setup.Focus
	f.Why = Why(&f.Decision, st.worlds[w].Spec())
	f.Verdict = Compare(&f.Worlds[0], &f.Worlds[1], st.worlds[0].Spec(), st.worlds[1].Spec())
	return f
}

// explained is the world whose decisions are explained: A, unless only B keeps a pool.
func (st *stage) explained() int {
	_, a := threshold(st.worlds[0])
	if _, b := threshold(st.worlds[1]); b && !a {
		return 1
	}
	return 0
}

// sample thins the dots of a tick evenly, each sort within its own bound, and counts what they
// stand for.
func sample(all []sim.Dot) (dots []sim.Dot, queries, failures int) {
	bound := [3]int{maxDots, maxErrors, maxProbes}
	sort := func(d sim.Dot) int {
		switch d.Kind {
		case sim.KindError:
			return 1
		case sim.KindProbe:
			return 2
		}
		return 0
	}
	var total, met [3]int
	for _, d := range all {
		total[sort(d)]++
	}
	for _, d := range all {
		s := sort(d)
		n, k := total[s], met[s]
		met[s]++
		// The k-th of n is taken when the running share of the bound steps up.
		if n <= bound[s] || k*bound[s]/n != (k+1)*bound[s]/n {
			dots = append(dots, d)
		}
	}
	return dots, total[0], total[1]
}

// states is one letter for each replica: u up, d draining, x dead.
func (st *stage) states() string {
	var b strings.Builder
	for _, v := range st.worlds[0].Replicas(nil) {
		b.WriteByte("udx"[v.State])
	}
	return b.String()
}
