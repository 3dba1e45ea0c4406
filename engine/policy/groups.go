package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// groups is the set by priority, and inside a priority by locality if asked: who is a member,
// who of them is eligible, and the share of each priority. It is derived; none of it is state.
type groups struct {
	c          GroupConfig
	byLocality bool
	sorted     bool // order is of this set

	order []uint64 // every slot, sorted: priority, locality, slot
	parts []part
	all   []group // priorities with members, the preferred first
	cuts  shares

	slots, weights, work []uint32 // storage of the parts
	columns              []aliasColumn
}

// group is one priority that has members.
type group struct {
	priority uint8
	panics   bool  // too little is left of it, and everywhere
	refusal  error // of its decisions, if it refuses in panic
	regime   engine.Regime
	from, to int    // its parts
	size     int    // eligible members
	members  uint64 // their weight, eligible or not; draining ones are no members
	eligible uint64
}

// part is the members that are drawn from by weight: a priority, or a locality of it.
type part struct {
	locality uint32
	members  uint64   // their weight
	slots    []uint32 // the eligible ones
	alias             // over slots; its total is their weight
}

// slotBits of a word of the order are the slot.
const slotBits = 24

// GroupConfig is what [Priority] and [Locality] share. Ratios are in parts per 10,000.
type GroupConfig struct {
	Seed           uint64
	Overprovision  uint64 // load a group takes per availability: 1 to 100
	PanicThreshold uint64 // availability below which a group is in panic, if all are short; 0 turns it off
	FailClosed     bool   // a group in panic refuses
}

// DefaultGroups is Envoy's setting.
func DefaultGroups(seed uint64) GroupConfig {
	return GroupConfig{Seed: seed, Overprovision: 14000, PanicThreshold: 5000}
}

func (c *GroupConfig) validate(policy string) error {
	v := bounds{policy: policy}
	v.parts("overprovision", c.Overprovision, probe.Unit, 100*probe.Unit)
	v.parts("panic_threshold", c.PanicThreshold, 0, probe.Unit)
	return v.err()
}

func (s *settings) groups() GroupConfig {
	c := DefaultGroups(s.uint64("seed", 0))
	c.Overprovision = s.parts("overprovision", c.Overprovision)
	c.PanicThreshold = s.parts("panic_threshold", c.PanicThreshold)
	c.FailClosed = s.choice("panic", "use_all", "fail_closed") == "fail_closed"
	return c
}

func (c *GroupConfig) line(policy string) *line {
	d := DefaultGroups(c.Seed)
	l := newLine(policy).seed(c.Seed)
	l.parts("overprovision", c.Overprovision, d.Overprovision)
	l.parts("panic_threshold", c.PanicThreshold, d.PanicThreshold)
	if c.FailClosed {
		l.set("panic", "fail_closed")
	}
	return l
}

// admit refuses weights whose sum, times factor or times their number, needs more than a word,
// and more candidates than the order has bits for.
func admit(cs []engine.Candidate, factor uint64) error {
	if len(cs) > 1<<slotBits {
		return &engine.DetailError{Err: engine.ErrCapacity, Detail: plural(len(cs), "candidate") + ", at most " + itoa(1<<slotBits)}
	}
	total, over := uint64(0), uint64(0)
	for i := range cs {
		var carry uint64
		total, carry = bits.Add64(total, uint64(max(1, cs[i].Weight)), 0)
		over |= carry
	}
	hi, _ := bits.Mul64(total, max(factor, uint64(len(cs))))
	if hi|over != 0 {
		return &engine.DetailError{Err: engine.ErrOverflow, Detail: "the weights of " + plural(len(cs), "candidate") + " are too large together; divide them all by a common factor"}
	}
	return nil
}

// changed derives everything from the set and its statuses.
func (g *groups) changed(s *engine.Set) {
	if !g.sorted {
		g.sort(s)
	}
	n := s.Eligible()
	g.slots, g.weights = slices.Grow(g.slots[:0], n), slices.Grow(g.weights[:0], n)
	g.columns = slices.Grow(g.columns[:0], n)[:n]
	g.work = slices.Grow(g.work[:0], n)[:n]
	g.parts, g.all = g.parts[:0], g.all[:0]
	for from := 0; from < len(g.order); {
		to := from + 1
		for to < len(g.order) && g.order[to]>>slotBits == g.order[from]>>slotBits {
			to++
		}
		g.add(s, g.order[from:to])
		from = to
	}
	if n > 0 {
		short := g.cuts.build(g.all, g.c.Overprovision)
		g.regimes(short)
	}
}

func (g *groups) sort(s *engine.Set) {
	g.sorted = true
	g.order = slices.Grow(g.order[:0], s.Len())[:s.Len()]
	for i := range g.order {
		slot := uint32(i)
		g.order[i] = uint64(s.Priority(slot))<<56 | uint64(i)
		if g.byLocality {
			g.order[i] |= uint64(s.Locality(slot)) << slotBits
		}
	}
	slices.Sort(g.order)
}

// add makes a part of a run of the order, unless it has no members.
func (g *groups) add(s *engine.Set, run []uint64) {
	p := part{locality: uint32(run[0] >> slotBits)}
	first := len(g.slots)
	for _, at := range run {
		slot := uint32(at & (1<<slotBits - 1))
		if s.IsDraining(slot) {
			continue
		}
		w := s.Weight(slot)
		p.members += uint64(w)
		if s.IsEligible(slot) {
			g.slots, g.weights = append(g.slots, slot), append(g.weights, w)
		}
	}
	if p.members == 0 {
		return
	}
	last := len(g.slots)
	p.slots = g.slots[first:last]
	if last > first {
		p.columns, p.work = g.columns[first:first:last], g.work[:0]
		p.build(g.weights[first:last])
	}
	priority := uint8(run[0] >> 56)
	if k := len(g.all); k == 0 || g.all[k-1].priority != priority {
		g.all = append(g.all, group{priority: priority, from: len(g.parts)})
	}
	g.parts = append(g.parts, p)
	at := &g.all[len(g.all)-1]
	at.to = len(g.parts)
	at.members += p.members
	at.eligible += p.total
	at.size += last - first
}

// regimes names the regime of each group's decisions. There is no panic while the groups
// together can take all load.
func (g *groups) regimes(short bool) {
	for i := range g.all {
		at := &g.all[i]
		at.panics = short && at.eligible*probe.Unit < at.members*g.c.PanicThreshold
		if at.refusal = nil; at.panics && g.c.FailClosed {
			at.refusal = &engine.DetailError{Err: engine.ErrRejected, Detail: at.name() + " has " + ratio(at.eligible, at.members) +
				" of its weight available, below panic_threshold=" + decimal(g.c.PanicThreshold)}
		}
		switch {
		case at.panics:
			at.regime = engine.RegimePanic
		case i > 0:
			at.regime = engine.RegimeSpill
		default:
			at.regime = engine.RegimeDirect
		}
	}
}

// open is the drawn group, or, if this query has been everywhere in it, the first that it has not.
func (g *groups) open(s *engine.Set, drawn int) int {
	if !g.isOpen(s, &g.all[drawn]) {
		drawn = 0
		for drawn < len(g.all)-1 && !g.isOpen(s, &g.all[drawn]) {
			drawn++
		}
	}
	return drawn
}

func (g *groups) isOpen(s *engine.Set, at *group) bool {
	if at.size > engine.MaxTried {
		return true
	}
	for i := at.from; i < at.to; i++ {
		if g.parts[i].isOpen(s) {
			return true
		}
	}
	return false
}

func (p *part) isOpen(s *engine.Set) bool {
	return len(p.slots) > engine.MaxTried || slices.ContainsFunc(p.slots, s.IsOpen)
}

// drawOpen returns a slot that this query has not tried, by weight.
func (p *part) drawOpen(s *engine.Set) uint32 { return p.alias.drawOpen(s, p.slots) }
