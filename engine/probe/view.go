package probe

import "github.com/headroom-lb/headroom/engine"

// Slot returns the candidate of the entry at a position.
func (p *Pool) Slot(pos int) uint32 { return p.slotAt(pos) }

// RIF returns the entry's RIF as ranked.
func (p *Pool) RIF(pos int) uint32 { return uint32(p.order[pos] >> 32) }

// Latency returns the entry's latency as ranked, or engine.UnknownLatency.
func (p *Pool) Latency(pos int) engine.Duration { return latencyOf(p.at(pos)[recLat]) }

// At returns the entry's receipt.
func (p *Pool) At(pos int) engine.Instant { return engine.Instant(p.at(pos)[recAt]) }

// Entries appends the entries younger than maxAge, in the pool's order, changing nothing.
func (p *Pool) Entries(now engine.Instant, maxAge engine.Duration, dst []engine.Entry) []engine.Entry {
	for i := range p.Len() {
		r := p.at(i)
		if uint64(now)-r[recAt] >= uint64(maxAge) {
			continue
		}
		slot, rif := uint32(r[recSlot]), p.RIF(i)
		dst = append(dst, engine.Entry{
			ID: p.set.ID(slot), At: engine.Instant(r[recAt]), Asked: engine.Instant(r[recAsked]),
			Latency: latencyOf(r[recLat]), RawLatency: latencyOf(r[recRaw]),
			RIF: rif, RawRIF: uint32(r[recRIF]), Uses: uint32(r[recSlot] >> 32),
			Eligible: p.set.IsEligible(slot), Hot: rif > p.threshold,
		})
	}
	return dst
}

// Valid reports whether the state words are a state this pool could have made.
func (p *Pool) Valid(now engine.Instant) bool {
	n, limit, seq := p.head[poolLen], p.head[poolLimit], p.head[poolSeq]
	if limit < 1 || limit > uint64(p.max) || n > limit || seq >= 1<<57 {
		return false
	}
	var handles uint64
	var slots [MaxPool]uint32
	for i := range int(n) {
		h := p.order[i] & (1<<32 - 1)
		if h >= uint64(p.max) || handles>>h&1 == 1 {
			return false
		}
		handles |= 1 << h
		r := p.at(i)
		slots[i] = uint32(r[recSlot])
		if int(slots[i]) >= p.set.Len() || r[recSlot]>>32 == 0 || r[recSeq] >= seq ||
			engine.Instant(r[recAt]) > now || engine.Instant(r[recAsked]) > engine.Instant(r[recAt]) ||
			r[recLat] > unknownLat || r[recRaw] > unknownLat || r[recRIF] > 1<<32-1 || p.RIF(i) == engine.NoThreshold {
			return false
		}
		for j := range i {
			if slots[j] == slots[i] || p.at(j)[recSeq] == r[recSeq] {
				return false
			}
		}
		if i > 0 && (p.RIF(i-1) > p.RIF(i) || p.RIF(i-1) == p.RIF(i) && p.before(r, p.at(i-1))) {
			return false
		}
	}
	return true
}
