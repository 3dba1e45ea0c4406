package probe

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// Entries appends the entries younger than maxAge, best first, changing nothing.
func (p *Pool) Entries(now engine.Instant, maxAge engine.Duration, dst []engine.Entry) []engine.Entry {
	return p.entries(p.used(), now, maxAge, dst)
}

// Offers appends the entries of open candidates younger than maxAge, in the order in which they
// would decide, changing nothing.
func (p *Pool) Offers(now engine.Instant, maxAge engine.Duration, dst []engine.Entry) []engine.Entry {
	return p.entries(p.open(), now, maxAge, dst)
}

func (p *Pool) entries(left uint64, now engine.Instant, maxAge engine.Duration, dst []engine.Entry) []engine.Entry {
	median := p.median(left)
	for left != 0 {
		h := p.settle(left, median, false)
		left &^= 1 << h
		r := p.rec(h)
		if now >= Later(engine.Instant(r[recAt]), maxAge) {
			continue
		}
		slot, rif := uint32(r[recSlot]), uint32(r[recRIF])
		dst = append(dst, engine.Entry{
			ID: p.set.ID(slot), At: engine.Instant(r[recAt]), Asked: engine.Instant(r[recAsked]),
			Latency: latencyOf(r[recLat]), RawLatency: latencyOf(r[recRaw]),
			RIF: rif, RawRIF: uint32(r[recRIF] >> 32), Uses: uint32(r[recSlot] >> 32),
			Eligible: p.set.IsEligible(slot), Hot: rif > p.threshold,
		})
	}
	return dst
}

// Valid reports whether the state words are a state this pool could have made.
func (p *Pool) Valid(now engine.Instant) bool {
	limit, seq := p.head[poolLimit], p.head[poolSeq]
	if limit < 1 || limit > uint64(p.max) || uint64(p.Len()) > limit || seq >= 1<<57 {
		return false
	}
	used := p.used()
	for h := range uint32(p.max) {
		r := p.rec(h)
		if used>>h&1 == 0 {
			if r[recSlot] != 0 { // the rest of it may be what an entry left behind
				return false
			}
			continue
		}
		if slot := uint32(r[recSlot]); int(slot) >= len(p.where) || p.where[slot] != uint8(h+1) {
			return false // no such candidate, or two entries of one
		}
		if r[recSeq] >= seq || engine.Instant(r[recAt]) > now || engine.Instant(r[recAsked]) > engine.Instant(r[recAt]) ||
			uint32(r[recRIF]) == engine.NoThreshold || r[recLat] > unknownLat || r[recRaw] > unknownLat || r[recSpare] != 0 {
			return false
		}
		for rest := used >> h >> 1 << h << 1; rest != 0; rest &= rest - 1 {
			if p.rec(uint32(bits.TrailingZeros64(rest)))[recSeq] == r[recSeq] {
				return false
			}
		}
	}
	return true
}
