package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// loop drives one machine with readings and queries whose figures cannot be guessed, three
// readings a query as Prequal's probes bring them, and ends each query a little later.
type loop struct {
	m      engine.Machine
	cs     []engine.Candidate
	ready  []engine.ID        // whom probes go to
	less   []engine.Candidate // without the middle one
	keys   []engine.Key
	turn   int
	now    engine.Instant
	seed   uint64
	q      engine.Query
	open   []engine.ID
	placed [plainRun]engine.Decision // of the last run
	keeps  bool
	run    int // calls timed together: a burst that the pool can serve
	err    error
	times  []time.Duration
}

const (
	runsPerRound = 40
	longestRun   = 7   // of a policy with a pool
	plainRun     = 100 // of any other: the clock's steps are then small against it
	openQueries  = 64

	longestChanges = 200 * time.Microsecond
)

func newLoop(m engine.Machine, f fleet) (*loop, error) {
	l := &loop{m: m, seed: 1}
	for i := range f.n {
		c := engine.Candidate{
			ID: engine.IDOf(fmt.Sprintf("replica-%04d", i)), Weight: engine.Weight(i%4 + 1), Priority: uint8(i % 3), Locality: uint32(i % 3),
		}
		if f.draining && i%2 == 1 {
			c.Status = engine.StatusDraining
		} else {
			l.ready = append(l.ready, c.ID)
		}
		l.cs = append(l.cs, c)
	}
	l.less = append(append(l.less, l.cs[:f.n/2]...), l.cs[f.n/2+1:]...)
	for i := range 997 {
		l.keys = append(l.keys, engine.KeyOf(fmt.Sprintf("request-%05d", i)))
	}
	if err := m.SetCandidates(0, l.cs); err != nil {
		return nil, err
	}
	for i, c := range l.cs {
		load := engine.LoadReport{Utilization: uint32(3000 + i%7*1000), QPS: uint32(50000 + i%11*10000)}
		if err := m.RecordLoad(0, c.ID, load); err != nil {
			return nil, err
		}
	}
	a, err := m.Record(0, l.cs[0].ID, engine.Reading{RIF: 1, Latency: engine.Millisecond})
	l.keeps = err == nil && a != engine.NotKept
	l.run = plainRun
	if l.keeps {
		l.run = longestRun
	}
	var c engine.Counters
	var fit engine.Fit
	if err := m.Inspect(&c, &fit); err != nil {
		return nil, err
	}
	if fit.Pool > 0 { // two entries go with each query
		l.run = max(1, min(longestRun, (int(fit.Pool)-1)/2))
	}
	for range 2000 {
		l.reading()
		l.query()
	}
	return l, l.err
}

func (l *loop) note(err error) {
	if err != nil && l.err == nil {
		l.err = err
	}
}

func (l *loop) reading() {
	l.seed = l.seed*6364136223846793005 + 1442695040888963407
	x := l.seed ^ l.seed>>31
	_, err := l.m.Record(l.now, l.ready[(x>>8)%uint64(len(l.ready))], engine.Reading{
		RIF: uint32(x >> 59), Latency: engine.Duration(x>>36&0xffffff) + engine.Millisecond, Asked: l.now,
	})
	l.note(err)
}

func (l *loop) query() { l.queries(1) }

// queries decides n times, with little beside: some decisions cost no more than two calls.
func (l *loop) queries(n int) {
	m, q, turn, keys := l.m, &l.q, l.turn, l.keys
	q.Now = l.now
	for i := range l.placed[:n] {
		if turn++; turn >= len(keys) {
			turn = 0
		}
		q.Now += fleetStep
		q.Key = keys[turn]
		if err := m.Decide(q, &l.placed[i]); err != nil {
			l.note(err)
		}
	}
	l.now, l.turn = q.Now, turn
}

// finish takes in the run just placed and ends the oldest queries for it, so that in-flight
// counts differ and stay bounded.
func (l *loop) finish() {
	for i := range l.placed[:l.run] {
		l.open = append(l.open, l.placed[i].ID)
	}
	for len(l.open) > openQueries {
		l.note(l.m.Report(l.now, engine.Report{ID: l.open[0], Latency: engine.Millisecond}))
		l.open = append(l.open[:0], l.open[1:]...)
	}
}

// decisions times bursts of queries, as many as the pool can serve, each burst after the
// readings that it is due. All of these return nanoseconds a call at the lower quartile, the
// timer's share off.
func (l *loop) decisions() float64 { return l.runs(l.queries, func(int) {}) }

// readings times runs of readings, and others the same runs of anything else.
func (l *loop) readings() float64 { return l.others(l.reading) }

func (l *loop) others(f func()) float64 {
	return l.runs(func(n int) {
		for range n {
			f()
		}
	}, l.queries)
}

// change takes the middle candidate out, or puts it back, and decides.
func (l *loop) change() {
	l.cs, l.less = l.less, l.cs
	l.note(l.m.SetCandidates(l.now, l.cs))
	l.query()
}

// changes times changes of the set by twos, which leave it as it was: as often as decisions,
// or less where they take long.
func (l *loop) changes() float64 {
	l.times = l.times[:0]
	for spent := time.Duration(0); len(l.times) < 2 || spent < longestChanges && len(l.times) < runsPerRound; {
		start := time.Now()
		l.change()
		l.change()
		took := time.Since(start)
		l.times = append(l.times, took)
		spent += took
	}
	return (quartile(l.times) - timer()) / 2
}

func (l *loop) runs(f, after func(n int)) float64 {
	l.times = l.times[:0]
	for range runsPerRound {
		if l.keeps {
			for range 3 * l.run {
				l.reading()
			}
		}
		start := time.Now()
		f(l.run)
		l.times = append(l.times, time.Since(start))
		after(l.run)
		l.finish()
	}
	return (quartile(l.times) - timer()) / float64(l.run)
}

func quartile(v []time.Duration) float64 {
	slices.Sort(v)
	return float64(v[len(v)/4])
}

// timer is what two readings of the clock cost.
func timer() float64 {
	var v [200]time.Duration
	for i := range v {
		start := time.Now()
		v[i] = time.Since(start)
	}
	return quartile(v[:])
}
