package policy

import (
	"cmp"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// YARPPowerOfTwo asks every replica for its RIF once per poll interval, draws two distinct open
// candidates for a query, and decides for the one that last reported the lower RIF: the rule
// that the Prequal paper compares itself with under YARP's name (NSDI 2024, section 5.2).
//
// A replica that has not reported since it joined or turned ready is not guessed at: a pair
// with such a one decides by the queries that this client has in flight on each. It is due to
// be polled at once, before the others.
//
// Cost O(1) for a decision, O(log n) for asking who is due. Ties go to the one drawn first,
// which is uniform. It fails only as the engine does, when no candidate is open.
type YARPPowerOfTwo struct {
	engine.Base
	seed uint64
	poll engine.Duration

	h       *[yarpHead]uint64
	turns   []yarpTurn // in order; intervals begin at the machine's first instant
	pending int        // eligible replicas not polled yet
	from    uint32     // no slot below it is one of them
}

// The fixed words.
const (
	yarpStarted = iota // 1 once somebody was due
	yarpUntil          // everyone due by this instant has been named
	yarpAdmitted
	yarpReplaced
	yarpStale
	yarpForgotten
	yarpProbesDue
	yarpHead
)

// The words of a slot.
const (
	yarpSaid     = iota // RIF, and the flags
	yarpAsked           // when the poll was sent
	yarpReceived        // when it was answered
	yarpWords
)

const (
	yarpKnown  = 1 << 32 // it has reported
	yarpPolled = 1 << 33 // it has been due
)

// NewYARPPowerOfTwo makes the policy; poll is 1ms to 1h, else an [engine.ConfigError].
func NewYARPPowerOfTwo(seed uint64, poll engine.Duration) (*YARPPowerOfTwo, error) {
	v := bounds{policy: "yarp_power_of_two"}
	v.span("poll", poll, engine.Millisecond, mostAge)
	if err := v.err(); err != nil {
		return nil, err
	}
	return &YARPPowerOfTwo{seed: seed, poll: poll}, nil
}

// Name is "yarp_power_of_two".
func (*YARPPowerOfTwo) Name() string { return "yarp_power_of_two" }

// Seed starts its draws and places its polls.
func (p *YARPPowerOfTwo) Seed() uint64 { return p.seed }

const defaultPoll = engine.Second / 2

// Spec is the canonical line.
func (p *YARPPowerOfTwo) Spec() string {
	l := newLine("yarp_power_of_two").seed(p.seed)
	l.span("poll", p.poll, defaultPoll)
	return l.String()
}

// Layout asks for a report per replica.
func (*YARPPowerOfTwo) Layout() engine.Layout {
	return engine.Layout{Fixed: yarpHead, PerSlot: yarpWords}
}

// Bind attaches the words.
func (p *YARPPowerOfTwo) Bind(fixed []uint64, s *engine.Set, _ bool) {
	p.Set, p.h = s, (*[yarpHead]uint64)(fixed)
	p.await()
}

// Moved places each replica's poll within the interval: by its identity, so that changes of the
// set do not move it, and by the machine, so that clients do not ask in unison. No two share
// an instant.
func (p *YARPPowerOfTwo) Moved([]int32) {
	n := p.Set.Len()
	room := max(1, uint64(p.poll)-min(uint64(n), uint64(p.poll)))
	p.turns = slices.Grow(p.turns[:0], n)[:n]
	for i := range p.turns {
		p.turns[i] = yarpTurn{p.Set.Tie(uint32(i)) % room, p.Set.ID(uint32(i)), uint32(i)}
	}
	slices.SortFunc(p.turns, func(a, b yarpTurn) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.id, b.id)
	})
	for i := 1; i < n; i++ {
		p.turns[i].at = max(p.turns[i].at, p.turns[i-1].at+1)
	}
}

type yarpTurn struct {
	at   uint64 // since the beginning of an interval
	id   engine.ID
	slot uint32
}

// Changed forgets what those said that may not serve now: it will be old when they may again.
func (p *YARPPowerOfTwo) Changed() {
	for slot := range uint32(p.Set.Len()) {
		if !p.Set.IsEligible(slot) {
			clear(p.Set.Words(slot))
		}
	}
	p.await()
}

// await counts those to be polled at once.
func (p *YARPPowerOfTwo) await() {
	p.pending, p.from = 0, 0
	for _, slot := range p.Set.EligibleSlots() {
		if p.Set.Words(slot)[yarpSaid]&yarpPolled == 0 {
			p.pending++
		}
	}
}

// Decide compares what two draws last reported. The decision says how many reports were
// compared, and the RIF and the age of the one that decided.
func (p *YARPPowerOfTwo) Decide(now engine.Instant, _ engine.Key) error {
	s := p.Set
	a, b := drawTwo(s)
	x, y, d := s.Words(a), s.Words(b), &s.Out
	if x[yarpSaid]&y[yarpSaid]&yarpKnown == 0 {
		if s.InFlight(b) < s.InFlight(a) {
			a = b
		}
		d.Index, d.Offered, d.Cold, d.RIF, d.Age = a, 0, 0, 0, 0
		return nil
	}
	d.Offered, d.Cold = 2, 2 // without a threshold every report is cold
	if a == b {
		d.Offered, d.Cold = 1, 1
	}
	if uint32(y[yarpSaid]) < uint32(x[yarpSaid]) {
		a, x = b, y
	}
	d.Index, d.RIF, d.Age = a, uint32(x[yarpSaid]), engine.Duration(now)-engine.Duration(x[yarpReceived])
	return nil
}

// Record takes a report, unless one that was asked later is held.
func (p *YARPPowerOfTwo) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	w := p.Set.Words(slot)
	known := w[yarpSaid]&yarpKnown != 0
	if !p.Set.IsEligible(slot) || known && rd.Asked < engine.Instant(w[yarpAsked]) {
		p.h[yarpStale]++
		return engine.DroppedStale
	}
	w[yarpSaid] = w[yarpSaid]&yarpPolled | yarpKnown | uint64(rd.RIF)
	w[yarpAsked], w[yarpReceived] = uint64(rd.Asked), uint64(now)
	if known {
		p.h[yarpReplaced]++
		return engine.Replaced
	}
	p.h[yarpAdmitted]++
	return engine.Admitted
}

// Forget takes a report back, unless it was asked later: a poll failed.
func (p *YARPPowerOfTwo) Forget(slot uint32, asked engine.Instant) {
	w := p.Set.Words(slot)
	if w[yarpSaid]&yarpKnown != 0 && engine.Instant(w[yarpAsked]) <= asked {
		w[yarpSaid] &= yarpPolled
		p.h[yarpForgotten]++
	}
}

// Probes names the replicas that are due, those never polled first, at most MaxProbes; what is
// over stays due. Each is due once per interval. Where the host asks too seldom for that, whole
// intervals are left out, so that everyone still has its turn.
func (p *YARPPowerOfTwo) Probes(now engine.Instant, dst []engine.ID) []engine.ID {
	h, had := p.h, len(dst)
	if h[yarpStarted] == 0 {
		h[yarpStarted], h[yarpUntil] = 1, uint64(now)
	}
	for ; p.pending > 0 && len(dst)-had < MaxProbes; p.from++ {
		if w := p.Set.Words(p.from); p.Set.IsEligible(p.from) && w[yarpSaid]&yarpPolled == 0 {
			w[yarpSaid] |= yarpPolled
			p.pending--
			dst = append(dst, p.Set.ID(p.from))
		}
	}
	if late := (uint64(now) - h[yarpUntil]) / uint64(p.poll); late > 1 {
		h[yarpUntil] += (late - 1) * uint64(p.poll)
	}
	if len(p.turns) > 0 && len(dst)-had < MaxProbes {
		dst = p.rotate(now, had, dst)
	}
	h[yarpProbesDue] += uint64(len(dst) - had)
	return dst
}

// rotate names those whose turn lies between yarpUntil and now, each once.
func (p *YARPPowerOfTwo) rotate(now engine.Instant, had int, dst []engine.ID) []engine.ID {
	poll := uint64(p.poll)
	phase := (p.h[yarpUntil] - uint64(p.Set.First())) % poll
	origin := p.h[yarpUntil] - phase // an interval begins
	i, _ := slices.BinarySearchFunc(p.turns, phase+1, func(t yarpTurn, at uint64) int { return cmp.Compare(t.at, at) })
	for range len(p.turns) {
		if i == len(p.turns) {
			i, origin = 0, origin+poll
		}
		at := origin + p.turns[i].at // it may lie beyond the last instant, and wraps: only spans compare
		if at-p.h[yarpUntil] > uint64(now)-p.h[yarpUntil] {
			break
		}
		if slot := p.turns[i].slot; p.Set.IsEligible(slot) && !slices.Contains(dst[had:], p.turns[i].id) {
			if len(dst)-had == MaxProbes {
				return dst
			}
			dst = append(dst, p.turns[i].id)
		}
		p.h[yarpUntil] = at
		i++
	}
	p.h[yarpUntil] = uint64(now)
	return dst
}

// Entries shows the reports, in slot order. Nothing uses them up.
func (p *YARPPowerOfTwo) Entries(_ engine.Instant, dst []engine.Entry) []engine.Entry {
	for slot := range uint32(p.Set.Len()) {
		w := p.Set.Words(slot)
		if rif := uint32(w[yarpSaid]); w[yarpSaid]&yarpKnown != 0 {
			dst = append(dst, engine.Entry{
				ID: p.Set.ID(slot), At: engine.Instant(w[yarpReceived]), Asked: engine.Instant(w[yarpAsked]),
				Latency: engine.UnknownLatency, RawLatency: engine.UnknownLatency,
				RIF: rif, RawRIF: rif, Uses: 1<<32 - 1, Eligible: p.Set.IsEligible(slot),
			})
		}
	}
	return dst
}

// Inspect shows the counters.
func (p *YARPPowerOfTwo) Inspect(c *engine.Counters, _ *engine.Fit) {
	h := p.h
	c.Admitted, c.Replaced, c.DroppedStale, c.Forgotten, c.ProbesDue = h[yarpAdmitted], h[yarpReplaced], h[yarpStale], h[yarpForgotten], h[yarpProbesDue]
	c.Readings = h[yarpAdmitted] + h[yarpReplaced] + h[yarpStale]
}

// Valid checks the restored words.
func (p *YARPPowerOfTwo) Valid() bool {
	last := p.Set.Last()
	for slot := range uint32(p.Set.Len()) {
		w := p.Set.Words(slot)
		if w[yarpSaid] >= yarpPolled<<1 || engine.Instant(w[yarpAsked]) > engine.Instant(w[yarpReceived]) ||
			w[yarpSaid]&yarpKnown != 0 && engine.Instant(w[yarpReceived]) > last || !p.Set.IsEligible(slot) && w[yarpSaid] != 0 {
			return false
		}
	}
	until := engine.Instant(p.h[yarpUntil])
	return p.h[yarpStarted] == 0 && until == 0 || p.h[yarpStarted] == 1 && until <= last && until >= p.Set.First()
}

// Explain shows the drawn ones and what is compared.
func (p *YARPPowerOfTwo) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	s := p.Set
	a, b := drawTwo(s)
	said := func(slot uint32) uint64 { return s.Words(slot)[yarpSaid] }
	load := func(slot uint32) uint64 { return uint64(uint32(said(slot))) }
	x.Unit, x.TieBreak = "requests in flight, as last reported", "and it was drawn first"
	if said(a)&said(b)&yarpKnown == 0 {
		x.Unit, load = unitInFlight, func(slot uint32) uint64 { return uint64(s.InFlight(slot)) }
	}
	x.Weigh(s, a, load(a))
	if a == b {
		x.Because = "is the only open candidate"
		return
	}
	x.Weigh(s, b, load(b))
	if load(b) < load(a) {
		a = b
	}
	x.Because = "has no more " + x.Unit + " (" + itoa(int(load(a))) + ") than the other one drawn"
	if x.Unit == unitInFlight {
		x.Notes = append(x.Notes, "one of the two has not reported since it joined or turned ready")
	} else {
		x.Notes = append(x.Notes, "it reported "+latencyText(engine.Duration(now)-engine.Duration(s.Words(a)[yarpReceived]))+" ago")
	}
}
