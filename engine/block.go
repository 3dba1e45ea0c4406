package engine

import (
	"slices"
	"strconv"
)

// Block is the whole mutable state, by reference, until the candidates change or a block is
// restored.
func (e *Engine) Block() []uint64 { return e.block }

// Snapshot appends the block as little-endian bytes.
func (e *Engine) Snapshot(dst []byte) ([]byte, error) {
	dst = slices.Grow(dst, 8*len(e.block))
	for _, w := range e.block {
		dst = append(dst, byte(w), byte(w>>8), byte(w>>16), byte(w>>24),
			byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56))
	}
	return dst, nil
}

// Restore puts a snapshot back. It must come from a machine with the same spec, salt,
// candidates and statuses; anything else, and any state the policy could not have made, is
// ErrBlock and changes nothing.
func (e *Engine) Restore(b []byte) error {
	if len(b) >= 8 && word(b) != magic { // said before the size, which then differs too
		return &DetailError{ErrBlock, "layout differs: the block is of another version; start without it"}
	}
	if len(b) != 8*len(e.block) {
		return &DetailError{ErrBlock, strconv.Itoa(len(b)) + " bytes, want " + strconv.Itoa(8*len(e.block))}
	}
	next := slices.Grow(e.spare.block[:0], len(e.block))[:len(e.block)]
	for i := range next {
		next[i] = word(b[8*i:])
	}
	for _, h := range [...]int{headPolicy, headSet, headCount} {
		if next[h] != e.block[h] {
			return &DetailError{ErrBlock, [...]string{headPolicy: "policy", headSet: "candidates", headCount: "candidate count"}[h] + " differ; restore on a machine with the same spec, salt, candidates and statuses"}
		}
	}
	for i := range e.set.cands {
		if at := headWords + e.fixed + i*e.set.stride; next[at]>>statusShift != e.block[at]>>statusShift {
			return &DetailError{ErrBlock, "status of candidate " + strconv.Itoa(i) + " differs"}
		}
	}
	old := e.block
	e.rebind(next)
	if !e.policy.Valid() {
		e.rebind(old)
		return &DetailError{ErrBlock, "not a state of this policy"}
	}
	e.spare.block = old
	return nil
}

// word is the first word of a snapshot or of the rest of one.
func word(b []byte) uint64 {
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func (e *Engine) rebind(block []uint64) {
	e.attach(block)
	e.policy.Bind(e.fixedWords(), e.set, false)
}

// InFlight says how many queries a caller has open on a replica.
type InFlight struct {
	ID      ID
	Queries uint32
}

// SetInFlight replaces the counts of all queries in flight; who is not named has none. It is for
// a caller whose placements outlive the machine that made them: a fresh machine, or one that
// went back to an older block, takes over what is open. Unknown replicas are passed over:
// they have left.
func (e *Engine) SetInFlight(open []InFlight) error {
	s := e.set
	counts := make([]uint32, len(s.cands))
	for _, o := range open {
		if slot, ok := s.Slot(o.ID); ok {
			counts[slot] = o.Queries
		}
	}
	changed := false
	for slot, n := range counts {
		if w := &s.slots[slot*s.stride]; uint32(*w) != n {
			*w, changed = *w&^(1<<statusShift-1)|uint64(n), true
		}
	}
	if changed {
		e.policy.Bind(e.fixedWords(), s, false) // some derive from the counts what they keep beside the block,
		e.policy.Changed()                      // some lay out in it what follows from them
	}
	return nil
}
