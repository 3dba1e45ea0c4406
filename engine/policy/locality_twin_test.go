package policy

import (
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/headroom-lb/headroom/engine"
)

// spreading is what a rule makes of a fleet for the callers of one zone: the exact share of each
// candidate by position, and, inside each priority, of each locality.
type spreading struct {
	outcome
	within map[uint8]map[uint32]*big.Rat
}

type zoner func(c LocalityConfig, cs []engine.Candidate) spreading

// rooms are capacities by locality in one priority, by the definition, with the localities in
// ascending order.
func rooms(c LocalityConfig, cs []engine.Candidate, priority uint8, fault string) (room map[uint32]*big.Rat, total *big.Rat) {
	members, eligible := map[uint32]uint64{}, map[uint32]uint64{}
	for _, x := range cs {
		if x.Priority != priority || x.Status == engine.StatusDraining {
			continue
		}
		members[x.Locality] += uint64(max(1, x.Weight))
		if x.Status.Eligible() {
			eligible[x.Locality] += uint64(max(1, x.Weight))
		}
	}
	room, total = map[uint32]*big.Rat{}, new(big.Rat)
	for l, m := range members {
		available := least(rat(1, 1), new(big.Rat).Mul(rat(eligible[l], m), rat(c.Overprovision, 10000)))
		switch {
		case fault == "the whole weight of whoever has one up" && eligible[l] > 0:
			available = rat(1, 1)
		case fault == "eligible weight alone":
			available = rat(eligible[l], m)
		}
		room[l] = new(big.Rat).Mul(rat(m, 1), available)
		total.Add(total, room[l])
	}
	return room, total
}

// crowd is the part of the callers of the localities in room that is in each.
func crowd(c LocalityConfig, room map[uint32]*big.Rat) map[uint32]*big.Rat {
	out, total := map[uint32]*big.Rat{}, new(big.Rat)
	for l := range room {
		out[l] = new(big.Rat)
		if len(c.Callers) == 0 {
			out[l] = rat(1, 1)
		}
		for _, x := range c.Callers {
			if engine.LocalityOf(x.Zone) == l {
				out[l] = rat(uint64(x.Share), 1)
			}
		}
		total.Add(total, out[l])
	}
	for l := range out {
		if total.Sign() > 0 {
			out[l].Quo(out[l], total)
		}
	}
	return out
}

// divided is how the callers of home divide among the localities of one priority: Envoy's
// percentages, as fractions.
func divided(c LocalityConfig, room map[uint32]*big.Rat, total *big.Rat, panics bool, fault string) map[uint32]*big.Rat {
	out := map[uint32]*big.Rat{}
	home := engine.LocalityOf(c.Zone)
	part := map[uint32]*big.Rat{}
	for l := range room {
		part[l] = new(big.Rat).Quo(room[l], total)
		out[l] = part[l]
	}
	if _, ok := room[home]; c.Zone == "" || !ok || panics {
		return out
	}
	callers := crowd(c, room)
	keep := least(rat(1, 1), new(big.Rat).Quo(part[home], callers[home]))
	if fault == "home keeps all while it has any" && room[home].Sign() > 0 {
		keep = rat(1, 1)
	}
	left, beyond := map[uint32]*big.Rat{}, new(big.Rat)
	for l := range room {
		left[l] = new(big.Rat).Sub(part[l], callers[l])
		if fault == "spill by capacity" && l != home {
			left[l].Set(part[l])
		}
		if l == home || left[l].Sign() < 0 {
			left[l] = new(big.Rat)
		}
		beyond.Add(beyond, left[l])
	}
	for l := range room {
		out[l] = new(big.Rat)
		if beyond.Sign() > 0 {
			out[l].Quo(left[l], beyond)
			out[l].Mul(out[l], new(big.Rat).Sub(rat(1, 1), keep))
		}
	}
	out[home] = keep
	return out
}

// zoneTwin is the rule by definition, with an optional fault.
func zoneTwin(fault string) zoner {
	return func(c LocalityConfig, cs []engine.Candidate) spreading {
		o := spreading{outcome: twin("")(c.GroupConfig, cs), within: map[uint8]map[uint32]*big.Rat{}}
		eligible := map[[2]uint32]uint64{}
		for _, x := range cs {
			if x.Status.Eligible() {
				eligible[[2]uint32{uint32(x.Priority), x.Locality}] += uint64(max(1, x.Weight))
			}
		}
		for priority := range o.shares {
			if room, total := rooms(c, cs, priority, fault); total.Sign() > 0 {
				o.within[priority] = divided(c, room, total, o.regimes[priority] == engine.RegimePanic, fault)
			}
		}
		for i, x := range cs {
			o.each[i] = new(big.Rat)
			if x.Status.Eligible() {
				o.each[i].Mul(o.shares[x.Priority], o.within[x.Priority][x.Locality])
				o.each[i].Mul(o.each[i], rat(uint64(max(1, x.Weight)), eligible[[2]uint32{uint32(x.Priority), x.Locality}]))
			}
		}
		return o
	}
}

// zoneTables is what the policy's tables say of the fleet of a machine.
func zoneTables(p *Locality, n int) spreading {
	o := spreading{outcome: tables(&p.g, n), within: map[uint8]map[uint32]*big.Rat{}}
	for g := range p.g.all {
		at, r := &p.g.all[g], &p.routes[g]
		if at.eligible == 0 {
			continue
		}
		parts := make([]*big.Rat, at.to-at.from)
		for i := range parts {
			parts[i] = new(big.Rat)
		}
		away := rat(1, 1)
		if r.home >= 0 {
			parts[r.home-at.from] = rat(r.keep, r.of)
			away.Sub(away, rat(r.keep, r.of))
		}
		if away.Sign() > 0 {
			for i, share := range area(&r.alias) {
				parts[i] = new(big.Rat).Add(parts[i], share.Mul(share, away))
			}
		}
		within := map[uint32]*big.Rat{}
		for i, part := range parts {
			t := &p.g.parts[at.from+i]
			within[t.locality] = part
			if len(t.slots) == 0 {
				continue
			}
			for k, share := range area(&t.alias) {
				o.each[t.slots[k]].Mul(share.Mul(share, part), o.shares[at.priority])
			}
		}
		o.within[at.priority] = within
	}
	return o
}

func zoned(c LocalityConfig, cs []engine.Candidate) spreading {
	p, err := NewLocality(c)
	if err != nil {
		panic(err)
	}
	if err := engine.New(p, engine.Config{}).SetCandidates(0, cs); err != nil {
		panic(err)
	}
	return zoneTables(p, len(cs))
}

// drawnZones is drawnFleet in up to five localities, half of the time seen from one of them,
// half of that with a list of callers.
func drawnZones(r *rand.Rand) (LocalityConfig, []engine.Candidate) {
	groups, cs := drawnFleet(r)
	c := LocalityConfig{GroupConfig: groups}
	zones := 1 + r.IntN(5)
	name := func(i int) string { return fmt.Sprint("zone-", i) }
	for i := range cs {
		cs[i].Locality = engine.LocalityOf(name(r.IntN(zones)))
	}
	if r.IntN(2) == 0 {
		home := r.IntN(zones)
		c.Zone = name(home)
		for i := range zones + 1 {
			if len(c.Callers) > 0 || r.IntN(2) == 0 {
				c.Callers = append(c.Callers, Callers{name((home + i) % (zones + 1)), 1 + uint32(r.IntN(9))})
			} else {
				break
			}
		}
	}
	return c, cs
}
