package probe

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
)

// MaxPool bounds a pool: a set of handles fits in one word.
const MaxPool = 64

// Pool is the bounded probe pool. Entries live under fixed handles and never move. In a pool of
// up to sixteen their order by rank and by age is two words, so that a decision looks at the
// entry that leaves and the one that decides and at no other; larger pools are scanned.
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
	order     packed  // by rank, the best first, unknown latencies as if the slowest
	ages      packed  // by admission, the oldest first
	key       keys    // by handle
	where     []uint8 // by slot: handle + 1 of its entry, or 0
	free      uint64  // handles not in use
	cold      int     // entries at or below the threshold
	unknown   int     // entries without a latency
	odd       int     // those, and entries whose replica is not eligible; one more if the pool is large
	oldest    engine.Instant
	threshold uint32
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

const unknownLat = uint64(engine.MaxLatency) + 1

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

// derive rebuilds all that is not state. It reads corrupt state without harm.
func (p *Pool) derive() {
	p.free = blank >> (MaxPool - p.max)
	for h := range uint32(p.max) {
		if p.rec(h)[recSlot]>>32 != 0 {
			p.free &^= 1 << h
		}
	}
	p.ages, p.oldest = 0, 0
	first := blank
	for used := p.used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		r := p.rec(h)
		if r[recSeq] < first {
			first, p.oldest = r[recSeq], engine.Instant(r[recAt])
		}
		if p.packs() {
			p.ages = p.ages.put(p.elder(h)<<2, h)
		}
	}
	p.rerank()
	p.Changed()
}

// elder is how many entries of lower handles were admitted before one.
func (p *Pool) elder(h uint32) (n uint) {
	for used := p.used() & (1<<h - 1); used != 0; used &= used - 1 {
		if p.rec(uint32(bits.TrailingZeros64(used)))[recSeq] < p.rec(h)[recSeq] {
			n++
		}
	}
	return n
}

// packs reports whether orders fit into words.
func (p *Pool) packs() bool { return p.max <= packedRoom }

// Changed follows a change of the set or of its statuses.
func (p *Pool) Changed() {
	p.unknown, p.odd = 0, 0
	if !p.packs() {
		p.odd = 1
	}
	if n := p.set.Len(); cap(p.where) < n {
		p.where = make([]uint8, n)
	} else {
		p.where = p.where[:n]
		clear(p.where)
	}
	for used := p.used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		r := p.rec(h)
		if r[recLat] == unknownLat {
			p.unknown++
			p.odd++
		}
		if slot := uint32(r[recSlot]); int(slot) < len(p.where) {
			p.where[slot] = uint8(h + 1)
			if !p.set.IsEligible(slot) {
				p.odd++
			}
		}
	}
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
	old := p.threshold
	if t == old {
		return
	}
	p.threshold = t
	low, high := min(old, t), max(old, t)
	for used := p.used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		if rif := uint32(p.rec(h)[recRIF]); low < rif && rif <= high {
			if rif <= t {
				p.cold++
			} else {
				p.cold--
			}
			p.move(h)
		}
	}
}

func (p *Pool) rerank() {
	p.cold, p.order = 0, 0
	for i := range p.key {
		p.key[i] = blank
	}
	n := 0
	for used := p.used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		r := p.rec(h)
		if uint32(r[recRIF]) <= p.threshold {
			p.cold++
		}
		if int(uint32(r[recSlot])) < p.set.Len() { // or the words are a stranger's, or of a set that has just changed
			p.place(h, n)
			n++
		}
	}
}

// place puts an entry into the order of n others.
func (p *Pool) place(h uint32, n int) {
	if !p.packs() {
		return
	}
	r := p.rec(h)
	k := p.rank(uint32(r[recRIF]), r[recLat], p.threshold)
	at := p.key.below(k)
	for at < n && p.key[p.order.at(at)] == k && p.precedes(p.order.at(at), h, unknownLat) {
		at++
	}
	p.key[h%packedRoom] = k
	p.order = p.order.put(uint(at)<<2, h)
}

// move follows a change of an entry's RIF or of its side of the threshold.
func (p *Pool) move(h uint32) {
	if p.packs() {
		p.order = p.order.cut(p.order.find(h))
		p.key[h%packedRoom] = blank
		p.place(h, p.Len()-1)
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
	n := p.Len()
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
	if rif <= p.threshold {
		p.cold++
	}
	if n == 0 {
		p.oldest = now
	}
	if lat == unknownLat {
		p.unknown++
		p.odd++
	}
	if !p.set.IsEligible(in.Slot) {
		p.odd++
	}
	if p.packs() {
		p.ages = p.ages.put(uint(n)<<2, h)
		p.place(h, n)
	}
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
	p = p.self
	h &= MaxPool - 1
	r := p.rec(h)
	if p.odd != 0 {
		p.oddLeaves(r)
	}
	if uint32(r[recRIF]) <= p.threshold {
		p.cold--
	}
	p.where[uint32(r[recSlot])] = 0
	p.free |= 1 << h
	r[recSlot] = 0
	if p.packs() {
		p.order, p.ages = p.order.cut(p.order.find(h)), p.ages.cut(p.ages.find(h))
		p.key[h%packedRoom] = blank
	}
}

func (p *Pool) oddLeaves(r *[recWords]uint64) {
	if r[recLat] == unknownLat {
		p.unknown--
		p.odd--
	}
	if !p.set.IsEligible(uint32(r[recSlot])) {
		p.odd--
	}
}

// Clear takes every entry out.
func (p *Pool) Clear() {
	for used := p.used(); used != 0; used &= used - 1 {
		p.remove(uint32(bits.TrailingZeros64(used)))
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
			r[recSlot] = r[recSlot]>>32<<32 | uint64(to)
		} else {
			clear(r[:])
			left++
		}
	}
	p.derive()
	return left
}
