package experiment

import (
	"math"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// sliceSpan is how finely a meter looks.
const sliceSpan = sim.Second / 2

// tally is what happened in one slice of time.
type tally struct {
	placed, marked uint64 // decisions, and those for a marked replica
	ended, failed  uint64 // queries that ended, and those that failed
	failedMarked   uint64 // of those, at a marked replica
}

// meter watches all clients of one world from outside: what their machines decide and hear.
type meter struct {
	marked map[engine.ID]bool
	slices []tally
	phases []phase
}

// phase collects the latencies of successes in a span of time.
type phase struct {
	from, until int64
	good        sim.Latencies
}

// newMeter watches until an instant, with an eye on some replicas.
func newMeter(until int64, marked []int, phases ...phase) *meter {
	m := &meter{marked: map[engine.ID]bool{}, slices: make([]tally, until/sliceSpan+1), phases: phases}
	for _, i := range marked {
		m.marked[engine.IDOf(sim.Name(i))] = true
	}
	return m
}

// maker makes a client's machine.
type maker func(spec string, salt uint64) (engine.Machine, error)

// watching puts the meter between a world and the machines that a maker makes.
func (m *meter) watching(mk maker) maker {
	return func(spec string, salt uint64) (engine.Machine, error) {
		inner, err := mk(spec, salt)
		return &watched{inner, m}, err
	}
}

type watched struct {
	engine.Machine
	meter *meter
}

func (w *watched) Decide(q *engine.Query, d *engine.Decision) error {
	err := w.Machine.Decide(q, d)
	t := &w.meter.slices[int64(q.Now)/sliceSpan]
	if err != nil { // nowhere to go: it ends here
		t.ended++
		t.failed++
		return err
	}
	t.placed++
	if w.meter.marked[d.ID] {
		t.marked++
	}
	return nil
}

func (w *watched) Report(now engine.Instant, r engine.Report) error {
	t := &w.meter.slices[int64(now)/sliceSpan]
	t.ended++
	if r.Outcome != engine.OutcomeSuccess {
		t.failed++
		if w.meter.marked[r.ID] {
			t.failedMarked++
		}
	} else {
		for i := range w.meter.phases {
			if p := &w.meter.phases[i]; p.from <= int64(now) && int64(now) < p.until {
				p.good.Add(int64(r.Latency))
			}
		}
	}
	return w.Machine.Report(now, r)
}

// over sums up a span of whole slices.
func (m *meter) over(from, until int64) (sum tally) {
	for i := from / sliceSpan; i < until/sliceSpan; i++ {
		t := &m.slices[i]
		sum.placed += t.placed
		sum.marked += t.marked
		sum.ended += t.ended
		sum.failed += t.failed
		sum.failedMarked += t.failedMarked
	}
	return sum
}

// share is the part of the decisions that went to marked replicas.
func (t tally) share() float64 { return float64(t.marked) / float64(t.placed) }

// first is how long after from the marked share over a stretch of time first held, or infinite
// if that was not before until. It is the end of the stretch that counts.
func (m *meter) first(from, until, stretch int64, holds func(share float64) bool) float64 {
	for at := from + stretch; at <= until; at += sliceSpan {
		if holds(m.over(at-stretch, at).share()) {
			return seconds(at - from)
		}
	}
	return math.Inf(1)
}

func seconds(ns int64) float64 { return float64(ns) / float64(sim.Second) }

// quantile is a latency in milliseconds, or NaN if nothing was counted; rank in parts per 10,000.
func (p *phase) quantile(rank uint64) float64 {
	if p.good.Count() == 0 {
		return math.NaN()
	}
	return float64(p.good.Quantiles(nil, rank)[0]) / float64(sim.Millisecond)
}
