package probe

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// MaxPool bounds a pool: a set of handles fits in one word.
const MaxPool = 64

// Pool is the bounded probe pool. Entries live under fixed handles and never move; each has a
// key in a column that a decision scans, so that a decision is one short branch-free pass.
// Charging and reading are the caller's one step; nothing here is safe for concurrent use.
type Pool struct {
	self    *Pool // a guest keeps a pointer it loaded in a register, but loads an argument at each use
	set     *engine.Set
	rank    Rank
	max     int // storage
	minimum int

	// State, in the block.
	head *[poolHead]uint64
	recs []uint64 // recWords for each handle

	// Derived from the state, the set and the threshold.
	key        column  // by handle: rank | handle
	age        column  // by handle: (seqEnd - sequence) << 6 | handle: the oldest has the most
	plain      bool    // every entry is eligible and knows its latency, and the pool is one chunk
	speed      column  // by handle: latency as far as keys tell it apart
	where      []uint8 // by slot: handle + 1 of its entry, or 0
	free       uint64  // handles not in use
	cold       int     // entries at or below the threshold
	alike      bool    // two keys may tie
	unknown    int     // entries without a latency
	ineligible int     // entries whose replica may not receive queries
	oldest     engine.Instant
	threshold  uint32
}

const (
	poolLimit = iota
	poolSeq
	poolHead
)

// The words of a record. A record without uses is no entry.
const (
	recSlot  = iota // slot, and uses above it
	recAt           // receipt
	recAsked        // probe sent
	recRIF          // RIF as ranked, and as reported above it
	recLat          // latency as ranked
	recRaw          // latency as reported
	recSeq          // order of admission
	recSpare
	recWords
)

const (
	blank      = ^uint64(0)
	unknownLat = uint64(engine.MaxLatency) + 1
	seqEnd     = 1<<57 - 1
)

// Init makes a pool with room for max entries, at most MaxPool, of which Serve wants a minimum.
// Bind it before use, and do not copy it.
func (p *Pool) Init(max, minimum int, rank Rank) {
	*p = Pool{self: p, max: max, minimum: minimum, rank: rank}
}

// Words is the size of the pool's state.
func (p *Pool) Words() int { return poolHead + p.max*recWords }

// Bind attaches the pool to its state words.
func (p *Pool) Bind(words []uint64, s *engine.Set, fresh bool) {
	p.set = s
	p.head = (*[poolHead]uint64)(words)
	p.recs = words[poolHead:p.Words()]
	if fresh {
		p.head[poolLimit] = uint64(p.max)
		p.threshold = engine.NoThreshold
	}
	p.derive()
}

// derive rebuilds every column that is not state. It reads corrupt state without harm.
func (p *Pool) derive() {
	p.free = blank >> (MaxPool - p.max)
	p.key.init(p.max)
	p.age.init(p.max)
	p.speed.init(p.max)
	p.unknown, p.oldest = 0, 0
	first := blank
	for h := range uint32(p.max) {
		r := p.rec(h)
		if r[recSlot]>>32 == 0 {
			continue
		}
		p.free &^= 1 << h
		p.age.w[h], p.speed.w[h] = (seqEnd-r[recSeq])<<6|uint64(h), min(r[recLat], ToldLatency)
		if r[recLat] == unknownLat {
			p.unknown++
		}
		if r[recSeq] < first {
			first, p.oldest = r[recSeq], engine.Instant(r[recAt])
		}
	}
	p.rerank()
	p.compare()
	p.Changed()
}

func (p *Pool) assess() { p.plain = p.unknown|p.ineligible == 0 && p.max <= chunk }

// compare finds out whether keys may tie: two entries have a latency in common, or two
// latencies or a RIF lie beyond what keys tell apart.
func (p *Pool) compare() {
	p.alike = false
	for used := p.used(); used != 0 && !p.alike; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		p.alike = p.speed.count(p.speed.w[h]) > 1 || uint32(p.rec(h)[recRIF]) >= ToldRIF
	}
}

// Changed follows a change of the set or of its statuses.
func (p *Pool) Changed() {
	p.ineligible = 0
	if n := p.set.Len(); cap(p.where) < n {
		p.where = make([]uint8, n)
	} else {
		p.where = p.where[:n]
		clear(p.where)
	}
	for used := p.used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		if slot := uint32(p.rec(h)[recSlot]); int(slot) < len(p.where) {
			p.where[slot] = uint8(h + 1)
			if !p.set.IsEligible(slot) {
				p.ineligible++
			}
		}
	}
	p.assess()
}

func (p *Pool) rec(h uint32) *[recWords]uint64 {
	i := int(h) * recWords
	return (*[recWords]uint64)(p.recs[i : i+recWords])
}

// used is the set of handles with an entry.
func (p *Pool) used() uint64 { return blank >> (MaxPool - p.max) &^ p.free }

// Len is the number of entries, each of another replica.
func (p *Pool) Len() int { return p.max - bits.OnesCount64(p.free) }

// Limit is the number of entries held at most.
func (p *Pool) Limit() int { return int(p.head[poolLimit]) }

// SetLimit changes the bound, within the storage, and evicts the oldest beyond it.
func (p *Pool) SetLimit(limit int) (evicted int) {
	p.head[poolLimit] = uint64(limit)
	for p.Len() > limit {
		p.RemoveOldest()
		evicted++
	}
	return evicted
}

// SetThreshold puts the RIF above which an entry is hot in force.
func (p *Pool) SetThreshold(t uint32) {
	if t != p.threshold {
		p.threshold = t
		p.rerank()
	}
}

func (p *Pool) rerank() {
	p.cold = 0
	for used := p.used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		r := p.rec(h)
		rif := uint32(r[recRIF])
		p.key.w[h] = p.rank(rif, r[recLat], p.threshold) | uint64(h)
		if rif <= p.threshold {
			p.cold++
		}
	}
}

// Incoming is a reading on its way into the pool.
type Incoming struct {
	Slot       uint32
	Uses       uint32 // at least 1
	RIF        uint32 // as ranked
	RawRIF     uint32
	Latency    engine.Duration // as ranked, or engine.UnknownLatency
	RawLatency engine.Duration
	Asked      engine.Instant
}

// Record takes a reading received now. The newest reading of a replica replaces its older
// entry, by the instant it was asked; a full pool evicts its oldest entry, unless the
// reading was asked before everything held.
func (p *Pool) Record(now engine.Instant, in *Incoming) engine.Admission {
	p = p.self
	result := engine.Admitted
	if at := p.where[in.Slot]; at != 0 {
		h := uint32(at - 1)
		if in.Asked < engine.Instant(p.rec(h)[recAsked]) {
			return engine.DroppedStale
		}
		p.remove(h)
		result = engine.Replaced
	} else if p.Len() >= p.Limit() {
		h := p.firstIn()
		if in.Asked < engine.Instant(p.rec(h)[recAsked]) && in.Asked < p.earliestAsked() {
			return engine.DroppedStale
		}
		p.remove(h)
		result = engine.EvictedOldest
	}
	p = p.self
	h := uint32(bits.TrailingZeros64(p.free))
	seq := p.head[poolSeq]
	rif := min(in.RIF, engine.NoThreshold-1)
	lat := latencyWord(in.Latency)
	r := p.rec(h)
	r[recSlot] = uint64(in.Slot) | uint64(in.Uses)<<32
	r[recAt], r[recAsked] = uint64(now), uint64(in.Asked)
	r[recRIF] = uint64(rif) | uint64(in.RawRIF)<<32
	r[recLat], r[recRaw] = lat, latencyWord(in.RawLatency)
	r[recSeq] = seq
	p.head[poolSeq] = seq + 1
	p.where[in.Slot] = uint8(h + 1)
	p.free &^= 1 << h
	told := min(lat, ToldLatency)
	if !p.alike {
		p.alike = rif >= ToldRIF || p.speed.count(told) != 0
	}
	p.key.w[h] = p.rank(rif, lat, p.threshold) | uint64(h)
	p.age.w[h], p.speed.w[h] = (seqEnd-seq)<<6|uint64(h), told
	if p.Len() == 1 {
		p.oldest = now
	}
	if rif <= p.threshold {
		p.cold++
	}
	if lat == unknownLat {
		p.unknown++
	}
	if !p.set.IsEligible(in.Slot) {
		p.ineligible++
	}
	p.assess()
	return result
}

func latencyWord(d engine.Duration) uint64 {
	if d < 0 {
		return unknownLat
	}
	return uint64(min(d, engine.MaxLatency))
}

func latencyOf(w uint64) engine.Duration {
	if w == unknownLat {
		return engine.UnknownLatency
	}
	return engine.Duration(w)
}

// earliestAsked is called when a late answer meets a full pool.
//
//go:noinline
func (p *Pool) earliestAsked() engine.Instant {
	first := engine.Instant(1<<63 - 1)
	for used := p.used(); used != 0; used &= used - 1 {
		first = min(first, engine.Instant(p.rec(uint32(bits.TrailingZeros64(used)))[recAsked]))
	}
	return first
}

// remove takes an entry out.
func (p *Pool) remove(h uint32) {
	h &= MaxPool - 1
	r := p.rec(h)
	slot, rif, told := uint32(r[recSlot]), uint32(r[recRIF]), p.speed.w[h]
	if r[recLat] == unknownLat {
		p.unknown--
	}
	if p.ineligible > 0 && !p.set.IsEligible(slot) {
		p.ineligible--
	}
	if rif <= p.threshold {
		p.cold--
	}
	p.free |= 1 << h
	p.key.w[h], p.age.w[h], p.speed.w[h], p.where[slot] = blank, blank, blank, 0
	r[recSlot] = 0
	p.assess()
	if p.alike && (told == ToldLatency || rif >= ToldRIF || p.speed.count(told) > 0) {
		p.compare()
	}
}

// RemoveOldest takes out the entry received first; there is at least one.
func (p *Pool) RemoveOldest() { p.remove(p.firstIn()) }

// RemoveWorst takes out the entry that would decide last; there is at least one.
func (p *Pool) RemoveWorst() { p.remove(p.worst()) }

// Drop takes out a replica's entry, unless it was asked later than the given instant.
func (p *Pool) Drop(slot uint32, asked engine.Instant) bool {
	at := p.where[slot]
	if at == 0 || engine.Instant(p.rec(uint32(at - 1))[recAsked]) > asked {
		return false
	}
	p.remove(uint32(at - 1))
	return true
}

// Moved follows a change of the candidate set; entries of replicas that left go with them.
func (p *Pool) Moved(remap []int32) (left int) {
	for used := p.used(); used != 0; used &= used - 1 {
		r := p.rec(uint32(bits.TrailingZeros64(used)))
		if to := remap[uint32(r[recSlot])]; to >= 0 {
			r[recSlot] = r[recSlot]&^(1<<32-1) | uint64(to)
		} else {
			clear(r[:])
			left++
		}
	}
	p.derive()
	return left
}
