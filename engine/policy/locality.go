package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Locality decides for a priority as [Priority] does, then for a locality of it by capacity,
// then for a member by weight. A locality keeps its whole capacity while overprovisioning covers
// what is unavailable in it, as in Envoy's locality-weighted load balancing. With a zone, the
// caller's own locality comes first, as far as its capacity is in proportion, as in Envoy's
// zone-aware routing.
//
// Cost O(1): three draws, by alias tables and at most 256 bounds. Tables are rebuilt, in
// O(candidates), when the set or a status changes. No ties. With FailClosed a decision for a
// priority in panic is [engine.ErrRejected].
type Locality struct {
	engine.Base
	g       groups
	zone    string
	home    uint32    // its number
	callers []Callers // where they are; empty: everywhere alike
	numbers []uint32  // of their localities
	text    string    // callers in the spec
	routes  []route

	load, full   uint64        // overprovisioning, in lowest terms
	people       uint64        // callers listed
	room, weight []uint64      // of each part: capacity in units of full, and weight in its route
	columns      []aliasColumn // storage of the routes
	work         []uint32
	names        []uint64 // scratch of Admit
}

// route is how one priority's queries divide among its localities.
type route struct {
	alias               // over the parts, for the queries that do not stay
	home  int           // the part of the caller's own locality, or negative
	keep  uint64        // of this many queries stay at home
	of    uint64        // out of so many
	away  engine.Regime // of those that do not
}

// Name is "locality".
func (*Locality) Name() string { return "locality" }

// Seed starts its draws.
func (p *Locality) Seed() uint64 { return p.g.c.Seed }

// Spec is the canonical line.
func (p *Locality) Spec() string {
	l := p.g.c.line("locality")
	if p.zone != "" {
		l.set("zone", p.zone)
	}
	if p.text != "" {
		l.set("callers", p.text)
	}
	return l.String()
}

// Admit refuses weights that are too large together, given the number of localities:
// [engine.ErrOverflow].
func (p *Locality) Admit(cs []engine.Candidate) error {
	p.names = p.names[:0]
	for i := range cs {
		p.names = append(p.names, uint64(cs[i].Priority)<<32|uint64(cs[i].Locality))
	}
	slices.Sort(p.names)
	k := uint64(len(slices.Compact(p.names)))
	if p.zone == "" {
		return admit(cs, max(probe.Unit, p.full*k))
	}
	hi, factor := bits.Mul64(p.full*k, max(k, p.people))
	if hi != 0 {
		factor = ^uint64(0)
	}
	return admit(cs, max(probe.Unit, factor))
}

// Bind takes the set; what was derived from another one is out of date.
func (p *Locality) Bind(_ []uint64, s *engine.Set, _ bool) { p.Set, p.g.sorted = s, false }

// Changed derives the shares and the tables.
func (p *Locality) Changed() {
	p.g.changed(p.Set)
	n := len(p.g.parts)
	p.room, p.weight = slices.Grow(p.room[:0], n)[:n], slices.Grow(p.weight[:0], n)[:n]
	p.columns = slices.Grow(p.columns[:0], n)[:n]
	p.work = slices.Grow(p.work[:0], n)[:n]
	for i := range p.room {
		t := &p.g.parts[i]
		p.room[i] = p.full * t.members
		if hi, lo := bits.Mul64(t.total, p.load); hi == 0 {
			p.room[i] = min(p.room[i], lo)
		}
	}
	p.routes = p.routes[:0]
	for i := range p.g.all {
		p.routes = append(p.routes, p.route(&p.g.all[i]))
	}
}

// route divides a priority's queries among its localities by capacity. With a zone, the part
// of the callers that are in each locality is held against its part of the capacity. The
// caller's own one keeps all of its callers' queries, or, having less of the capacity, what it
// can take of them; the rest goes where capacity is left by the callers there. In panic nobody
// is at home: all that is left serves everyone.
func (p *Locality) route(at *group) route {
	r := route{home: -1, away: at.regime}
	if at.eligible == 0 {
		return r
	}
	room, weight := p.room[at.from:at.to], p.weight[at.from:at.to]
	total, people := uint64(0), uint64(0)
	for i := range room {
		locality := p.g.parts[at.from+i].locality
		total += room[i]
		people += p.callersAt(locality)
		if p.zone != "" && !at.panics && locality == p.home {
			r.home = at.from + i
		}
	}
	copy(weight, room)
	if r.home >= 0 {
		r.of, r.away = total*p.callersAt(p.home), engine.RegimeSpill
		r.keep = min(r.of, people*p.room[r.home])
		if r.keep == r.of {
			return r
		}
		for i := range weight {
			own, has := total*p.callersAt(p.g.parts[at.from+i].locality), people*room[i]
			weight[i] = has - min(own, has)
		}
	}
	r.columns, r.work = p.columns[at.from:at.from:at.to], p.work[:0]
	fillAlias(&r.alias, weight)
	return r
}

// callersAt is the callers' share of a locality.
func (p *Locality) callersAt(locality uint32) uint64 {
	if len(p.callers) == 0 {
		return 1
	}
	return p.callersIn(locality)
}

// draw returns a part of a priority and the regime of its decision.
func (r *route) draw(s *engine.Set, at *group) (int, engine.Regime) {
	if r.home >= 0 && (r.keep == r.of || s.Draw64(r.of) < r.keep) {
		return r.home, at.regime
	}
	return at.from + int(r.alias.draw(s)), r.away
}

// Decide draws a priority, a locality of it, then a member.
func (p *Locality) Decide(_ engine.Instant, _ engine.Key) error {
	s := p.Set
	drawn := p.g.cuts.draw(s)
	at := &p.g.all[drawn]
	if at.refusal != nil || s.AnyTried() {
		return p.decideWithCare(drawn)
	}
	i, regime := p.routes[drawn].draw(s, at)
	t := &p.g.parts[i]
	s.Choose(t.slots[t.draw(s)], regime)
	return nil
}

func (p *Locality) decideWithCare(drawn int) error {
	s := p.Set
	drawn = p.g.open(s, drawn)
	at, r := &p.g.all[drawn], &p.routes[drawn]
	if at.refusal != nil {
		return at.refusal
	}
	i, regime := r.draw(s, at)
	if !p.g.parts[i].isOpen(s) {
		if i, regime = p.another(at), r.away; i == r.home {
			regime = at.regime
		}
	}
	s.Choose(p.g.parts[i].drawOpen(s), regime)
	return nil
}

// another draws, by capacity, among the localities that this query has not been all over.
func (p *Locality) another(at *group) int {
	s, total := p.Set, uint64(0)
	for i := at.from; i < at.to; i++ {
		if p.g.parts[i].isOpen(s) {
			total += p.room[i]
		}
	}
	ticket := s.Draw64(total)
	for i := at.from; ; i++ {
		if !p.g.parts[i].isOpen(s) {
			continue
		}
		if ticket < p.room[i] {
			return i
		}
		ticket -= p.room[i]
	}
}

// Explain shows what each priority can take and is given, and of the one decided for, each
// locality.
func (p *Locality) Explain(now engine.Instant, key engine.Key, x *engine.Explanation) {
	s := p.Set
	decided := p.Decide(now, key) == nil
	p.g.explain(x)
	if !decided {
		return
	}
	slot := s.Out.Index
	x.Because = "was drawn by weight in " + p.name(s.Locality(slot)) + " of " + p.g.because(s)
	g := p.g.decided(s)
	at, r := &p.g.all[g], &p.routes[g]
	switch {
	case r.home < 0 || s.Locality(slot) == p.home:
	case len(p.g.parts[r.home].slots) > 0 && !p.g.parts[r.home].isOpen(s):
		x.Because += "; this query has been all over " + p.name(p.home)
	default:
		x.Because += "; " + p.name(p.home) + " keeps " + ratio(r.keep, r.of) + " of its callers' queries"
	}
	for i := at.from; i < at.to; i++ {
		x.Notes = append(x.Notes, p.note(at, r, i))
	}
}

func (p *Locality) note(at *group, r *route, i int) string {
	t := &p.g.parts[i]
	note := p.name(t.locality) + ": weight " + utoa(t.total) + " of " + utoa(t.members) + " available (" +
		ratio(t.total, t.members) + ", effective " + ratio(p.room[i], t.members*p.full) + "), "
	switch {
	case i == r.home:
		return note + "keeps " + ratio(r.keep, r.of) + " of its callers' queries"
	case r.total == 0:
		return note + "takes nothing from here"
	case r.home >= 0:
		return note + "takes " + ratio(p.weight[i], r.total) + " of what spills"
	}
	return note + "takes " + ratio(p.weight[i], r.total) + " of " + at.name()
}

// name tells a locality's name where the settings have it; the engine knows numbers only.
func (p *Locality) name(locality uint32) string {
	switch {
	case p.zone != "" && locality == p.home:
		return "locality " + p.zone + " (the caller's)"
	case locality == 0:
		return "the unnamed locality"
	}
	if i := slices.Index(p.numbers, locality); i >= 0 {
		return "locality " + p.callers[i].Zone
	}
	return "locality " + utoa(uint64(locality))
}
