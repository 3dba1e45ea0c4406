package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Bounds of [RingHash].
const (
	DefaultRingPoints = 128     // per unit of weight
	MaxRingScale      = 4096    // per unit of weight
	MaxRingPoints     = 1 << 20 // in all: 8 MB of points and 4 MB of index
)

// RingHash decides by consistent hashing: every eligible candidate owns points on a ring, in
// proportion to its weight, and a key belongs to the owner of the first point at or after it.
// A change of one candidate moves only the keys that it gains or loses.
//
// Cost O(1) expected, whatever the fleet; a change costs one pass over the points. There are
// no ties: points at one position are in order of identity. A retry goes on to the next point
// of a candidate not tried. A query without a key is placed by a drawn one. It refuses fleets
// of more than MaxRingPoints points with [engine.ErrCapacity].
type RingHash struct {
	engine.Base
	seed  uint64
	scale uint32
	ring  ring
}

// NewRingHash makes the policy; points, per unit of weight, is 1 to MaxRingScale, else an
// [engine.ConfigError]. The seed is for queries without a key and does not move the ring, so
// that clients with seeds of their own agree on owners.
func NewRingHash(seed uint64, points int) (*RingHash, error) {
	v := bounds{policy: "ring_hash"}
	v.whole("points", points, 1, MaxRingScale)
	if err := v.err(); err != nil {
		return nil, err
	}
	return &RingHash{seed: seed, scale: uint32(points), ring: ring{emit: ringPositions}}, nil
}

// Name is "ring_hash".
func (*RingHash) Name() string { return "ring_hash" }

// Seed starts the draws of queries without a key.
func (p *RingHash) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *RingHash) Spec() string {
	l := newLine("ring_hash").seed(p.seed)
	l.whole("points", int(p.scale), DefaultRingPoints)
	return l.String()
}

// Admit refuses a fleet of more than MaxRingPoints points. Those of candidates that are not
// eligible count: a change of status must never be refused.
func (p *RingHash) Admit(cs []engine.Candidate) error {
	weight := totalWeight(cs)
	over, n := bits.Mul64(weight, uint64(p.scale))
	if over == 0 && n <= MaxRingPoints {
		return nil
	}
	detail := "a total weight of " + utoa(weight) + " at " + itoa(int(p.scale)) + " points each makes "
	if over == 0 {
		detail += utoa(n) + " points"
	} else {
		detail += "more than 2^64 points"
	}
	detail += ", at most " + itoa(MaxRingPoints)
	if fit := MaxRingPoints / weight; fit > 0 {
		detail += "; points=" + utoa(fit) + " would fit"
	} else {
		detail += "; smaller weights in the same proportion would fit"
	}
	return &engine.DetailError{Err: engine.ErrCapacity, Detail: detail}
}

// Changed brings the ring up to date with the eligible candidates.
func (p *RingHash) Changed() { p.ring.update(p.Set, p.scale) }

// Decide takes the owner of the first point at or after the key.
func (p *RingHash) Decide(_ engine.Instant, key engine.Key) error {
	s := p.Set
	if key == 0 {
		key = drawnKey(s)
	}
	i := p.ring.find(ringKey(key))
	slot := uint32(p.ring.points[i] & ringSlotMask)
	if s.AnyTried() {
		slot = p.walk(i)
	}
	s.Choose(slot, engine.RegimeDirect)
	return nil
}

// drawnKey places a query that has no key, so that such queries spread.
func drawnKey(s *engine.Set) engine.Key { return engine.Key(s.Draw64(1<<63) + 1) }

// walk is the first open owner from a point on. One is open, and every eligible candidate has
// a point.
func (p *RingHash) walk(i uint32) uint32 {
	for {
		slot := uint32(p.ring.points[i] & ringSlotMask)
		if p.Set.IsOpen(slot) {
			return slot
		}
		if i++; int(i) >= p.ring.len() {
			i = 0
		}
	}
}

// Explain shows how far round the ring each candidate's next point is.
func (p *RingHash) Explain(_ engine.Instant, key engine.Key, x *engine.Explanation) {
	s, r := p.Set, &p.ring
	if key == 0 {
		key = drawnKey(s)
		x.Notes = append(x.Notes, "the query has no key; one was drawn")
	}
	x.Unit, x.TieBreak = "of the ring to its next point, in 2^-44", "and it has the lower identity"
	position := ringKey(key)
	from, n := int(r.find(position)), r.len()
	slot := p.walk(uint32(from))
	x.Because = "owns the first point at or after the key"
	if s.AnyTried() {
		x.Because += " among candidates not tried"
	}
	weighed := make([]bool, s.Len())
	arc := uint64(0)
	for k := range n {
		at := r.points[(from+k)%n]
		o := uint32(at & ringSlotMask)
		if !weighed[o] && s.IsOpen(o) {
			weighed[o] = true
			x.Weigh(s, o, ringArc(position, at))
		}
		if o == slot {
			arc += ringArc(r.points[(from+k+n-1)%n], at)
		}
	}
	if n > 0 && len(r.owners) > 1 {
		x.Notes = append(x.Notes, "owns "+decimal(arc*probe.Unit>>(64-ringSlotBits))+" of the ring; "+decimal(p.fair(slot))+" by weight")
	}
}

// ringArc is the way round from one position to another.
func ringArc(from, to uint64) uint64 {
	return (to>>ringSlotBits - from>>ringSlotBits) & (1<<(64-ringSlotBits) - 1)
}

// fair is a candidate's part of the eligible weight, in parts per 10,000.
func (p *RingHash) fair(slot uint32) uint64 {
	return uint64(p.Set.Weight(slot)) * uint64(p.scale) * probe.Unit / uint64(p.ring.len())
}
