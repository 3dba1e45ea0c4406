package engine

import (
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// MaxCandidates is the default bound on a candidate set.
const MaxCandidates = 1 << 16

// LayoutVersion names the form of the state block; another version does not restore.
const LayoutVersion = 3

// The block starts with these words; the policy's fixed words and the slots follow.
const (
	headMagic  = iota // magic and layout version
	headPolicy        // fingerprint of the policy and the salt
	headSet           // fingerprint of the candidates
	headCount         // candidates
	headNow           // last instant seen, or never
	headFirst         // first instant seen
	headRand          // generator
	headTie           // seed of tie-breaks
	headWords
)

// never is the last instant seen before the first call.
const never = Instant(-1 << 63)

const magic = 0x4d4f52_4441_4548<<8 | LayoutVersion // "HEADROM", little-endian

// Config bounds an engine and tells one machine of a group from the next.
type Config struct {
	MaxCandidates int    // zero means MaxCandidates
	Salt          uint64 // stirred into the policy's seed unless zero; shards differ by it
}

// Engine is the native machine.
type Engine struct {
	policy Policy
	set    *Set
	block  []uint64
	fixed  int
	spare  spare
	max    int
}

// spare is what a change of the set builds in, so that the old set stands until it is done; the
// two change places.
type spare struct {
	block []uint64
	cands []Candidate
	table []uint32
	remap []int32
}

// New makes an engine without candidates.
func New(p Policy, c Config) *Engine {
	e := &Engine{policy: p, set: &Set{Out: Decision{Threshold: NoThreshold}}, max: c.MaxCandidates}
	if e.max == 0 {
		e.max = MaxCandidates
	}
	lay := p.Layout()
	e.fixed = lay.Fixed
	e.set.stride = 1 + lay.PerSlot
	print := hash.Word(hash.Word(hash.String(p.Spec()), c.Salt), uint64(lay.Fixed)<<32|uint64(lay.PerSlot))
	seed := p.Seed()
	if c.Salt != 0 {
		seed = hash.Mix(seed ^ hash.Mix(c.Salt))
	}
	e.block = make([]uint64, headWords+e.fixed)
	e.attach(e.block)
	h := e.set.head
	h[headMagic], h[headPolicy], h[headSet] = magic, print, fingerprint(nil)
	h[headRand], h[headTie], h[headNow] = seed, hash.Mix(seed+1), 1<<63
	p.Bind(e.fixedWords(), e.set, true)
	p.Changed()
	return e
}

func (e *Engine) fixedWords() []uint64 {
	return e.block[headWords : headWords+e.fixed : headWords+e.fixed]
}

// hold takes a block, and attach the statuses in it too.
func (e *Engine) hold(block []uint64) {
	e.block = block
	e.set.head = (*[headWords]uint64)(block)
	e.set.slots = block[headWords+e.fixed:]
}

func (e *Engine) attach(block []uint64) {
	e.hold(block)
	e.set.refresh()
}

// advance takes the caller's instant and returns the one in force.
func (e *Engine) advance(now Instant) Instant {
	h := e.set.head
	last := Instant(h[headNow])
	if last == never {
		now = max(now, never+1)
		h[headFirst] = uint64(now)
	}
	now = max(now, last)
	h[headNow] = uint64(now)
	return now
}

// SetCandidates replaces the whole set. State of replicas that stay is kept, whatever their
// new positions. On an error the old set stands: ErrCapacity, ErrDuplicateID, ErrConfig.
func (e *Engine) SetCandidates(now Instant, cs []Candidate) error {
	if len(cs) > e.max {
		return &DetailError{ErrCapacity, strconv.Itoa(len(cs)) + " candidates, at most " + strconv.Itoa(e.max)}
	}
	dup := e.spare.index(cs)
	if dup >= 0 {
		return &DetailError{ErrDuplicateID, "candidate " + strconv.Itoa(dup)}
	}
	for i, c := range cs {
		if c.Status > StatusUnavailable {
			return &DetailError{ErrConfig, "candidate " + strconv.Itoa(i) + " has no valid status"}
		}
	}
	if err := e.policy.Admit(cs); err != nil {
		return err
	}
	e.advance(now)
	e.move(cs)
	return nil
}

func (e *Engine) move(cs []Candidate) {
	sp := &e.spare
	old, oldTable, oldBlock, oldSlots, stride := e.set.cands, e.set.table, e.block, e.set.slots, e.set.stride
	size := headWords + e.fixed + len(cs)*stride
	next := slices.Grow(sp.block[:0], size)[:size]
	clear(next[copy(next, e.block[:headWords+e.fixed]):])
	e.set.cands, e.set.table = append(sp.cands[:0], cs...), sp.table
	e.hold(next)
	sp.remap = slices.Grow(sp.remap[:0], len(old))[:len(old)]
	for i, to := 0, 0; i < len(old); {
		// The order mostly stays, so the next one is the likely place, and words move by runs.
		if to >= len(cs) || cs[to].ID != old[i].ID {
			there, ok := e.set.Slot(old[i].ID)
			if !ok {
				sp.remap[i] = -1
				i++
				continue
			}
			to = int(there)
		}
		first, into := i, e.set.slots[to*stride:]
		for ; i < len(old) && to < len(cs) && cs[to].ID == old[i].ID; i, to = i+1, to+1 {
			sp.remap[i] = int32(to)
		}
		copy(into, oldSlots[first*stride:i*stride])
	}
	for i := range cs {
		e.set.setStatus(i, cs[i].Status)
	}
	e.set.head[headSet], e.set.head[headCount] = fingerprint(cs), uint64(len(cs))
	e.set.refresh()
	sp.cands, sp.table, sp.block = old, oldTable, oldBlock
	e.policy.Bind(e.fixedWords(), e.set, false)
	e.policy.Moved(sp.remap)
	e.policy.Changed()
}

// SetStatus changes one candidate's status: ErrUnknownID, ErrConfig.
func (e *Engine) SetStatus(now Instant, id ID, st Status) error {
	slot, ok := e.set.Slot(id)
	if !ok {
		return ErrUnknownID
	}
	if st > StatusUnavailable {
		return &DetailError{ErrConfig, "no such status"}
	}
	e.advance(now)
	if e.set.status(int(slot)) != st {
		e.set.setStatus(int(slot), st)
		e.set.refresh()
		e.policy.Changed()
	}
	return nil
}

// Decide places a query and counts it in flight: ErrNoCandidates, ErrNoneEligible,
// ErrCapacity for more than MaxTried replicas to avoid or MaxAnswers answers, or what the
// policy refuses with.
func (e *Engine) Decide(q *Query, d *Decision) error {
	s := e.set
	if len(q.Tried)|len(q.Answers) != 0 {
		if err := e.Attach(q.Now, q.Tried, q.Answers); err != nil {
			return err
		}
	}
	if now := q.Now; s.care || now < Instant(s.head[headNow]) {
		if err := e.placeWithCare(now, q.Key); err != nil {
			return err
		}
	} else { // Place, written out: a call would be a tenth of the cheapest decision
		s.head[headNow], s.bare = uint64(now), false
		if err := e.policy.Decide(now, q.Key); err != nil {
			return err
		}
		s.launch()
	}
	if o := &s.Out; s.bare {
		// Copying the whole record would wait for what was just written to a part of it.
		*d = Decision{ID: s.cands[o.Index].ID, Index: o.Index, Regime: o.Regime, Threshold: NoThreshold}
		return nil
	}
	*d = s.Out
	d.ID = s.cands[d.Index].ID
	return nil
}

// Attach gives the next Place replicas to avoid and answers of its own: ErrCapacity over
// MaxTried or MaxAnswers, and then the next Place has neither.
func (e *Engine) Attach(now Instant, tried []ID, answers []Answer) error {
	s := e.set
	s.care = true
	err := s.exclude(tried)
	if err == nil {
		err = s.answer(answers, max(now, Instant(s.head[headNow])))
	}
	if err != nil {
		s.tried, s.answers = s.triedBuf[:0], s.answered[:0]
	}
	return err
}

// Place is Decide with its result, all but ID, left in [Engine.Placed]. Here and below, what
// is rare returns early: a guest pays for a jump over it as for thirty plain instructions.
func (e *Engine) Place(now Instant, key Key) error {
	s := e.set
	if s.care || now < Instant(s.head[headNow]) {
		return e.placeWithCare(now, key)
	}
	s.head[headNow], s.bare = uint64(now), false
	if err := e.policy.Decide(now, key); err != nil {
		return err
	}
	s.launch()
	return nil
}

func (e *Engine) placeWithCare(now Instant, key Key) (err error) {
	s := e.set
	now = e.advance(now)
	s.bare = false
	switch {
	case len(s.cands) == 0:
		err = ErrNoCandidates
	case len(s.eligible) == len(s.tried):
		err = ErrNoneEligible
	default:
		if err = e.policy.Decide(now, key); err == nil {
			s.launch()
		}
	}
	s.tried, s.answers = s.tried[:0], s.answers[:0]
	s.care = len(s.eligible) == 0
	return err
}

// Placed is where Place leaves its decision; it does not move.
func (e *Engine) Placed() *Decision { return &e.set.Out }

// Report ends a placed query: ErrUnknownID if its replica has left.
func (e *Engine) Report(now Instant, r Report) error {
	slot, ok := e.set.Slot(r.ID)
	if !ok {
		return ErrUnknownID
	}
	now = e.advance(now)
	if w := &e.set.slots[int(slot)*e.set.stride]; uint32(*w) != 0 {
		*w--
	}
	e.policy.Observe(now, slot, r)
	return nil
}

// Record takes a replica's reading, received now: ErrUnknownID.
func (e *Engine) Record(now Instant, id ID, rd Reading) (Admission, error) {
	slot, ok := e.set.Slot(id)
	if !ok {
		return NotKept, ErrUnknownID
	}
	now = e.advance(now)
	rd.clean(now)
	return e.policy.Record(now, slot, rd), nil
}

// clean brings a stranger's reading into its ranges.
func (rd *Reading) clean(now Instant) {
	rd.Asked = min(rd.Asked, now)
	if rd.Latency < 0 {
		rd.Latency = UnknownLatency
	}
	rd.Latency = min(rd.Latency, MaxLatency)
}

// RecordLoad takes a replica's load report, received now: ErrUnknownID.
func (e *Engine) RecordLoad(now Instant, id ID, l LoadReport) error {
	slot, ok := e.set.Slot(id)
	if !ok {
		return ErrUnknownID
	}
	e.policy.RecordLoad(e.advance(now), slot, l)
	return nil
}

// Forget drops what is held of a replica, because a probe of it, sent when asked, failed. A
// reading that was asked later stays: ErrUnknownID.
func (e *Engine) Forget(now Instant, id ID, asked Instant) error {
	slot, ok := e.set.Slot(id)
	if !ok {
		return ErrUnknownID
	}
	e.policy.Forget(slot, min(asked, e.advance(now)))
	return nil
}

// Probes appends the replicas that are due to be probed. The engine says who; the host probes.
func (e *Engine) Probes(now Instant, dst []ID) ([]ID, error) {
	return e.policy.Probes(e.advance(now), dst), nil
}

// Entries appends what the policy holds, for display; nothing changes.
func (e *Engine) Entries(now Instant, dst []Entry) ([]Entry, error) {
	return e.policy.Entries(max(now, Instant(e.set.head[headNow])), dst), nil
}

// Inspect fills in the policy's counters and the settings in force.
func (e *Engine) Inspect(c *Counters, f *Fit) error {
	*c, *f = Counters{}, Fit{Threshold: NoThreshold}
	e.policy.Inspect(c, f)
	return nil
}

// InFlight is the number of queries this machine has open on a replica.
func (e *Engine) InFlight(id ID) uint32 {
	if slot, ok := e.set.Slot(id); ok {
		return e.set.InFlight(slot)
	}
	return 0
}

// Spec is the policy's canonical spec line.
func (e *Engine) Spec() string { return e.policy.Spec() }
