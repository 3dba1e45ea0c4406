package health

import (
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// never is an instant that does not come.
const never engine.Instant = 1<<63 - 1

func after(at engine.Instant, d time.Duration) engine.Instant { return at + engine.Instant(d) }

// checks decides from the results of checks whether a replica is up, and when it is checked next.
type checks struct {
	up      bool
	proved  bool // one was passed
	seen    bool // there was a result
	streak  int  // results in a row that contradict up
	failed  int  // failures in a row
	next    engine.Instant
	soonest engine.Instant // that a check may be brought forward to
	err     error          // of the last one
}

func newChecks(cfg *Active, at engine.Instant) checks {
	return checks{up: !cfg.Unproven, next: at, soonest: at}
}

// result takes a check's result and reports whether the replica went up or down.
func (c *checks) result(cfg *Active, at engine.Instant, err error, d *dice) (turned bool) {
	ok, first := err == nil, !c.seen
	c.seen, c.err = true, err
	need := cfg.Unhealthy
	if ok {
		c.failed = 0
		if need = cfg.Healthy; !c.proved {
			need = 1
		}
		c.proved = true
	} else {
		c.failed++
	}
	if ok == c.up {
		c.streak = 0
	} else if c.streak++; c.streak >= need {
		c.up, c.streak, turned = ok, 0, true
	}
	wait := d.around(engine.Duration(cfg.Interval), cfg.Jitter)
	if c.streak > 0 {
		wait = d.around(engine.Duration(cfg.Confirm), cfg.Jitter)
	} else if first {
		// All began together: from here on they are spread over the interval.
		wait = d.upTo(engine.Duration(cfg.Interval))
	}
	c.next, c.soonest = at+engine.Instant(wait), after(at, cfg.Confirm)
	return turned
}

// hasten brings the next check forward, since something else says that the replica may be down.
func (c *checks) hasten(at engine.Instant) {
	c.next = min(c.next, max(at, c.soonest))
}
