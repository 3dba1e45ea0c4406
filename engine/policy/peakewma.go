package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
)

// PeakEWMA draws two distinct open candidates and decides for the one that costs less: its
// estimated latency times the queries that this client would then have in flight on it.
//
// The estimate is a peak-sensitive, exponentially weighted moving average of the latencies
// that this client sees. A latency at or above it takes its place at once; one below is
// averaged in, the older estimate keeping e^(-elapsed/tau); read, it has faded by as much, so
// that a replica shunned for its past is tried again. A failure counts as a latency of at
// least penalty and renews the estimate: it never lowers it. A replica that joins or turns
// ready starts at initial, or higher if it is known to be slow.
//
// Cost O(1), two words per replica. Ties go to the one drawn first, which is uniform. It fails
// only as the engine does, when no candidate is open.
type PeakEWMA struct {
	engine.Base
	c    PeakEWMAConfig
	rate uint64 // of fading, per nanosecond
	gone uint64 // nanoseconds after which nothing is left
}

// PeakEWMAConfig is everything that can be set of [PeakEWMA]. Start from [DefaultPeakEWMA]:
// every zero means zero.
type PeakEWMAConfig struct {
	Seed    uint64
	Tau     engine.Duration // time constant of averaging and fading: 1ms to 1h
	Initial engine.Duration // estimate before the first sample: 1us to 1h
	Penalty engine.Duration // least latency that a failure counts as: to 1h
}

// DefaultPeakEWMA is the usual setting, with Linkerd's latency for refused queries as penalty.
func DefaultPeakEWMA(seed uint64) PeakEWMAConfig {
	return PeakEWMAConfig{Seed: seed, Tau: 10 * engine.Second, Initial: engine.Second, Penalty: 5 * engine.Second}
}

// The words of a slot.
const (
	estimateWord = iota // in parts of a nanosecond, at least 1; and outBit
	sampledWord         // when
	peakWords
)

const (
	outBit     = 1 << 63 // the replica is not eligible
	partBits   = 16      // parts of a nanosecond: averaging must not lose what is below one
	mostSample = 1<<47 - 1
	mostCount  = 1<<17 - 1 // queries in flight beyond it cost no more
)

// NewPeakEWMA makes the policy, or says which setting is wrong.
func NewPeakEWMA(c PeakEWMAConfig) (*PeakEWMA, error) {
	v := bounds{policy: "peak_ewma"}
	v.span("tau", c.Tau, engine.Millisecond, mostAge)
	v.span("initial", c.Initial, engine.Microsecond, mostAge)
	v.span("penalty", c.Penalty, 0, mostAge)
	if err := v.err(); err != nil {
		return nil, err
	}
	return &PeakEWMA{c: c, rate: fixed.DecayRate(uint64(c.Tau)), gone: fixed.MostConstants * uint64(c.Tau)}, nil
}

func (s *settings) peakEWMA() PeakEWMAConfig {
	c := DefaultPeakEWMA(s.uint64("seed", 0))
	c.Tau = s.duration("tau", c.Tau)
	c.Initial = s.duration("initial", c.Initial)
	c.Penalty = s.duration("penalty", c.Penalty)
	return c
}

// Name is "peak_ewma".
func (*PeakEWMA) Name() string { return "peak_ewma" }

// Seed starts its draws.
func (p *PeakEWMA) Seed() uint64 { return p.c.Seed }

// Spec is the canonical line.
func (p *PeakEWMA) Spec() string {
	d := DefaultPeakEWMA(p.c.Seed)
	l := newLine("peak_ewma").seed(p.c.Seed)
	l.span("tau", p.c.Tau, d.Tau)
	l.span("initial", p.c.Initial, d.Initial)
	l.span("penalty", p.c.Penalty, d.Penalty)
	return l.String()
}

// Layout asks for an estimate per replica.
func (*PeakEWMA) Layout() engine.Layout { return engine.Layout{PerSlot: peakWords} }

// Changed starts the estimates of those that joined or turned ready.
func (p *PeakEWMA) Changed() {
	s, now := p.Set, p.Set.Last()
	initial := uint64(p.c.Initial) << partBits
	for slot := range uint32(s.Len()) {
		w := s.Words(slot)
		if w[estimateWord] == 0 {
			w[estimateWord], w[sampledWord] = initial, uint64(now)
		}
		out := w[estimateWord]&outBit != 0
		switch {
		case !s.IsEligible(slot):
			w[estimateWord] |= outBit
		case out:
			w[estimateWord] = max(p.faded(now, w), initial)
			w[sampledWord] = uint64(now)
		}
	}
}

// Decide compares the costs of two draws.
func (p *PeakEWMA) Decide(now engine.Instant, _ engine.Key) error {
	a, b := drawTwo(p.Set)
	if p.cost(now, b) < p.cost(now, a) {
		a = b
	}
	p.Set.Choose(a, engine.RegimeDirect)
	return nil
}

// cost is at least 1, so that queries in flight still count when an estimate has faded away.
func (p *PeakEWMA) cost(now engine.Instant, slot uint32) uint64 {
	estimate := max(1, p.faded(now, p.Set.Words(slot))>>partBits)
	return estimate * min(uint64(p.Set.InFlight(slot))+1, mostCount)
}

// faded is a slot's estimate as read now.
func (p *PeakEWMA) faded(now engine.Instant, w []uint64) uint64 {
	return keep(w[estimateWord]&^outBit, p.kept(uint64(now)-w[sampledWord]))
}

// kept is e^(-elapsed/tau) in parts of fixed.One.
func (p *PeakEWMA) kept(elapsed uint64) uint64 {
	if elapsed >= p.gone {
		return 0
	}
	return fixed.Decay(elapsed * p.rate)
}

// keep is a part of v.
func keep(v, part uint64) uint64 {
	hi, lo := bits.Mul64(v, part)
	return hi<<1 | lo>>63
}

// Observe takes a latency into the estimate. A cancelled query says nothing of the replica.
func (p *PeakEWMA) Observe(now engine.Instant, slot uint32, r engine.Report) {
	failed := r.Outcome == engine.OutcomeFailure || r.Outcome == engine.OutcomeOverloaded
	if r.Outcome == engine.OutcomeCancelled || r.Latency < 0 && !failed {
		return
	}
	w := p.Set.Words(slot)
	out, held := w[estimateWord]&outBit, w[estimateWord]&^outBit
	sample := uint64(min(r.Latency, mostSample)) << partBits
	if failed {
		sample = max(uint64(min(max(r.Latency, p.c.Penalty), mostSample))<<partBits, held)
	}
	if sample < held {
		sample += keep(held-sample, p.kept(uint64(now)-w[sampledWord]))
	}
	w[estimateWord], w[sampledWord] = max(sample, 1)|out, uint64(now)
}

// Valid checks the estimates.
func (p *PeakEWMA) Valid() bool {
	for slot := range uint32(p.Set.Len()) {
		w := p.Set.Words(slot)
		if w[estimateWord]&^outBit == 0 || w[estimateWord]&outBit == 0 != p.Set.IsEligible(slot) ||
			engine.Instant(w[sampledWord]) > p.Set.Last() {
			return false
		}
	}
	return true
}

// Explain shows the drawn ones and what they cost.
func (p *PeakEWMA) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit, x.TieBreak = "nanoseconds of estimated latency times queries in flight, the new one included", "and it was drawn first"
	a, b := drawTwo(p.Set)
	x.Weigh(p.Set, a, p.cost(now, a))
	if a == b {
		x.Because = "is the only open candidate"
		return
	}
	x.Weigh(p.Set, b, p.cost(now, b))
	if p.cost(now, b) < p.cost(now, a) {
		a = b
	}
	estimate := engine.Duration(p.faded(now, p.Set.Words(a)) >> partBits)
	x.Because = "costs no more than the other one drawn: " + latencyText(estimate) + " estimated, times " +
		itoa(int(p.Set.InFlight(a))+1) + " with this query in flight"
}
