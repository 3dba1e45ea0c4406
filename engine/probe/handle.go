package probe

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// A rule whose order is not that of the pool walks the entries by handle, as bits of a word.

// Used is the set of handles with an entry.
func (p *Pool) Used() uint64 { return p.used() }

// Open is the set of handles whose replica this query may go to.
func (p *Pool) Open() uint64 { return p.open() }

// Cold is how many of some entries are at or below the threshold.
func (p *Pool) Cold(among uint64) (n int) {
	for ; among != 0; among &= among - 1 {
		if uint32(p.rec(uint32(bits.TrailingZeros64(among)))[recRIF]) <= p.threshold {
			n++
		}
	}
	return n
}

// Mute reports whether an entry is there that says no latency.
func (p *Pool) Mute() bool { return p.unknown > 0 }

// Median is the lower median of the known latencies among some entries, or
// engine.UnknownLatency.
func (p *Pool) Median(among uint64) engine.Duration { return latencyOf(p.median(among)) }

// Slot is the candidate of an entry.
func (p *Pool) Slot(h uint32) uint32 { return uint32(p.rec(h & (MaxPool - 1))[recSlot]) }

// Handle is the entry of a candidate, if there is one.
func (p *Pool) Handle(slot uint32) (h uint32, held bool) {
	at := p.where[slot]
	return uint32(at - 1), at != 0
}

// Said is what an entry's reading said, as ranked, and its receipt.
func (p *Pool) Said(h uint32) (rif uint32, latency engine.Duration, at engine.Instant) {
	r := p.rec(h & (MaxPool - 1))
	return uint32(r[recRIF]), latencyOf(r[recLat]), engine.Instant(r[recAt])
}

// Remove takes an entry out.
func (p *Pool) Remove(h uint32) { p.remove(h) }
