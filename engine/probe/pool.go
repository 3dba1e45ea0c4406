package probe

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// MaxPool bounds a pool: positions and handles fit in six bits.
const MaxPool = 64

// Rank maps an entry to its place in one order, less is better; keys stay below 1<<63 + 1.
// The low six bits must be zero: equal keys are told apart by the pool's own order, which is
// RIF, then latency, then the newer receipt, then [engine.Set.Tie].
type Rank func(rif uint32, latency uint64, threshold uint32) uint64

// Pool is the bounded probe pool. Entries live under fixed handles; the columns that a
// decision scans are kept in the pool's own order, so that a decision is one short pass.
// Charging and reading are the caller's one step; nothing here is safe for concurrent use.
type Pool struct {
	set  *engine.Set
	rank Rank
	max  int // storage

	// State, in the block.
	head  *[poolHead]uint64
	order []uint64 // RIF << 32 | handle, sorted
	recs  []uint64 // recWords for each handle

	// Derived from the state, the set and the threshold.
	key        []uint64 // rank of each position, padded with blank to a multiple of eight
	age        []uint64 // sequence << 6 of each position, padded likewise
	free       uint64   // handles not in use
	cold       int      // positions at or below the threshold
	unknown    int      // entries without a latency
	ineligible int      // entries whose replica may not receive queries
	oldest     engine.Instant
	threshold  uint32
}

const (
	poolLen = iota
	poolLimit
	poolSeq
	poolHead
)

// The words of a record.
const (
	recSlot  = iota // slot, and uses above it
	recAt           // receipt
	recAsked        // probe sent
	recLat          // latency as ranked
	recRaw          // latency as reported
	recRIF          // RIF as reported
	recSeq          // order of admission
	recSpare
	recWords
)

const (
	blank      = ^uint64(0)
	unknownLat = uint64(engine.MaxLatency) + 1
)

// NewPool makes a pool with room for max entries, at most MaxPool.
func NewPool(max int, rank Rank) *Pool {
	padded := (max + 7) &^ 7
	p := &Pool{max: max, rank: rank, key: make([]uint64, padded), age: make([]uint64, padded)}
	return p
}

// Words is the size of the pool's state.
func (p *Pool) Words() int { return poolHead + p.max + p.max*recWords }

// Bind attaches the pool to its state words.
func (p *Pool) Bind(words []uint64, s *engine.Set, fresh bool) {
	p.set = s
	p.head = (*[poolHead]uint64)(words)
	p.order = words[poolHead : poolHead+p.max]
	p.recs = words[poolHead+p.max : p.Words()]
	if fresh {
		p.head[poolLimit] = uint64(p.max)
		p.threshold = engine.NoThreshold
	}
	p.derive()
}

// derive rebuilds every column that is not state. It reads corrupt state without harm.
func (p *Pool) derive() {
	n := min(p.Len(), p.max)
	p.free = 1<<p.max - 1
	for i := range p.key {
		p.key[i], p.age[i] = blank, blank
	}
	p.unknown, p.oldest = 0, 0
	first := blank
	for i := range n {
		h := uint32(p.order[i]) & (MaxPool - 1)
		if int(h) >= p.max {
			continue
		}
		r := p.rec(h)
		p.free &^= 1 << h
		p.age[i] = r[recSeq] << 6
		if r[recLat] == unknownLat {
			p.unknown++
		}
		if r[recSeq] < first {
			first, p.oldest = r[recSeq], engine.Instant(r[recAt])
		}
	}
	p.rerank()
	p.Changed()
}

// Changed follows a change of eligibility.
func (p *Pool) Changed() {
	p.ineligible = 0
	for i := range min(p.Len(), p.max) {
		if slot := p.slotAt(i); int(slot) < p.set.Len() && !p.set.IsEligible(slot) {
			p.ineligible++
		}
	}
}

func (p *Pool) rec(h uint32) *[recWords]uint64 {
	return (*[recWords]uint64)(p.recs[h*recWords:])
}

func (p *Pool) at(pos int) *[recWords]uint64 { return p.rec(uint32(p.order[pos]) & (MaxPool - 1)) }

func (p *Pool) slotAt(pos int) uint32 { return uint32(p.at(pos)[recSlot]) }

// Len is the number of entries, each of another replica.
func (p *Pool) Len() int { return int(p.head[poolLen]) }

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
	for i := range min(p.Len(), p.max) {
		rif := uint32(p.order[i] >> 32)
		p.key[i] = p.rank(rif, p.at(i)[recLat], p.threshold)
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
	result := engine.Admitted
	if pos := p.Find(in.Slot); pos >= 0 {
		if in.Asked < engine.Instant(p.at(pos)[recAsked]) {
			return engine.DroppedStale
		}
		p.remove(pos)
		result = engine.Replaced
	} else if p.Len() >= p.Limit() {
		if in.Asked < p.earliestAsked() {
			return engine.DroppedStale
		}
		p.RemoveOldest()
		result = engine.EvictedOldest
	}
	h := uint32(bits.TrailingZeros64(p.free))
	r := p.rec(h)
	*r = [recWords]uint64{
		recSlot: uint64(in.Slot) | uint64(in.Uses)<<32, recAt: uint64(now), recAsked: uint64(in.Asked),
		recLat: latencyWord(in.Latency), recRaw: latencyWord(in.RawLatency), recRIF: uint64(in.RawRIF),
		recSeq: p.head[poolSeq],
	}
	p.head[poolSeq]++
	if p.Len() == 0 {
		p.oldest = now
	}
	if r[recLat] == unknownLat {
		p.unknown++
	}
	if !p.set.IsEligible(in.Slot) {
		p.ineligible++
	}
	p.insert(min(in.RIF, engine.NoThreshold-1), h)
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

func (p *Pool) earliestAsked() engine.Instant {
	first := engine.Instant(1<<63 - 1)
	for i := range p.Len() {
		first = min(first, engine.Instant(p.at(i)[recAsked]))
	}
	return first
}

// Find returns the position of a replica's entry, or -1.
func (p *Pool) Find(slot uint32) int {
	for i := range p.Len() {
		if p.slotAt(i) == slot {
			return i
		}
	}
	return -1
}

// insert places the record under a handle at its place in the order.
func (p *Pool) insert(rif uint32, h uint32) {
	n := p.Len()
	r := p.rec(h)
	pos, _ := slices.BinarySearch(p.order[:n], uint64(rif)<<32)
	for pos < n && uint32(p.order[pos]>>32) == rif && p.before(p.at(pos), r) {
		pos++
	}
	copy(p.order[pos+1:n+1], p.order[pos:n])
	copy(p.key[pos+1:n+1], p.key[pos:n])
	copy(p.age[pos+1:n+1], p.age[pos:n])
	p.order[pos] = uint64(rif)<<32 | uint64(h)
	p.key[pos] = p.rank(rif, r[recLat], p.threshold)
	p.age[pos] = r[recSeq] << 6
	p.head[poolLen]++
	p.free &^= 1 << h
	if rif <= p.threshold {
		p.cold++
	}
}

// before orders entries of equal RIF: latency, then the newer receipt, then the tie-break.
func (p *Pool) before(a, b *[recWords]uint64) bool {
	if a[recLat] != b[recLat] {
		return a[recLat] < b[recLat]
	}
	if a[recAt] != b[recAt] {
		return engine.Instant(a[recAt]) > engine.Instant(b[recAt])
	}
	return p.set.Tie(uint32(a[recSlot])) < p.set.Tie(uint32(b[recSlot]))
}

// unlink takes a position out of the columns; its record keeps its handle.
func (p *Pool) unlink(pos int) {
	n := p.Len() - 1
	if uint32(p.order[pos]>>32) <= p.threshold {
		p.cold--
	}
	copy(p.order[pos:n], p.order[pos+1:n+1])
	copy(p.key[pos:n], p.key[pos+1:n+1])
	copy(p.age[pos:n], p.age[pos+1:n+1])
	p.order[n], p.key[n], p.age[n] = 0, blank, blank
	p.head[poolLen] = uint64(n)
}

func (p *Pool) remove(pos int) {
	h := uint32(p.order[pos]) & (MaxPool - 1)
	r := p.rec(h)
	if r[recLat] == unknownLat {
		p.unknown--
	}
	if p.ineligible > 0 && !p.set.IsEligible(uint32(r[recSlot])) {
		p.ineligible--
	}
	p.unlink(pos)
	*r = [recWords]uint64{}
	p.free |= 1 << h
}

// RemoveOldest takes out the entry received first.
func (p *Pool) RemoveOldest() bool {
	if p.Len() == 0 {
		return false
	}
	p.remove(p.firstIn())
	return true
}

// Drop takes out a replica's entry.
func (p *Pool) Drop(slot uint32) bool {
	pos := p.Find(slot)
	if pos >= 0 {
		p.remove(pos)
	}
	return pos >= 0
}

// Expire takes out every entry of age maxAge or more.
func (p *Pool) Expire(now engine.Instant, maxAge engine.Duration) (expired int) {
	for p.Len() > 0 && uint64(now)-uint64(p.oldest) >= uint64(maxAge) {
		pos := p.firstIn()
		// oldest is a lower bound: removals for other reasons do not search for the next.
		p.oldest = engine.Instant(p.at(pos)[recAt])
		if uint64(now)-uint64(p.oldest) < uint64(maxAge) {
			break
		}
		p.remove(pos)
		expired++
	}
	return expired
}

// Charge takes one use of an entry, which leaves at zero, and returns what is left.
func (p *Pool) Charge(pos int) (left uint32) {
	r := p.at(pos)
	r[recSlot] -= 1 << 32
	left = uint32(r[recSlot] >> 32)
	if left == 0 {
		p.remove(pos)
	}
	return left
}

// Compensate adds one to an entry's RIF: its replica has just been sent a query.
func (p *Pool) Compensate(pos int) {
	o := p.order[pos]
	h, rif := uint32(o)&(MaxPool-1), uint32(o>>32)+1
	if rif == engine.NoThreshold {
		return
	}
	if n := p.Len(); pos+1 == n || uint32(p.order[pos+1]>>32) > rif {
		p.order[pos] = o + 1<<32
		p.key[pos] = p.rank(rif, p.rec(h)[recLat], p.threshold)
		if rif == p.threshold+1 {
			p.cold--
		}
		return
	}
	p.unlink(pos)
	p.insert(rif, h)
}

// Moved follows a change of the candidate set; entries of replicas that left go with them.
func (p *Pool) Moved(remap []int32) {
	p.ineligible = 0 // counted anew below; the old slots say nothing of the new set
	for pos := p.Len() - 1; pos >= 0; pos-- {
		r := p.at(pos)
		if to := remap[uint32(r[recSlot])]; to >= 0 {
			r[recSlot] = r[recSlot]&^(1<<32-1) | uint64(to)
		} else {
			p.remove(pos)
		}
	}
	p.Changed()
}
