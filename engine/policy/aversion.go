package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
	"github.com/headroom-lb/headroom/engine/probe"
)

// aversion keeps queries away from replicas that fail: the paper leaves its own rule unstated
// (section 4, sinkholing). Failures weigh apart from latency. Each client keeps, per replica, an
// average of its own queries' failures, towards which an outcome takes a fifth of the way and of
// which half fades in five seconds, so that a replica that nobody trusts comes back by itself. What
// it exceeds the usual by makes a reading's latency 1 + 100 times as much, and so its RIF with the
// next query in it, since a hundred times no RIF would be none. The usual is twice the share of
// failures among this client's last few hundred queries, so that a fault which all replicas share
// turns it away from none. It is nothing where those that failed lately mostly fail again: then it
// is they who fail, however many they are.
type aversion struct {
	off   bool
	set   *engine.Set
	words *[aversionHead]uint64
}

// The fixed words that aversion keeps: shares of failures, in parts of errorOne.
const (
	wUsual = iota // of this client's queries
	wAgain        // of those to replicas that had failed lately
	aversionHead
)

// The words of a slot that aversion keeps: the first of a policy that has it.
const (
	wErrors   = iota // error average, in parts of errorOne, when it last changed
	wErrorsAt        // when that was; zero with the average
	aversionSlot
)

const (
	errorOne    = 1 << 30 // every query failed
	errorWeight = 100
	errorHalf   = 5 * engine.Second
	usualMemory = 256 // queries
	againMemory = 16
	errorLately = errorOne / 20 // an average above it is of one who failed lately: for ten seconds, once
	oneTime     = 1 << 16       // a factor of one
)

// faded is a replica's error average now.
func faded(w []uint64, now engine.Instant) uint64 {
	age := uint64(now) - w[wErrorsAt]
	if age >= 32*uint64(errorHalf) { // nothing is left, and the exponent stays in its range
		return 0
	}
	return keep(w[wErrors], fixed.Decay(age*(fixed.Octave/uint64(errorHalf))))
}

// observe weighs an outcome, and reports whether it speaks against the replica.
func (a *aversion) observe(now engine.Instant, slot uint32, o engine.Outcome) (failed bool) {
	if a.off || o == engine.OutcomeCancelled {
		return false
	}
	w, h := a.set.Words(slot), a.words
	average := uint64(0)
	if w[wErrors] != 0 {
		average = faded(w, now)
	}
	failed = o != engine.OutcomeSuccess
	h[wUsual] = share(h[wUsual], usualMemory, failed)
	if average > errorLately {
		h[wAgain] = share(h[wAgain], againMemory, failed)
	}
	if failed || average != 0 {
		setErrors(w, now, share(average, 5, failed))
	}
	return failed
}

// share moves an average by a part of the way to all or to nothing.
func share(average, part uint64, up bool) uint64 {
	if up {
		return average + (errorOne-average)/part
	}
	return average - average/part
}

// setErrors is the average from now on; one of nothing leaves no trace.
func setErrors(w []uint64, now engine.Instant, average uint64) {
	w[wErrors], w[wErrorsAt] = average, 0
	if average != 0 {
		w[wErrorsAt] = uint64(now)
	}
}

// rank gives a reading on its way into a pool the RIF and the latency that it is ranked with.
func (a *aversion) rank(now engine.Instant, in *probe.Incoming, rd *engine.Reading) {
	in.RIF, in.RawRIF, in.Latency, in.RawLatency = rd.RIF, rd.RIF, rd.Latency, rd.Latency
	if w := a.set.Words(in.Slot); w[wErrors] != 0 {
		if excess := faded(w, now); excess > a.excused() {
			in.RIF, in.Latency = averse(excess-a.excused(), rd.RIF, rd.Latency)
		}
	}
}

// excused is how much may fail at any replica.
func (a *aversion) excused() uint64 {
	usual := a.words[wUsual]
	if a.words[wAgain] > (errorOne+usual)/2 {
		return 0
	}
	return 2 * usual
}

// averse is a reading as ranked for a replica that fails so much more than is usual.
func averse(excess uint64, rif uint32, latency engine.Duration) (uint32, engine.Duration) {
	factor := oneTime + errorWeight*excess*oneTime/errorOne
	r := min((uint64(rif)+1)*factor/oneTime-1, uint64(engine.NoThreshold-1))
	if latency == engine.UnknownLatency {
		// Unknown ranks as the median: too good for a replica known to fail.
		if factor >= 2*oneTime {
			latency = engine.MaxLatency
		}
		return uint32(r), latency
	}
	hi, lo := bits.Mul64(uint64(latency), factor)
	l := lo>>16 | hi<<48
	if hi>>16 != 0 || l > uint64(engine.MaxLatency) {
		l = uint64(engine.MaxLatency)
	}
	return uint32(r), engine.Duration(l)
}

// valid checks the restored words.
func (a *aversion) valid() bool {
	for slot := range uint32(a.set.Len()) {
		w := a.set.Words(slot)
		if at := engine.Instant(w[wErrorsAt]); w[wErrors] > errorOne || w[wErrors] == 0 && at != 0 ||
			w[wErrors] != 0 && (at < a.set.First() || at > a.set.Last()) {
			return false
		}
	}
	return max(a.words[wUsual], a.words[wAgain]) <= errorOne
}
