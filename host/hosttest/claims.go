package hosttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
)

// Claim is a set of laws that bind the guests that claim them.
type Claim struct {
	Name string // as in --laws
	Doc  string
	laws []law
}

// Claims lists what a guest may claim.
func Claims() []Claim {
	return []Claim{
		{"affinity", "a key has a replica of its own, while nothing is in flight", []law{
			{"a key stays with its replica while the fleet stands", false, keysStay},
			{"the keys of a drained replica move, and come back with it", false, keysComeBack},
			{"keys spread over the whole fleet", false, keysSpread},
		}},
		{"minimal_disruption", "a change of the fleet moves no key that need not move", []law{
			{"when a replica leaves, only its keys move", false, leavesAlone},
			{"when a replica joins, keys move only to it", false, joinsAlone},
		}},
		{"even", "every eligible replica gets the same share", []law{
			{"every eligible replica gets its even share", false, evenShares},
		}},
		{"proportional", "shares are in proportion to weights", []law{
			{"shares are in proportion to weights", false, weightedShares},
		}},
		{"load", "decisions go by what this client has in flight", []law{
			{"the busiest replica is left alone while another is open", true, busiestLeftAlone},
		}},
		{"pool", "decides by hot-cold over a probe pool, and reads the settings of Prequal", poolLaws()},
	}
}

// poolLaws are the kit's laws of pools; they choose settings, which follow the policy's name.
func poolLaws() (out []law) {
	for _, l := range enginetest.PoolLaws() {
		out = append(out, law{l.Name, false, func(t *trial) error {
			name, _, _ := strings.Cut(t.spec, " ")
			make := func(settings string) enginetest.Maker {
				return func() (engine.Machine, func(), error) {
					g, err := t.start(name + " " + settings)
					if err != nil {
						return nil, nil, err
					}
					return g, func() { _ = g.Close(t.ctx) }, nil
				}
			}
			for seed := range uint64(2) {
				if err := l.Check(make, seed, 400); err != nil {
					return fmt.Errorf("walk %d: %w", seed, err)
				}
			}
			return nil
		}})
	}
	return out
}

// of starts a guest with a fleet of n plain replicas.
func (t *trial) of(n int) (*world, error) {
	w, err := t.world()
	if err != nil {
		return nil, err
	}
	rows := make([]row, n)
	for i := range rows {
		rows[i].who = i
	}
	return w, w.set(rows)
}

func (w *world) set(rows []row) error {
	c := call{op: opFleet, gap: 1, fleet: rows}
	r := w.do(&c)
	return r.err
}

// served decides a query of a key and ends it.
func (w *world) served(key int) (engine.ID, error) {
	w.now += 1000
	var d engine.Decision
	if err := w.Decide(&engine.Query{Now: w.now, Key: engine.Key(key)}, &d); err != nil {
		return 0, err
	}
	return d.ID, w.Report(w.now, engine.Report{ID: d.ID, Latency: engine.Millisecond})
}

const someKeys = 400

// owners serves every key once.
func (w *world) owners() (of [someKeys]engine.ID, err error) {
	for k := range of {
		if of[k], err = w.served(k + 1); err != nil {
			return of, err
		}
	}
	return of, nil
}

func moved(key int, from, to engine.ID) error {
	return fmt.Errorf("key %d went to %s, and goes to %s", key+1, nameOfID(from), nameOfID(to))
}

func keysStay(t *trial) error {
	w, err := t.of(8)
	if err != nil {
		return err
	}
	before, err := w.owners()
	for range 3 {
		after, err := w.owners()
		for k := range before {
			if err == nil && after[k] != before[k] {
				err = moved(k, before[k], after[k])
			}
		}
		if err != nil {
			return err
		}
	}
	return err
}

func keysComeBack(t *trial) error {
	w, err := t.of(8)
	if err != nil {
		return err
	}
	before, err := w.owners()
	if err != nil {
		return err
	}
	for _, st := range []engine.Status{engine.StatusDraining, engine.StatusReady} {
		c := call{op: opStatus, gap: 1, who: 3, status: st}
		if r := w.do(&c); r.err != nil {
			return r.err
		}
		after, err := w.owners()
		if err != nil {
			return err
		}
		for k := range before {
			if gone := before[k] == identities[3] && st == engine.StatusDraining; gone == (after[k] == before[k]) && (gone || st == engine.StatusReady) {
				return moved(k, before[k], after[k])
			}
		}
	}
	return nil
}

func keysSpread(t *trial) error {
	w, err := t.of(8)
	if err != nil {
		return err
	}
	counts := map[engine.ID]int{}
	const keys = 4000
	for k := range keys {
		id, err := w.served(k + 1)
		if err != nil {
			return err
		}
		counts[id]++
	}
	for i := range w.fleet {
		if n := counts[w.fleet[i].ID]; n < keys/8/2 || n > keys/8*2 {
			return fmt.Errorf("%s has %d of %d keys, and its share would be %d", nameOf(i), n, keys, keys/8)
		}
	}
	return nil
}

// change takes the owners before and after a change of the fleet.
func (t *trial) change(from, to int, stays func(before, after engine.ID) bool) error {
	w, err := t.of(from)
	if err != nil {
		return err
	}
	before, err := w.owners()
	if err != nil {
		return err
	}
	rows := make([]row, 0, to)
	for i := range to {
		rows = append(rows, row{who: i})
	}
	if err := w.set(rows); err != nil {
		return err
	}
	after, err := w.owners()
	for k := range before {
		if err == nil && before[k] != after[k] && !stays(before[k], after[k]) {
			err = moved(k, before[k], after[k])
		}
	}
	return err
}

func leavesAlone(t *trial) error {
	return t.change(8, 7, func(before, _ engine.ID) bool { return before == identities[7] })
}

func joinsAlone(t *trial) error {
	return t.change(7, 8, func(_, after engine.ID) bool { return after == identities[7] })
}

// shares counts what each replica gets and holds it to its weight; the last one drains.
func (t *trial) shares(weights []int) error {
	w, err := t.world()
	if err != nil {
		return err
	}
	rows, sum := make([]row, len(weights)+1), 0
	for i, x := range weights {
		rows[i], sum = row{who: i, weight: engine.Weight(x)}, sum+x
	}
	rows[len(weights)] = row{who: len(weights), status: engine.StatusDraining}
	if err := w.set(rows); err != nil {
		return err
	}
	n := enginetest.Draws(float64(slices.Min(weights))/float64(sum), 0.1)
	counts := map[engine.ID]int{}
	for k := range n {
		id, err := w.served(k + 1)
		if err != nil {
			return err
		}
		counts[id]++
	}
	for i, x := range weights {
		if err := enginetest.CheckShare(float64(x)/float64(sum), counts[identities[i]], n); err != nil {
			return fmt.Errorf("%s with weight %d: %w", nameOf(i), x, err)
		}
	}
	return nil
}

func evenShares(t *trial) error     { return t.shares([]int{1, 1, 1, 1, 1, 1, 1}) }
func weightedShares(t *trial) error { return t.shares([]int{1, 2, 3, 4}) }

// busiestLeftAlone counts what is in flight as a guest should: a decision opens a query of its replica,
// a report ends one, a replica that leaves takes its count with it, and a host may set the counts.
func busiestLeftAlone(t *trial) error {
	flight := map[engine.ID]int{}
	return t.walk(func(w *world, c *call, r *reply) error {
		if r.err != nil {
			return nil
		}
		switch c.op {
		case opFleet:
			for id := range flight {
				if !slices.ContainsFunc(w.fleet, func(c engine.Candidate) bool { return c.ID == id }) {
					delete(flight, id)
				}
			}
		case opTakeOver:
			if r.what == tooOld {
				return nil
			}
			clear(flight)
			for _, f := range c.open {
				if w.has(f.who) {
					flight[identities[f.who]] = int(f.queries)
				}
			}
		case opReport:
			flight[identities[c.who]] = max(0, flight[identities[c.who]]-1)
		case opDecide:
			others, busier := 0, true
			for i := range w.fleet {
				id := w.fleet[i].ID
				if id != r.d.ID && w.fleet[i].Status.Eligible() && !w.tried(c, id) {
					others++
					busier = busier && flight[id] < flight[r.d.ID]
				}
			}
			flight[r.d.ID]++
			if others > 0 && busier {
				return fmt.Errorf("%s had %d in flight, and every other open one fewer", nameOfID(r.d.ID), flight[r.d.ID]-1)
			}
		}
		return nil
	})
}
