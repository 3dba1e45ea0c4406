package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
	"github.com/headroom-lb/headroom/engine/probe"
)

// LeastRequest is Envoy's least request, by what this client has in flight.
//
// While all weights are equal it draws a few distinct open candidates and decides for the one
// with the fewest queries in flight. Otherwise it draws one candidate, in proportion to
//
//	weight / (in flight + 1)^bias
//
// With bias 0 that is a weighted rotation instead of a draw. A replica that joins or turns
// ready is ramped up for the time of slow_start: meanwhile its share counts
// max(min_weight_percent, (age/slow_start)^(1/aggression)) of that of the replica that has been
// there longest. No replica is ever without a share.
//
// Cost O(choices²) or expected O(1), whatever the fleet; a ramp makes up to
// 100/min_weight_percent attempts of one; a retry that keeps drawing tried replicas ends in a
// scan. Ties, with equal weights, go to the one drawn first. It fails only as the engine does,
// when no candidate is open.
type LeastRequest struct {
	engine.Base
	c    LeastRequestConfig
	even PowerOfTwo
	turn *uint64 // of the weighted rotation

	row       levels
	power     [powersKept]uint64 // (i+1)^-bias in parts of fixed.One
	shift     uint               // of loads, so that their bound fits a word
	weighted  bool               // weights differ
	sound     bool               // the bound words are a row
	first     engine.Instant     // since when the oldest one has been ready
	rampUntil engine.Instant     // from then on nobody is ramped
}

const (
	powersKept = 1024
	readyWord  = 1  // of a slot's words: since when it has been ready
	drawsUpTo  = 64 // attempts before a scan settles a draw without a ramp
	golden64   = 0x9e3779b97f4a7c15
)

// Name is "least_request".
func (*LeastRequest) Name() string { return "least_request" }

// Seed starts its draws.
func (p *LeastRequest) Seed() uint64 { return p.c.Seed }

// Spec is the canonical line.
func (p *LeastRequest) Spec() string { return p.c.spec() }

// Layout asks for the rotation's turn, and for each replica its place and when it turned ready.
func (*LeastRequest) Layout() engine.Layout { return engine.Layout{Fixed: 1, PerSlot: 2} }

// Bind attaches the words and lays out what follows from them.
func (p *LeastRequest) Bind(words []uint64, s *engine.Set, _ bool) {
	p.Set, p.even.Set, p.turn = s, s, &words[0]
	p.assess()
	p.sound = p.row.rebuild(s)
}

// Changed starts the ramps of those that joined or turned ready, and lays the row out.
func (p *LeastRequest) Changed() {
	s := p.Set
	for slot := range uint32(s.Len()) {
		w := s.Words(slot)
		switch {
		case !s.IsEligible(slot):
			w[levelWord], w[readyWord] = 0, 0
		case w[levelWord] == 0:
			w[readyWord] = uint64(s.Last())
		}
	}
	p.assess()
	p.row.build(s)
	p.sound = true
}

// assess derives what depends on weights, on queries in flight and on when replicas came.
func (p *LeastRequest) assess() {
	s := p.Set
	least, most := ^uint32(0), uint32(0)
	p.first = engine.Instant(1<<63 - 1)
	last := engine.Instant(-1 << 63)
	for _, slot := range s.EligibleSlots() {
		least, most = min(least, s.Weight(slot)), max(most, s.Weight(slot))
		since := p.since(slot)
		p.first, last = min(p.first, since), max(last, since)
	}
	p.weighted = least < most
	p.rampUntil = engine.Instant(-1 << 63)
	if last > p.first { // those that came together have equal shares at any age
		p.rampUntil = probe.Later(last, p.c.SlowStart)
	}
	p.shift = uint(max(0, bits.Len32(most)+32+bits.Len(uint(s.Eligible()))-63))
	p.row.load = slices.Grow(p.row.load[:0], s.Len())[:s.Len()]
	for _, slot := range s.EligibleSlots() {
		p.row.load[slot] = 1
		if p.follows() {
			p.row.load[slot] = p.load(slot, s.InFlight(slot))
		}
	}
}

// load is a replica's share before any ramp: at least 1, so that nobody starves.
func (p *LeastRequest) load(slot, inFlight uint32) uint64 {
	var power uint64
	if inFlight < powersKept {
		power = p.power[inFlight]
	} else {
		power = fixed.InversePower(uint64(inFlight)+1, p.c.Bias, probe.Unit)
	}
	return max(1, uint64(p.Set.Weight(slot))*(power>>31)>>p.shift)
}

// Decide compares a few or draws one.
func (p *LeastRequest) Decide(now engine.Instant, key engine.Key) error {
	if !p.follows() {
		return p.even.Decide(now, key)
	}
	slot := p.choose(now)
	p.row.change(p.Set, slot, p.load(slot, uint32(min(uint64(p.Set.InFlight(slot))+1, 1<<32-1))))
	p.Set.Choose(slot, engine.RegimeDirect)
	return nil
}

// follows reports whether shares matter, now or once a replica joins.
func (p *LeastRequest) follows() bool { return p.weighted || p.c.SlowStart > 0 }

func (p *LeastRequest) choose(now engine.Instant) uint32 {
	if !p.weighted && now >= p.rampUntil {
		return p.even.draw(nil)
	}
	for range p.attempts(now) {
		slot, stands := p.row.at(p.ticket())
		if stands && (now >= p.rampUntil || p.rampUp(now, slot)) && p.Set.IsOpen(slot) {
			return slot
		}
	}
	return p.scan(now)
}

// attempts bounds the draws. A ramp lets as few as min_weight_percent of them pass, so that there
// are more, up to what a scan would cost.
func (p *LeastRequest) attempts(now engine.Instant) int {
	if now >= p.rampUntil {
		return drawsUpTo
	}
	return max(drawsUpTo, min(drawsUpTo*100/int(p.c.MinWeightPercent), p.Set.Eligible()))
}

// rampUp lets a replica have as much of its share as it is due at its age.
func (p *LeastRequest) rampUp(now engine.Instant, slot uint32) bool {
	return p.Set.Draw64(p.ramp(now, p.first)) < p.ramp(now, p.since(slot))
}

func (p *LeastRequest) since(slot uint32) engine.Instant {
	return engine.Instant(p.Set.Words(slot)[readyWord])
}

// ticket is a draw, or for the rotation the next step of the golden ratio, which spreads every
// run of tickets evenly over the row.
func (p *LeastRequest) ticket() uint64 {
	if p.c.Bias != 0 {
		return p.Set.Draw64(p.row.bound)
	}
	if *p.turn == 0 {
		*p.turn = p.Set.Draw64(1<<64-1) + 1
	}
	*p.turn += golden64
	hi, _ := bits.Mul64(*p.turn, p.row.bound)
	return hi
}

// scan draws among the open candidates alone, one by one.
func (p *LeastRequest) scan(now engine.Instant) uint32 {
	total := uint64(0)
	for _, slot := range p.Set.EligibleSlots() {
		if p.Set.IsOpen(slot) {
			total += p.share(now, slot)
		}
	}
	at := p.Set.Draw64(total)
	for _, slot := range p.Set.EligibleSlots() {
		if !p.Set.IsOpen(slot) {
			continue
		}
		share := p.share(now, slot)
		if at < share {
			return slot
		}
		at -= share
	}
	return p.Set.OpenAt(0)
}

// share is a replica's load, ramped.
func (p *LeastRequest) share(now engine.Instant, slot uint32) uint64 {
	load := p.row.load[slot]
	if now >= p.rampUntil {
		return load
	}
	hi, lo := bits.Mul64(load, p.ramp(now, p.since(slot)))
	return max(1, hi<<1|lo>>63)
}

// ramp is what a share counts at an age, in parts of fixed.One.
func (p *LeastRequest) ramp(now, since engine.Instant) uint64 {
	age, window := uint64(now)-uint64(since), uint64(p.c.SlowStart)
	if age >= window {
		return fixed.One
	}
	least := fixed.One / 100 * p.c.MinWeightPercent
	if age == 0 {
		return least
	}
	return max(least, fixed.FractionPower(age, window, probe.Unit, p.c.Aggression))
}

// Observe takes a query that ended off its replica's share.
func (p *LeastRequest) Observe(_ engine.Instant, slot uint32, _ engine.Report) {
	if p.follows() && p.Set.IsEligible(slot) {
		p.row.change(p.Set, slot, p.load(slot, p.Set.InFlight(slot)))
	}
}

// Valid checks that the words are a row, and no replica ready before its time.
func (p *LeastRequest) Valid() bool {
	for slot := range uint32(p.Set.Len()) {
		w := p.Set.Words(slot)
		if p.Set.IsEligible(slot) {
			if engine.Instant(w[readyWord]) > p.Set.Last() {
				return false
			}
		} else if w[levelWord]|w[readyWord] != 0 { // no instant: zero may lie ahead of a clock
			return false
		}
	}
	return p.sound
}
