package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// explain notes what each priority can take and what it is given, and why load moves.
func (g *groups) explain(x *engine.Explanation) {
	left := uint64(0)
	for i := range g.all {
		at := &g.all[i]
		n, d := effective(at, g.c.Overprovision)
		share, some := g.cuts.of(i)
		note := at.name() + ": weight " + utoa(at.eligible) + " of " + utoa(at.members) + " available (" +
			ratio(at.eligible, at.members) + ", effective " + ratio(n, d) + "), takes " + portion(share, some)
		switch {
		case at.refusal != nil:
			note += ", in panic: refuses"
		case at.panics:
			note += ", in panic"
		}
		x.Notes = append(x.Notes, note)
		if i == 0 {
			left = probe.Unit - share
		}
	}
	if left > 0 {
		x.Notes = append(x.Notes, g.all[0].name()+" cannot take all load: "+decimal(left)+" of it spills")
	}
}

// decided is the place of the group of the decision in Out.
func (g *groups) decided(s *engine.Set) int {
	return slices.IndexFunc(g.all, func(at group) bool { return at.priority == s.Priority(s.Out.Index) })
}

// because tells that group, and why it is not the first.
func (g *groups) because(s *engine.Set) string {
	i := g.decided(s)
	name := g.all[i].name()
	switch {
	case g.all[i].panics:
		return name + ", which is in panic"
	case i == 0:
		return name
	case g.all[0].size > 0 && !g.isOpen(s, &g.all[0]):
		return name + ", because this query has been all over " + g.all[0].name()
	}
	return name + ", because " + g.all[0].name() + " has not enough available"
}

func (at *group) name() string { return "priority " + itoa(int(at.priority)) }
