package health

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// agenda orders endpoints by when something is due for them.
type agenda []*endpoint

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due < a[j].due }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].slot, a[j].slot = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*endpoint)
	e.slot = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	e := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return e
}

// schedule says when to visit an endpoint next.
func (m *Monitor) schedule(e *endpoint, due engine.Instant) {
	e.due = due
	if e.slot < 0 {
		heap.Push(&m.agenda, e)
	} else {
		heap.Fix(&m.agenda, e.slot)
	}
}

// checkSlots bounds the checks that run at once.
type checkSlots struct {
	ctx     context.Context // that of Run; nil while it does not run
	running int
	waiting []*endpoint
	open    sync.WaitGroup
}

// Run checks endpoints and lets time pass for all else, until the context ends; it returns the
// context's error, when the last check has ended. A second one at a time is [ErrRuns].
func (m *Monitor) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.checks.ctx != nil {
		m.mu.Unlock()
		return ErrRuns
	}
	m.checks.ctx = ctx
	m.mu.Unlock()
	defer m.rest()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-m.wake:
		}
		m.mu.Lock()
		at := m.clock()
		next := m.advance(at)
		m.mu.Unlock()
		timer.Reset(time.Duration(next - at))
	}
}

// rest waits for the checks that run and forgets those that wait.
func (m *Monitor) rest() {
	m.checks.open.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.checks.waiting {
		if e.checking = false; !e.gone {
			m.judge(e, m.clock())
		}
	}
	m.checks.ctx, m.checks.waiting = nil, nil
	m.settle(m.clock())
}

// advance does what is due and returns the next instant at which something is.
func (m *Monitor) advance(at engine.Instant) engine.Instant {
	for len(m.agenda) > 0 && m.agenda[0].due <= at {
		e := m.agenda[0]
		if m.cfg.Active != nil && !e.checking && e.checks.next <= at {
			e.checking = true
			m.checks.waiting = append(m.checks.waiting, e)
		}
		if e.ejection.out && e.ejection.until <= at {
			e.ejection.out = false
		}
		m.judge(e, at)
	}
	if at >= m.sweep {
		m.sweepOutliers(at)
		m.sweep = after(at, m.cfg.Outlier.Interval)
	}
	m.startChecks()
	m.settle(at)
	next := m.sweep
	if len(m.agenda) > 0 {
		next = min(next, m.agenda[0].due)
	}
	return next
}

// startChecks gives free places to those that wait, in order.
func (m *Monitor) startChecks() {
	c := &m.checks
	for c.running < m.places() && len(c.waiting) > 0 {
		e := c.waiting[0]
		c.waiting = c.waiting[1:]
		if e.gone {
			continue
		}
		ctx, cancel := context.WithTimeout(c.ctx, m.cfg.Active.Timeout)
		e.cancel = cancel
		c.running++
		c.open.Go(func() {
			err := m.cfg.Active.Check(ctx, e.name)
			cancel()
			m.checked(e, err)
		})
	}
}

func (m *Monitor) places() int {
	if m.cfg.Active == nil || m.checks.ctx == nil || m.checks.ctx.Err() != nil {
		return 0
	}
	return m.cfg.Active.Concurrency
}

// checked takes the result of a check. What follows is told by Run, so that a balancer that is slow to
// take one change gets those that came meanwhile together.
func (m *Monitor) checked(e *endpoint, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.clock()
	m.checks.running--
	e.checking, e.cancel = false, nil
	if !e.gone {
		if m.checks.ctx.Err() == nil { // else the check did not end by itself
			m.record(e, at, err)
		}
		m.judge(e, at)
	}
	m.startChecks()
	m.nudge()
}

func (m *Monitor) record(e *endpoint, at engine.Instant, err error) {
	if err == nil {
		m.counts.Passed++
	} else {
		m.counts.Failed++
	}
	turned := e.checks.result(m.cfg.Active, at, err, &e.times)
	if turned && e.checks.up && m.cfg.Circuit != nil {
		// What passes checks again gets its trial now: it need not wait for what was.
		e.mu.Lock()
		e.breaker.hasten()
		e.mu.Unlock()
	}
}

// sweepOutliers compares the success rates of the last interval and ejects outliers, the worst
// first, as long as there is room. Whatever else keeps endpoints out takes room too.
func (m *Monitor) sweepOutliers(at engine.Instant) {
	cfg := m.cfg.Outlier
	var rates []rate
	for _, e := range m.order {
		e.mu.Lock()
		t := e.tally
		e.tally = tally{}
		e.mu.Unlock()
		if all := t.ok + t.failed; e.cause == CauseNone && all >= uint64(cfg.Requests) {
			rates = append(rates, rate{e, int64(t.ok * 1_000_000 / all)})
		}
	}
	found, median, limit := cfg.outliers(rates)
	for _, r := range rates {
		// Only an interval that proves it good does: one without traffic shows nothing.
		if r.success >= limit {
			r.endpoint.ejection.forgive()
		}
	}
	for _, r := range found {
		if m.sums.total-m.sums.fit >= cfg.room(m.sums.total) {
			return
		}
		r.endpoint.ejection.eject(cfg, at, r.success, median)
		m.counts.Ejected++
		m.judge(r.endpoint, at)
	}
}

// settle judges what queries changed and tells of every verdict that is another. The caller holds
// the lock.
func (m *Monitor) settle(at engine.Instant) {
	m.touching.Lock()
	touched := m.touched
	m.touched = nil
	m.touching.Unlock()
	for _, e := range touched {
		e.queued.Store(false) // before it is looked at: what changes from here on counts anew
		if !e.gone {
			m.judge(e, at)
		}
	}
	m.makeRoom(at)
	m.weighPanic()
	var changed []Verdict
	for _, e := range m.altered {
		e.altered = false
		if e.gone {
			continue
		}
		v := m.verdict(e, at)
		if v.Status != e.told.Status || v.Share != e.told.Share {
			changed = append(changed, v)
		}
		e.told = v
		m.say(e, v)
	}
	m.altered = m.altered[:0]
	if len(changed) > 0 {
		m.apply(changed)
	}
}

// makeRoom lets the endpoints back that were ejected first, if a fleet that shrank would have too
// many out.
func (m *Monitor) makeRoom(at engine.Instant) {
	for m.cfg.Outlier != nil && m.sums.ejected > m.cfg.Outlier.room(m.sums.total) {
		var first *endpoint
		for _, e := range m.order {
			if e.adds.ejected > 0 && (first == nil || e.ejection.until < first.ejection.until) {
				first = e
			}
		}
		first.ejection.out = false
		m.judge(first, at)
	}
}

// weighPanic begins or ends panic: too few of the fleet are fit, or there is no fleet but only
// endpoints that were never fit.
func (m *Monitor) weighPanic() {
	is := m.cfg.Panic > 0 && (m.sums.fit*100 < m.cfg.Panic*m.sums.total || m.sums.total == 0 && m.sums.usable > 0)
	if m.panicking.Swap(is) == is {
		return
	}
	for _, e := range m.order {
		if !e.altered {
			e.altered = true
			m.altered = append(m.altered, e)
		}
	}
	if is {
		m.cfg.Log.Warn("panic: too few endpoints are fit, so all are used", "fit", m.sums.fit, "of", m.sums.total)
	} else {
		m.cfg.Log.Info("panic ends: enough endpoints are fit", "fit", m.sums.fit, "of", m.sums.total)
	}
}

// say logs when an endpoint begins to fail, and when it is fit again.
func (m *Monitor) say(e *endpoint, v Verdict) {
	switch failing := v.Cause.Failing(); {
	case failing && !e.failing:
		e.failing = true
		why := v.Reason
		if v.Cause == CauseCheck && e.checks.err != nil {
			why = e.checks.err.Error()
		}
		m.cfg.Log.Warn("endpoint fails; it is tried again until it answers", "endpoint", e.name, "error", why, "cause", v.Cause)
	case v.Cause == CauseNone && e.failing:
		e.failing = false
		m.cfg.Log.Info("endpoint answers again", "endpoint", e.name)
	}
}
