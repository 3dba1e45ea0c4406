package health

import (
	"fmt"
	"math"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// Cause is what keeps an endpoint out. Where several do, the first in this order is named.
type Cause uint8

const (
	CauseNone     Cause = iota // nothing does: it is fit
	CauseOperator              // somebody said so: see Monitor.SetAdmin
	CauseNew                   // it warms up, or has not passed a check yet
	CauseCheck                 // it failed its checks
	CauseCircuit               // its queries failed: the circuit is open
	CauseOutlier               // its queries fail more often than the fleet's
	CauseTrial                 // its circuit is half-open: eligible while a trial query is free
)

var causes = [...]string{"", "operator", "new", "check", "circuit", "outlier", "trial"}

// Causes are all causes, in order of precedence.
func Causes() []Cause {
	return []Cause{CauseOperator, CauseNew, CauseCheck, CauseCircuit, CauseOutlier, CauseTrial}
}

// String is operator, new, check, circuit, outlier, trial, or empty for none.
func (c Cause) String() string { return causes[c] }

// Failing reports whether the endpoint itself gave reason to keep it out.
func (c Cause) Failing() bool { return c == CauseCheck || c == CauseCircuit || c == CauseOutlier }

// Verdict is what becomes of one endpoint.
type Verdict struct {
	Name   string
	Status engine.Status
	Share  uint32 // of its weight, in parts per 10,000: less than [Full] while it starts slowly; 0 without slow start
	Cause  Cause
	Panic  bool   // ready in spite of the cause, because too few endpoints are fit
	Reason string // the cause in words; empty if there is none
}

// fullWeight is what one unit of weight becomes under slow start, so that a share of it is whole.
const fullWeight = 100

// Weight is the weight to give the endpoint, by the one it is configured with. Under slow start all
// weights of a fleet grow a hundredfold, so that there is something to take a share of; those above
// 42,949,672 are cut to that. Without slow start it is base.
func (v Verdict) Weight(base uint32) uint32 {
	if v.Share == 0 {
		return base
	}
	weight := min(uint64(max(base, 1)), math.MaxUint32/fullWeight)
	return uint32(max(1, weight*fullWeight*uint64(v.Share)/Full))
}

// verdict is the present one. The caller holds the lock.
func (m *Monitor) verdict(e *endpoint, at engine.Instant) Verdict {
	v := Verdict{Name: e.name, Status: engine.StatusUnavailable, Cause: e.cause, Reason: m.reason(e, at)}
	switch {
	case e.held != engine.StatusReady:
		v.Status = e.held
	case e.cause == CauseNone || e.cause == CauseTrial && e.admits:
		v.Status = engine.StatusReady
	case m.panicking.Load():
		v.Status, v.Panic = engine.StatusReady, true
	}
	if m.cfg.SlowStart != nil {
		v.Share = Full
		if e.ramping {
			v.Share = m.cfg.SlowStart.share(e.began, at)
		}
	}
	return v
}

// reason says in words why an endpoint is out.
func (m *Monitor) reason(e *endpoint, at engine.Instant) string {
	rest := func(until engine.Instant) time.Duration {
		return time.Duration(max(0, until-at)).Round(time.Millisecond)
	}
	switch e.cause {
	case CauseOperator:
		return e.held.String() + ": set by an operator"
	case CauseNew:
		if at < e.warm {
			return fmt.Sprintf("new: warms up for another %v", rest(e.warm))
		}
		return "new: has not passed a check yet"
	case CauseCheck:
		if e.checks.err == nil {
			return fmt.Sprintf("passed fewer than %d checks in a row since it failed", m.cfg.Active.Healthy)
		}
		return fmt.Sprintf("%s failed: %v", count(e.checks.failed, "check"), e.checks.err)
	case CauseCircuit:
		if e.why.row > 0 {
			return fmt.Sprintf("circuit open for another %v: %s in a row failed", rest(e.until), count(e.why.row, "query"))
		}
		return fmt.Sprintf("circuit open for another %v: %d of %d queries failed", rest(e.until), e.why.failed, e.why.all)
	case CauseOutlier:
		return fmt.Sprintf("ejected for another %v: %s of its queries succeed, of the fleet's %s",
			rest(e.ejection.until), percent(e.ejection.success), percent(e.ejection.fleet))
	case CauseTrial:
		return fmt.Sprintf("circuit half-open: %d of %d trial queries succeeded", e.passed, m.cfg.Circuit.Successes)
	}
	return ""
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "query":
		return fmt.Sprintf("%d queries", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// percent writes parts per million.
func percent(ppm int64) string { return fmt.Sprintf("%d.%d %%", ppm/10_000, ppm/1000%10) }
