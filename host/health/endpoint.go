package health

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// endpoint is what is known of one. It lives as long as its name is in the set.
type endpoint struct {
	name   string
	serial uint32 // of this life: permits of an earlier one change nothing

	permit atomic.Uint64 // to hand out while the circuit is closed; 0 while it is not
	queued atomic.Bool   // among those that queries changed

	// What queries change. The lock is held for some nanoseconds, and taken inside the monitor's.
	mu      sync.Mutex
	breaker breaker
	draws   dice // of the breaker
	tally   tally
	served  int // succeeded queries since the ramp began

	// Under the monitor's lock.
	newcomer bool          // came after the first set
	ever     bool          // has been fit
	held     engine.Status // by an operator; ready for not
	warm     engine.Instant
	checks   checks
	times    dice // of the checks
	checking bool // a check runs or waits for its turn
	cancel   context.CancelFunc
	gone     bool
	ejection ejection
	ramping  bool
	began    engine.Instant // its ramp

	// As judged last: the breaker as it was then, and what follows.
	admits  bool
	passed  int
	why     reason
	until   engine.Instant
	opened  uint64
	cause   Cause
	adds    sums // to those of the fleet
	told    Verdict
	failing bool // said so in the log
	altered bool // among those whose verdict may be another
	due     engine.Instant
	slot    int // in the heap
}

func permit(serial, epoch uint32) uint64 { return uint64(serial)<<32 | uint64(epoch) }

// publish makes the permit of a closed circuit known to queries. The caller holds e.mu.
func (e *endpoint) publish(on bool) {
	switch {
	case !on:
		e.permit.Store(permit(e.serial, 0))
	case e.breaker.phase == closed:
		e.permit.Store(permit(e.serial, e.breaker.epoch))
	default:
		e.permit.Store(0)
	}
}

// judge works out anew what keeps an endpoint out, and when to look again. The caller holds the
// monitor's lock.
func (m *Monitor) judge(e *endpoint, at engine.Instant) {
	ph, due := closed, never
	e.mu.Lock()
	if m.cfg.Circuit != nil {
		e.breaker.tick(m.cfg.Circuit, at)
		e.publish(true)
		ph, due = e.breaker.phase, e.breaker.due(m.cfg.Circuit)
		e.admits, e.passed = e.breaker.admits(m.cfg.Circuit), e.breaker.passed
		e.why, e.until = e.breaker.why, e.breaker.until
		m.counts.Opened += e.breaker.opened - e.opened
		e.opened = e.breaker.opened
	}
	served := e.served
	e.mu.Unlock()

	was := e.cause
	e.cause = m.cause(e, ph, at)
	fit := e.cause == CauseNone
	if s := m.cfg.SlowStart; s != nil {
		switch {
		case !fit:
			e.ramping = false
		case !e.ever && e.newcomer || e.ever && was != CauseNone:
			e.mu.Lock()
			e.served = 0
			e.mu.Unlock()
			e.ramping, e.began = true, at
		case e.ramping:
			e.ramping = s.share(e.began, at) < Full && !(s.Enough > 0 && served >= s.Enough)
		}
	}
	e.ever = e.ever || fit
	m.count(e)

	if m.cfg.Active != nil && !e.checking {
		due = min(due, e.checks.next)
	}
	if e.ejection.out {
		due = min(due, e.ejection.until)
	}
	if at < e.warm {
		due = min(due, e.warm)
	}
	if e.ramping {
		due = min(due, m.cfg.SlowStart.next(at))
	}
	m.schedule(e, due)
	if !e.altered {
		e.altered = true
		m.altered = append(m.altered, e)
	}
}

// sums is what a fleet, or one endpoint of it, counts.
type sums struct{ usable, total, fit, ejected int }

func (s *sums) add(o sums, sign int) {
	s.usable += sign * o.usable
	s.total += sign * o.total
	s.fit += sign * o.fit
	s.ejected += sign * o.ejected
}

// count brings the sums over the fleet up to date with an endpoint. One that an operator holds back
// is not of the fleet, nor is a new one until it was fit: many that never come up are no emergency.
func (m *Monitor) count(e *endpoint) {
	m.sums.add(e.adds, -1)
	e.adds = sums{}
	if e.held == engine.StatusReady {
		e.adds.usable = 1
	}
	if e.adds.usable > 0 && (e.ever || !e.newcomer) {
		e.adds.total = 1
		if e.cause == CauseNone {
			e.adds.fit = 1
		}
		if e.ejection.out {
			e.adds.ejected = 1
		}
	}
	m.sums.add(e.adds, 1)
}

func (m *Monitor) cause(e *endpoint, ph phase, at engine.Instant) Cause {
	a := m.cfg.Active
	switch {
	case e.held != engine.StatusReady:
		return CauseOperator
	case at < e.warm, a != nil && !e.checks.up && !e.checks.proved && e.checks.failed < a.Unhealthy:
		return CauseNew
	case a != nil && !e.checks.up:
		return CauseCheck
	case ph == open:
		return CauseCircuit
	case e.ejection.out:
		return CauseOutlier
	case ph == halfOpen:
		return CauseTrial
	}
	return CauseNone
}
