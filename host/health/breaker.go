package health

import "github.com/headroom-lb/headroom/engine"

type phase uint8

const (
	closed   phase = iota // queries pass
	open                  // none does
	halfOpen              // a few do, on trial
)

// breaker is a circuit. Every change of phase begins a new epoch, and what a query of an earlier
// one reports changes nothing.
type breaker struct {
	phase  phase
	epoch  uint32
	recent window
	row    int    // failures in a row
	level  int    // doublings
	why    reason // it opened
	until  engine.Instant
	since  engine.Instant // it was closed
	trials int            // trial queries that are open
	passed int            // that succeeded
	last   engine.Instant // one was admitted
	opened uint64         // how often it was
}

// reason is what opened a circuit: failures in a row, or failed of all within the window.
type reason struct{ row, failed, all int }

// tick ends what time ends and reports whether that changed anything.
func (b *breaker) tick(cfg *Circuit, at engine.Instant) bool {
	switch {
	case b.phase == open && at >= b.until:
		b.half()
	// Trial queries that never end, such as of streams, must not keep it half-open for ever.
	case b.phase == halfOpen && b.trials >= cfg.Trials && at >= b.stuck(cfg):
		b.half()
	default:
		return false
	}
	return true
}

// due is when tick has something to do next.
func (b *breaker) due(cfg *Circuit) engine.Instant {
	switch {
	case b.phase == open:
		return b.until
	case b.phase == halfOpen && b.trials >= cfg.Trials:
		return b.stuck(cfg)
	}
	return never
}

func (b *breaker) stuck(cfg *Circuit) engine.Instant { return after(b.last, cfg.Open) }

func (b *breaker) half() {
	b.phase, b.trials, b.passed = halfOpen, 0, 0
	b.epoch++
}

// hasten turns an open circuit half-open: something else says that the replica works again.
func (b *breaker) hasten() bool {
	if b.phase != open {
		return false
	}
	b.half()
	return true
}

// admits reports whether a query may pass now.
func (b *breaker) admits(cfg *Circuit) bool {
	return b.phase == closed || b.phase == halfOpen && b.trials < cfg.Trials
}

// admit lets a query pass, or not.
func (b *breaker) admit(cfg *Circuit, at engine.Instant) bool {
	b.tick(cfg, at)
	if !b.admits(cfg) {
		return false
	}
	if b.phase == halfOpen {
		b.trials++
		b.last = at
	}
	return true
}

// report takes the outcome of a query that was admitted in an epoch, and reports whether that may
// have changed what it admits. Overload and cancellation say nothing: a replica that refuses for
// load is alive, and whether it gets less is for the policy.
func (b *breaker) report(cfg *Circuit, at engine.Instant, epoch uint32, o engine.Outcome, d *dice) bool {
	if epoch != b.epoch {
		return false
	}
	switch b.phase {
	case closed:
		switch o {
		case engine.OutcomeSuccess:
			b.row = 0
			b.recent.add(cfg, at, false)
		case engine.OutcomeFailure:
			b.row++
			b.recent.add(cfg, at, true)
			all, failed := b.recent.sum()
			byRow := cfg.Consecutive > 0 && b.row >= cfg.Consecutive
			byRatio := cfg.Ratio > 0 && all >= cfg.Volume && failed*100 >= all*cfg.Ratio
			if !byRow && !byRatio {
				return false
			}
			if b.why = (reason{failed: failed, all: all}); byRow {
				b.why = reason{row: b.row}
			}
			b.level = max(0, b.level-int(int64(at-b.since)/int64(cfg.Forgive)))
			b.trip(cfg, at, d)
			return true
		}
		return false
	case halfOpen:
		b.trials = max(0, b.trials-1)
		switch o {
		case engine.OutcomeFailure:
			b.trip(cfg, at, d)
		case engine.OutcomeSuccess:
			if b.passed++; b.passed >= cfg.Successes {
				b.phase, b.since, b.row, b.recent = closed, at, 0, window{}
				b.epoch++
			}
		}
		return true
	}
	return false
}

func (b *breaker) trip(cfg *Circuit, at engine.Instant, d *dice) {
	wait := cfg.MaxOpen
	if cfg.Open < cfg.MaxOpen>>b.level {
		wait = cfg.Open << b.level
		b.level++ // only as far as it matters, so that it is forgiven from there
	}
	b.phase, b.until = open, at+engine.Instant(d.below(engine.Duration(wait), cfg.Jitter))
	b.opened++
	b.epoch++
}

// spans is how many parts a window slides in.
const spans = 10

// window counts the queries of the last while.
type window struct {
	head        int64 // number of the present span since the clock's beginning
	all, failed [spans]uint32
}

func (w *window) add(cfg *Circuit, at engine.Instant, failed bool) {
	span := max(int64(at)/(int64(cfg.Window)/spans), w.head)
	if span-w.head >= spans {
		*w = window{head: span}
	}
	for w.head < span {
		w.head++
		w.all[w.head%spans], w.failed[w.head%spans] = 0, 0
	}
	w.all[span%spans]++
	if failed {
		w.failed[span%spans]++
	}
}

func (w *window) sum() (all, failed int) {
	for i := range spans {
		all += int(w.all[i])
		failed += int(w.failed[i])
	}
	return all, failed
}
