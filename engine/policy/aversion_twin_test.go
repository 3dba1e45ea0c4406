package policy_test

import (
	"math/big"

	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
)

// aversionTwin is error aversion as the decision states it: it remembers every outcome there was,
// and works out averages from the first one on whenever it is asked.
type aversionTwin struct {
	past map[engine.ID][]twinOutcome
	all  []bool // failed, over all replicas
	late []bool // failed, over those that had failed lately
}

type twinOutcome struct {
	at     engine.Instant
	failed bool
}

// aversionFaults are the mistakes that a twin with aversion could make.
var aversionFaults = []fault{
	"aversion forgotten", "failures never fade", "failures fade by readings", "failures fade twice as fast", "shared faults count",
	"the same who fail are excused", "shared faults are never excused for long", "once is lately for ever", "the usual counts once", "the usual is the last few", "a RIF of none stays", "failures are all or nothing",
	"cancelled queries count", "unknown latency of the failing is usual",
}

const twinOne = 1 << 30

func newAversionTwin() aversionTwin { return aversionTwin{past: map[engine.ID][]twinOutcome{}} }

// learn hears of an outcome, and tells whether it was a failure.
func (w *twin) learn(id engine.ID, o engine.Outcome) (failed bool) {
	if !w.c.Aversion || o == engine.OutcomeCancelled && !w.is("cancelled queries count") {
		return false
	}
	failed = o != engine.OutcomeSuccess
	if w.failing(id) > twinOne/20 || w.is("once is lately for ever") && len(w.errs.past[id]) > 0 {
		w.errs.late = append(w.errs.late, failed)
	}
	w.errs.past[id] = append(w.errs.past[id], twinOutcome{w.now, failed})
	w.errs.all = append(w.errs.all, failed)
	return failed
}

// fade is what is left of an average after a while.
func (w *twin) fade(average int64, while engine.Duration) int64 {
	half := 5 * engine.Second
	if w.is("failures fade twice as fast") {
		half /= 2
	}
	if w.is("failures never fade") || w.is("failures fade by readings") {
		while = 0
	}
	if while > 40*half {
		return 0
	}
	left := new(big.Int).SetUint64(fixed.Decay(uint64(while) * (fixed.Octave / uint64(half))))
	return left.Mul(left, big.NewInt(average)).Rsh(left, 63).Int64()
}

// failing is a replica's error average, and excused what may fail at any.
func (w *twin) failing(id engine.ID) (average int64) {
	var last engine.Instant
	for _, o := range w.errs.past[id] {
		average = w.fade(average, engine.Duration(o.at-last))
		if o.failed {
			average += (twinOne - average) / 5
		} else {
			average -= average / 5
		}
		if w.is("failures are all or nothing") && o.failed {
			average = twinOne
		}
		last = o.at
	}
	return w.fade(average, engine.Duration(w.now-last))
}

func (w *twin) excused() int64 {
	memory := int64(256)
	if w.is("the usual is the last few") {
		memory = 8
	}
	usual, again := twinShare(w.errs.all, memory), twinShare(w.errs.late, 16)
	limit := (twinOne + usual) / 2
	if w.is("shared faults are never excused for long") {
		limit = usual
	}
	switch {
	case w.is("shared faults count"), again > limit && !w.is("the same who fail are excused"):
		return 0
	case w.is("the usual counts once"):
		return usual
	}
	return 2 * usual
}

func twinShare(outcomes []bool, memory int64) (share int64) {
	for _, failed := range outcomes {
		if failed {
			share += (twinOne - share) / memory
		} else {
			share -= share / memory
		}
	}
	return share
}

// weigh makes an entry that of a replica that fails.
func (w *twin) weigh(e *twinEntry) {
	excess := w.failing(e.id) - w.excused()
	if w.is("failures fade by readings") {
		for i, o := range w.errs.past[e.id] { // this one takes one percent
			if o.failed {
				w.errs.past[e.id][i].at++
				excess = excess * 99 / 100
			}
		}
	}
	if excess <= 0 || w.is("aversion forgotten") {
		return
	}
	factor := uint64(65536 + 100*excess*65536/twinOne)
	e.rif = uint32(min((uint64(e.rif)+1)*factor>>16-1, uint64(engine.NoThreshold-1)))
	if w.is("a RIF of none stays") && e.rawRIF == 0 {
		e.rif = 0
	}
	if e.lat != engine.UnknownLatency {
		e.lat = engine.Duration(uint64(e.lat) * factor >> 16)
	} else if factor >= 2*65536 && !w.is("unknown latency of the failing is usual") {
		e.lat = engine.MaxLatency
	}
}

// pause is how long nothing happens in a walk: mostly as long as entries last, seldom as long as
// failures are remembered.
func pause(t *rapid.T) engine.Instant {
	const often = 9
	i := rapid.IntRange(0, 6*often+6).Draw(t, "pause")
	if i < 6*often {
		return [often]engine.Instant{0, 0, 0, 1, 20, 150, 999, 1000, -50}[i%often]
	}
	return [...]engine.Instant{30, 200, 1000, 4000, 5000, 159_000, 161_000}[i-6*often] * engine.Instant(engine.Millisecond)
}

// times is how often an outcome comes in a walk: mostly once, seldom as often as it takes for it to
// be usual.
func times(t *rapid.T) int { return rapid.SampledFrom([]int{1, 1, 1, 1, 1, 3, 80}).Draw(t, "times") }
