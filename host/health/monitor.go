package health

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// Errors of a monitor.
var (
	// ErrRuns is a second Run while the first has not ended.
	ErrRuns = errors.New("the monitor runs already")
	// ErrUnknown is an endpoint that is not in the set.
	ErrUnknown = errors.New("unknown endpoint")
	// ErrEndpoints is a set with an empty or repeated name.
	ErrEndpoints = errors.New("bad set of endpoints")
)

// Monitor watches a fleet. It is safe for concurrent use.
type Monitor struct {
	cfg   Config
	apply func([]Verdict)
	clock func() engine.Instant

	byName    atomic.Pointer[map[string]*endpoint] // never changed, only replaced
	panicking atomic.Bool
	wake      chan struct{}

	touching sync.Mutex // taken inside no other lock
	touched  []*endpoint

	mu      sync.Mutex
	order   []*endpoint
	serial  uint32
	sums    sums
	altered []*endpoint
	agenda  agenda
	sweep   engine.Instant // when outliers are looked for next
	checks  checkSlots
	counts  Counts
}

// Counts is what has happened since the monitor was made, and how the fleet stands.
type Counts struct {
	Passed, Failed  uint64 // checks
	Opened, Ejected uint64 // circuits, outliers
	Fleet, Fit      int    // endpoints of which a share must be fit, and those that are
	Panic           bool
	Out             map[Cause]int // endpoints by what keeps them out
}

// New makes a monitor without endpoints. It calls apply with the verdicts that changed in status or
// share, never with one that did not, one call at a time and in order; apply must not call the
// monitor. An [ErrConfig] says which setting is out of range.
func New(cfg Config, apply func([]Verdict)) (*Monitor, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	began := time.Now()
	m := &Monitor{
		cfg: cfg, apply: apply, wake: make(chan struct{}, 1),
		clock: func() engine.Instant { return engine.Instant(time.Since(began)) },
		sweep: never,
	}
	if cfg.Outlier != nil {
		m.sweep = engine.Instant(cfg.Outlier.Interval)
	}
	m.byName.Store(&map[string]*endpoint{})
	return m, nil
}

// SetEndpoints replaces the whole set. What is known of an endpoint survives every change that
// keeps its name, what is known of others is forgotten and their checks end. Install receives the
// verdicts in the order of the names and puts the set to use with them; if it fails the old set
// stands. Errors: that of install, and [ErrEndpoints].
func (m *Monitor) SetEndpoints(names []string, install func([]Verdict) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.clock()
	old, oldOrder := *m.byName.Load(), m.order
	byName, order := make(map[string]*endpoint, len(names)), make([]*endpoint, 0, len(names))
	for _, name := range names {
		if name == "" || byName[name] != nil {
			return fmt.Errorf("%w: name %q is empty or stands twice", ErrEndpoints, name)
		}
		e := old[name]
		if e == nil {
			e = m.newEndpoint(name, at, len(oldOrder) > 0)
		}
		byName[name] = e
		order = append(order, e)
	}
	m.replace(order, at)
	verdicts := m.verdicts(at)
	if err := install(verdicts); err != nil {
		for _, e := range order {
			e.gone = old[e.name] == nil
		}
		m.replace(oldOrder, at)
		m.settle(at)
		return err
	}
	for i, e := range order {
		e.told = verdicts[i]
	}
	for _, e := range oldOrder {
		if byName[e.name] == nil {
			e.gone = true
			if e.cancel != nil {
				e.cancel()
			}
		}
	}
	m.byName.Store(&byName)
	m.settle(at)
	m.nudge()
	return nil
}

func (m *Monitor) newEndpoint(name string, at engine.Instant, newcomer bool) *endpoint {
	m.serial++
	e := &endpoint{
		name: name, serial: m.serial, newcomer: newcomer, slot: -1, breaker: breaker{epoch: 1},
		draws: newDice(m.cfg.Seed, name, 0), times: newDice(m.cfg.Seed, name, 1),
	}
	if m.cfg.Active != nil {
		e.checks = newChecks(m.cfg.Active, at)
	}
	if newcomer {
		e.warm = after(at, m.cfg.WarmUp)
	}
	e.publish(m.cfg.Circuit != nil)
	return e
}

// replace puts another set in the place of the present one and judges it.
func (m *Monitor) replace(order []*endpoint, at engine.Instant) {
	m.order, m.sums, m.agenda = order, sums{}, make(agenda, 0, len(order))
	for _, e := range order {
		e.adds, e.slot = sums{}, -1
	}
	for _, e := range order {
		m.judge(e, at)
	}
	m.weighPanic()
}

// SetAdmin holds an endpoint back, or with [engine.StatusReady] no longer does: what an operator
// says comes before all else. It is applied when the call returns. Errors: [ErrUnknown], and
// [engine.ErrConfig] for a status that there is not.
func (m *Monitor) SetAdmin(name string, st engine.Status) error {
	if st > engine.StatusUnavailable {
		return fmt.Errorf("%w: no such status", engine.ErrConfig)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := (*m.byName.Load())[name]
	if e == nil {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if e.held != st {
		e.held = st
		at := m.clock()
		m.judge(e, at)
		m.settle(at)
		m.nudge()
	}
	return nil
}

// Suspect says that an endpoint may be down, such as because it answered no probe: its next check
// is brought forward, at most to Confirm after the last one. Alone it takes nothing out.
func (m *Monitor) Suspect(name string) {
	if m.cfg.Active == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := (*m.byName.Load())[name]; e != nil && !e.checking {
		e.checks.hasten(m.clock())
		m.schedule(e, min(e.due, e.checks.next))
		m.nudge()
	}
}

// Admit is asked before a query is sent to an endpoint, and its permit is for Report. False means
// that the circuit lets no query pass now: send it elsewhere. An endpoint that is not in the set
// may have queries.
func (m *Monitor) Admit(name string) (uint64, bool) {
	e := (*m.byName.Load())[name]
	if e == nil {
		return 0, true
	}
	if p := e.permit.Load(); p != 0 {
		return p, true
	}
	e.mu.Lock()
	ok := e.breaker.admit(m.cfg.Circuit, m.clock())
	p := permit(e.serial, e.breaker.epoch)
	e.mu.Unlock()
	if ok {
		m.touch(e) // it may have been the last free trial
		return p, true
	}
	// In panic everything may be used; such a query is no trial.
	return permit(e.serial, 0), m.panicking.Load()
}

// Report says how a query ended that was admitted with this permit: exactly once, when it is
// complete. A permit of an endpoint that has left the set since, or of an earlier epoch of its
// circuit, changes nothing there.
func (m *Monitor) Report(name string, p uint64, o engine.Outcome) {
	e := (*m.byName.Load())[name]
	if e == nil || uint32(p>>32) != e.serial {
		return
	}
	e.mu.Lock()
	changed := false
	if m.cfg.Circuit != nil && uint32(p) != 0 {
		changed = e.breaker.report(m.cfg.Circuit, m.clock(), uint32(p), o, &e.draws)
		if changed {
			e.publish(true)
		}
	}
	switch o {
	case engine.OutcomeSuccess:
		e.tally.ok++
		e.served++
		changed = changed || m.cfg.SlowStart != nil && e.served == m.cfg.SlowStart.Enough
	case engine.OutcomeFailure:
		e.tally.failed++
	}
	e.mu.Unlock()
	if changed {
		m.touch(e)
	}
}

// touch has an endpoint judged anew, by whoever holds the monitor's lock next.
func (m *Monitor) touch(e *endpoint) {
	if e.queued.Swap(true) {
		return
	}
	m.touching.Lock()
	m.touched = append(m.touched, e)
	m.touching.Unlock()
	m.nudge()
}

func (m *Monitor) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Verdicts are the present ones, in the order of the set.
func (m *Monitor) Verdicts() []Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.verdicts(m.clock())
}

func (m *Monitor) verdicts(at engine.Instant) []Verdict {
	out := make([]Verdict, len(m.order))
	for i, e := range m.order {
		out[i] = m.verdict(e, at)
	}
	return out
}

// Counts tells how the fleet stands.
func (m *Monitor) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts
	c.Fleet, c.Fit, c.Panic, c.Out = m.sums.total, m.sums.fit, m.panicking.Load(), map[Cause]int{}
	for _, e := range m.order {
		if e.cause != CauseNone {
			c.Out[e.cause]++
		}
	}
	return c
}
