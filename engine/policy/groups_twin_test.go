package policy

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// outcome is what a rule makes of a fleet: the exact share of each priority, of each candidate
// by position, and the regime of each priority's decisions.
type outcome struct {
	shares  map[uint8]*big.Rat
	each    []*big.Rat
	regimes map[uint8]engine.Regime
}

// text is an outcome in comparable words.
func (o outcome) text() string {
	s := fmt.Sprintln(o.regimes)
	for _, share := range o.each {
		s += share.RatString() + " "
	}
	return s
}

// ruler is a rule to hold against a law: the policy's tables, its slow twin, or a twin with a fault.
type ruler func(c GroupConfig, cs []engine.Candidate) outcome

func rat(n, d uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(n), new(big.Int).SetUint64(d))
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// side is one priority as the twin sees it.
type side struct {
	priority          uint8
	members, eligible uint64
	raw, effective    *big.Rat
}

// sides works availabilities out from the candidates, by the definition.
func sides(c GroupConfig, cs []engine.Candidate, fault string) (out []side) {
	for priority := range 256 {
		s := side{priority: uint8(priority)}
		for _, x := range cs {
			if int(x.Priority) != priority || x.Status == engine.StatusDraining && fault != "draining ones are members" {
				continue
			}
			s.members += uint64(max(1, x.Weight))
			if x.Status.Eligible() {
				s.eligible += uint64(max(1, x.Weight))
			}
		}
		if s.members == 0 {
			continue
		}
		s.raw = rat(s.eligible, s.members)
		s.effective = least(rat(1, 1), new(big.Rat).Mul(s.raw, rat(c.Overprovision, 10000)))
		if fault == "millionths" {
			s.effective = rat(min(1000000, s.eligible*1000000/s.members*c.Overprovision/10000), 1000000)
		}
		out = append(out, s)
	}
	return out
}

// twin is the rule by definition, in fractions, with an optional fault.
func twin(fault string) ruler {
	return func(c GroupConfig, cs []engine.Candidate) outcome {
		o := outcome{map[uint8]*big.Rat{}, nil, map[uint8]engine.Regime{}}
		groups := sides(c, cs, fault)
		total, left := new(big.Rat), rat(1, 1)
		for _, s := range groups {
			total.Add(total, s.effective)
		}
		short := total.Cmp(rat(1, 1)) < 0
		for i, s := range groups {
			o.shares[s.priority] = new(big.Rat)
			switch {
			case !short && fault == "in proportion though there is enough":
				o.shares[s.priority].Quo(s.effective, total)
			case !short:
				o.shares[s.priority] = new(big.Rat).Set(least(s.effective, left))
				left.Sub(left, o.shares[s.priority])
			case total.Sign() > 0:
				o.shares[s.priority].Quo(s.effective, total)
			}
			panics := short && s.raw.Cmp(rat(c.PanicThreshold, 10000)) < 0
			switch fault {
			case "panic with enough elsewhere":
				panics = s.raw.Cmp(rat(c.PanicThreshold, 10000)) < 0
			case "panic at the threshold":
				panics = short && s.raw.Cmp(rat(c.PanicThreshold, 10000)) <= 0
			}
			o.regimes[s.priority] = engine.RegimeDirect
			if panics {
				o.regimes[s.priority] = engine.RegimePanic
			} else if i > 0 || fault == "spill by number" && s.priority > 0 {
				o.regimes[s.priority] = engine.RegimeSpill
			}
		}
		if fault == "panic keeps its load" {
			for _, s := range groups {
				if o.regimes[s.priority] == engine.RegimePanic && s.eligible > 0 {
					for p := range o.shares {
						o.shares[p] = new(big.Rat)
					}
					o.shares[s.priority] = rat(1, 1)
					break
				}
			}
		}
		for _, x := range cs {
			share := new(big.Rat)
			i := slices.IndexFunc(groups, func(s side) bool { return s.priority == x.Priority })
			if x.Status.Eligible() && groups[i].eligible > 0 {
				share.Mul(o.shares[x.Priority], rat(uint64(max(1, x.Weight)), groups[i].eligible))
			}
			o.each = append(o.each, share)
		}
		return o
	}
}

// area is the exact share of each position of an alias table.
func area(a *alias) (out []*big.Rat) {
	all := make([]uint64, len(a.columns))
	for i, c := range a.columns {
		cut := min(c.cut, a.total)
		all[i] += cut
		all[c.other] += a.total - cut
	}
	for _, n := range all {
		share := rat(n, a.total)
		out = append(out, share.Quo(share, rat(uint64(len(all)), 1)))
	}
	return out
}

// enumerated is the exact share of each group, by counting the tickets between its cuts.
func (h *shares) enumerated() (out []*big.Rat) {
	number := func(x []uint64) *big.Int {
		n := new(big.Int)
		for _, w := range slices.Backward(x) {
			n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(w))
		}
		return n
	}
	tickets, before := number(h.tickets), new(big.Int)
	all := new(big.Int).Lsh(tickets, 32)
	for i, cut := range h.cut {
		upTo := new(big.Int).Mul(new(big.Int).SetUint64(cut), tickets)
		upTo.Add(upTo, number(h.rest[i*len(h.tickets):][:len(h.tickets)]))
		out = append(out, new(big.Rat).SetFrac(new(big.Int).Sub(upTo, before), all))
		before = upTo
	}
	return out
}

// tables is what the policy's tables say of the fleet of a machine.
func tables(g *groups, n int) outcome {
	o := outcome{map[uint8]*big.Rat{}, make([]*big.Rat, n), map[uint8]engine.Regime{}}
	for i := range o.each {
		o.each[i] = new(big.Rat)
	}
	shares := make([]*big.Rat, len(g.all))
	if len(g.slots) > 0 {
		shares = g.cuts.enumerated()
	}
	for i := range g.all {
		at := &g.all[i]
		o.regimes[at.priority], o.shares[at.priority] = at.regime, new(big.Rat)
		if len(g.slots) == 0 {
			continue
		}
		o.shares[at.priority] = shares[i]
		if t := &g.parts[at.from]; !g.byLocality && len(t.slots) > 0 {
			for k, share := range area(&t.alias) {
				o.each[t.slots[k]].Mul(share, shares[i])
			}
		}
	}
	return o
}

func ruled(c GroupConfig, cs []engine.Candidate) outcome {
	p, err := NewPriority(c)
	if err != nil {
		panic(err)
	}
	if err := engine.New(p, engine.Config{}).SetCandidates(0, cs); err != nil {
		panic(err)
	}
	return tables(&p.g, len(cs))
}

// drawnFleet draws candidates: few or many priorities, small or huge weights, all states of health.
func drawnFleet(r *rand.Rand) (GroupConfig, []engine.Candidate) {
	c := DefaultGroups(7)
	c.Overprovision = []uint64{10000, 14000, 14000, 23333, 1000000}[r.IntN(5)]
	c.PanicThreshold = []uint64{0, 5000, 5000, 5000, 10000, 3333}[r.IntN(6)]
	cs := make([]engine.Candidate, 1+r.IntN(14))
	priorities, heavy, down := 1+r.IntN(5), r.IntN(4), r.IntN(10)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.IDOf(fmt.Sprint("replica-", i)), Priority: uint8(r.IntN(priorities))}
		cs[i].Weight = engine.Weight(r.IntN(4))
		if heavy == 0 {
			cs[i].Weight = engine.Weight(r.Uint32())
		}
		if r.IntN(10) < down {
			cs[i].Status = engine.StatusUnavailable
		}
		if r.IntN(8) == 0 {
			cs[i].Status = engine.StatusDraining
		}
		if priorities == 5 && r.IntN(2) == 0 {
			cs[i].Priority = uint8(r.IntN(256))
		}
	}
	return c, cs
}
