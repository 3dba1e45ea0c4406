package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// Bounds of [Maglev].
const (
	DefaultMaglevSize = 65537
	MaxMaglevSize     = 5000011
)

// maglevHashTries is how many further hashes of a key a retry looks at before it scans.
const maglevHashTries = 64

// Maglev decides by a table of prime size in which every eligible candidate owns as many
// entries as any other, to within one, or in proportion to its weight, to within one.
//
// Cost O(1), whatever the fleet; a change fills the table anew. There are no ties. A retry
// follows further hashes of the key to a candidate not tried, and then, in the order of turns,
// the first open one. A query without a key is placed by a drawn one. It refuses fleets of more
// candidates than entries with [engine.ErrCapacity].
type Maglev struct {
	engine.Base
	seed  uint64
	table maglevTable
}

// NewMaglev makes the policy; size is a prime from 2 to MaxMaglevSize, else an
// [engine.ConfigError]. The seed is for queries without a key and does not move entries, so
// that clients with seeds of their own agree on owners.
func NewMaglev(seed uint64, size int, weighted bool) (*Maglev, error) {
	v := bounds{policy: "maglev"}
	v.whole("size", size, 2, MaxMaglevSize)
	if err := v.err(); err != nil {
		return nil, err
	}
	if !prime(size) {
		next := size
		for !prime(next) {
			next++
		}
		return nil, &engine.ConfigError{Policy: "maglev", Key: "size", Value: itoa(size), Reason: "want a prime number; the next is " + itoa(next)}
	}
	return &Maglev{seed: seed, table: maglevTable{size: uint32(size), weighted: weighted, hashes: maglevHashes}}, nil
}

func prime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// Name is "maglev".
func (*Maglev) Name() string { return "maglev" }

// Seed starts the draws of queries without a key.
func (p *Maglev) Seed() uint64 { return p.seed }

// Spec is the canonical line.
func (p *Maglev) Spec() string {
	l := newLine("maglev").seed(p.seed)
	l.whole("size", int(p.table.size), DefaultMaglevSize)
	if p.table.weighted {
		l.set("weighted", "true")
	}
	return l.String()
}

// Admit refuses a fleet with more candidates than entries. Those that
// are not eligible count: a change of status must never be refused.
func (p *Maglev) Admit(cs []engine.Candidate) error {
	if len(cs) <= int(p.table.size) {
		return nil
	}
	return &engine.DetailError{Err: engine.ErrCapacity, Detail: itoa(len(cs)) + " candidates for a table of " + itoa(int(p.table.size)) + " entries"}
}

// Changed brings the table up to date with the eligible candidates.
func (p *Maglev) Changed() { p.table.update(p.Set) }

// Decide takes the owner of the entry where the key falls.
func (p *Maglev) Decide(_ engine.Instant, key engine.Key) error {
	s := p.Set
	if key == 0 {
		key = drawnKey(s)
	}
	h := maglevKey(key)
	slot := p.table.at(p.table.entry(h))
	if s.AnyTried() {
		slot, _, _ = p.retry(h)
	}
	s.Choose(slot, engine.RegimeDirect)
	return nil
}

// maglevKey is the first hash of a key.
func maglevKey(key engine.Key) uint64 { return hash.Mix(uint64(key) ^ maglevKeyDomain) }

// entry is where a hash falls, by its high bits.
func (t *maglevTable) entry(h uint64) uint32 { return uint32(h >> 24 * uint64(t.size) >> 40) }

// retry is the open candidate that a key's hashes lead to first, and after which number of
// them; where they lead to none, the first open one in order of turns from a place of the key's.
func (p *Maglev) retry(h uint64) (slot uint32, hashes int, scanned bool) {
	t := &p.table
	for ; hashes < maglevHashTries; hashes++ {
		if slot = t.at(t.entry(h)); p.Set.IsOpen(slot) {
			return slot, hashes, false
		}
		h = hash.Mix(h + maglevStep)
	}
	n := uint64(len(t.members))
	for i := h >> 32 * n >> 32; ; i++ {
		if slot = t.slots[t.members[i%n].number]; p.Set.IsOpen(slot) {
			return slot, hashes, true
		}
	}
}

// Explain names the entry, and how even the table is.
func (p *Maglev) Explain(_ engine.Instant, key engine.Key, x *engine.Explanation) {
	t := &p.table
	if key == 0 {
		key = drawnKey(p.Set)
		x.Notes = append(x.Notes, "the query has no key; one was drawn")
	}
	h := maglevKey(key)
	slot, hashes, scanned := p.retry(h)
	switch {
	case scanned:
		x.Because = "is the first open candidate from a place of the key's; " + itoa(hashes) + " hashes of it led to tried ones"
	case hashes == 0:
		x.Because = "owns entry " + itoa(int(t.entry(h))) + ", where the key falls"
	default:
		x.Because = "is where the key's hash number " + itoa(hashes+1) + " falls; those before led to tried ones"
	}
	owned := 0
	for i := range t.entries {
		if t.at(uint32(i)) == slot {
			owned++
		}
	}
	note := "owns " + itoa(owned) + " of " + itoa(int(t.size)) + " entries"
	if t.weighted {
		total := uint64(0)
		for _, m := range t.members {
			total += uint64(m.weight)
		}
		note += ", by its weight of " + utoa(uint64(p.Set.Weight(slot))) + " in " + utoa(total)
	} else if len(t.members) > 1 {
		note += ", as the other " + itoa(len(t.members)-1) + " do to within one"
	}
	x.Notes = append(x.Notes, note)
}
