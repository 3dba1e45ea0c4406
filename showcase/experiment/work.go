package experiment

import (
	"context"
	"fmt"
	"sync"
)

// Work says how to measure what is missing of a study.
type Work struct {
	Workers int   // runs at once; results do not depend on it
	Shard   Shard // which part
	// Clock, if set, gives nanoseconds from any start. With it the costs of runs are measured.
	Clock func() int64
	// Keep, if set, gets each finished run, from one goroutine at a time. An error ends the work.
	Keep func(Record) error
	// Progress, if set, hears once before the work and after each run, likewise.
	Progress func(Progress)
}

// Progress is how far a study, or a shard of it, is.
type Progress struct {
	Done, Total int
	job         *job
}

// Work measures what is missing. When ctx ends it returns the cause soon after; what is finished
// until then stays.
func (s *Study) Work(ctx context.Context, w Work) error {
	if w.Workers < 1 || w.Workers > MaxWorkers {
		return fmt.Errorf("%w: workers %d must be 1 to %d", ErrOptions, w.Workers, MaxWorkers)
	}
	if n := w.Shard.Of; n < 0 || w.Shard.I < 0 || w.Shard.I > n {
		return fmt.Errorf("%w: shard %d/%d must be 1/n to n/n", ErrOptions, w.Shard.I, n)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	j := &job{Work: w, study: s, todo: s.todo(w.Shard)}
	for _, t := range s.tasks {
		if w.Shard.has(t) {
			j.total++
		}
	}
	j.done = j.total - len(j.todo)
	j.show()
	var workers sync.WaitGroup
	for range min(w.Workers, len(j.todo)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				t, ok := j.take()
				if !ok {
					return
				}
				if err := j.measure(ctx, t); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// job is one call of Work.
type job struct {
	Work
	study *Study
	total int

	mu   sync.Mutex
	todo []task // in this order
	next int    // of todo
	done int    // of total
}

func (j *job) take() (task, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.next == len(j.todo) {
		return task{}, false
	}
	j.next++
	return j.todo[j.next-1], true
}

func (j *job) measure(ctx context.Context, t task) error {
	start := j.now()
	values, err := t.run().measure(ctx, uint64(t.seed()))
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	if len(values) != len(t.of.Columns) {
		return fmt.Errorf("%s: %d values for %d columns", t, len(values), len(t.of.Columns))
	}
	cost := j.now() - start
	j.mu.Lock()
	defer j.mu.Unlock()
	t.of.values[t.index], t.of.cost[t.index] = values, cost
	if j.Keep != nil {
		if err := j.Keep(Record{t.of.Name, t.run().keys, t.seed(), values, cost}); err != nil {
			return err
		}
	}
	j.done++
	j.show()
	return nil
}

func (j *job) now() int64 {
	if j.Clock == nil {
		return 0
	}
	return j.Clock()
}

// show tells how far the work is. The caller holds the lock, or is alone.
func (j *job) show() {
	if j.Progress == nil {
		return
	}
	j.Progress(Progress{Done: j.done, Total: j.total, job: j})
}

// Left estimates how many nanoseconds the rest takes, or gives -1 as long as nothing is known. It
// may be asked only while Work's Progress hears of it.
func (p Progress) Left() int64 {
	var left []task
	for _, t := range p.job.todo {
		if t.missing() {
			left = append(left, t)
		}
	}
	return p.job.study.estimate(left, p.job.Workers)
}

// costs is what the runs of an experiment cost: by case, and the mean of the cases.
type costs struct {
	cases []mean
	all   mean
}

func (p *part) costs() costs {
	c := costs{cases: make([]mean, len(p.runs))}
	for i, cost := range p.cost {
		if cost > 0 {
			c.cases[i/p.size.Seeds].add(cost)
		}
	}
	for _, m := range c.cases {
		if m.n > 0 {
			c.all.add(m.value())
		}
	}
	return c
}

// estimate is how long so many workers take for some runs, or -1 if nothing was measured. A run
// costs what its case cost under other seeds, or else the mean of the experiment's cases, or of
// all experiments.
func (s *Study) estimate(left []task, workers int) int64 {
	if len(left) == 0 {
		return 0
	}
	var all mean
	of := make(map[*part]costs, len(s.parts))
	for _, p := range s.parts {
		of[p] = p.costs()
		if m := of[p].all; m.n > 0 {
			all.add(m.value())
		}
	}
	if all.n == 0 {
		return -1
	}
	var sum, longest int64
	for _, t := range left {
		m := of[t.of].cases[t.index/t.of.size.Seeds]
		if m.n == 0 {
			m = of[t.of].all
		}
		if m.n == 0 {
			m = all
		}
		sum, longest = sum+m.value(), max(longest, m.value())
	}
	return max(sum/int64(workers), longest)
}

type mean struct{ sum, n int64 }

func (m *mean) add(v int64)  { m.sum, m.n = m.sum+v, m.n+1 }
func (m *mean) value() int64 { return m.sum / m.n }
