package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// The laws of policies that derive a table from the candidates. Each takes a maker and a seed
// of churn, and returns what breaks it, so that a fault planted in the maker can be noticed.

type tableMaker func() engine.Policy

// churn is a fleet that changes in every way a fleet can.
type churn struct {
	*rand.Rand
	fleet []engine.Candidate
	next  int
}

func newChurn(seed uint64) *churn {
	c := &churn{Rand: rand.New(rand.NewPCG(seed, 1))}
	for range 2 + c.IntN(12) {
		c.add()
	}
	return c
}

func (c *churn) add() {
	c.next++
	status := engine.Status(c.IntN(8) / 7)
	c.fleet = append(c.fleet, engine.Candidate{ID: engine.IDOf(fmt.Sprint("member-", c.next)), Weight: engine.Weight(c.IntN(5)), Status: status})
}

var kinds = []string{"add", "remove", "drain", "reweight", "reorder", "many", "all", "none"}

// change makes one change of a kind and says whom it touched.
func (c *churn) change(kind string) (touched engine.ID) {
	c.fleet = slices.Clone(c.fleet)
	if len(c.fleet) == 0 {
		kind = "add"
	}
	i := 0
	if len(c.fleet) > 0 {
		i = c.IntN(len(c.fleet))
		touched = c.fleet[i].ID
	}
	switch kind {
	case "add":
		c.add()
		last := len(c.fleet) - 1
		touched = c.fleet[last].ID
		c.fleet[i], c.fleet[last] = c.fleet[last], c.fleet[i]
	case "remove":
		c.fleet = slices.Delete(c.fleet, i, i+1)
	case "drain": // or the way back
		c.fleet[i].Status = 1 - min(1, c.fleet[i].Status)
	case "reweight":
		c.fleet[i].Weight = (c.fleet[i].Weight + engine.Weight(1+c.IntN(4))) % 6
	case "reorder":
		c.Shuffle(len(c.fleet), func(i, j int) { c.fleet[i], c.fleet[j] = c.fleet[j], c.fleet[i] })
	case "many":
		for range 4 {
			c.change(kinds[c.IntN(5)])
		}
	case "all":
		c.fleet = nil
		for range 1 + c.IntN(20) {
			c.add()
		}
	case "none":
		c.fleet = nil
	}
	return touched
}

// tell brings a machine to the fleet, by a status where that is all that changed.
func tell(e *engine.Engine, kind string, touched engine.ID, fleet []engine.Candidate) error {
	i := slices.IndexFunc(fleet, func(c engine.Candidate) bool { return c.ID == touched })
	if kind == "drain" && i >= 0 {
		if err := e.SetStatus(0, touched, fleet[i].Status); !errors.Is(err, engine.ErrUnknownID) {
			return err
		}
	}
	return e.SetCandidates(0, fleet)
}

func fresh(mk tableMaker, fleet []engine.Candidate) (*engine.Engine, error) {
	e := engine.New(mk(), engine.Config{})
	return e, e.SetCandidates(0, fleet)
}

// owner is where a query goes; zero where nobody is open.
func owner(e *engine.Engine, key engine.Key, tried ...engine.ID) engine.ID {
	var d engine.Decision
	if err := e.Decide(&engine.Query{Key: key, Tried: tried}, &d); err != nil {
		return 0
	}
	return d.ID
}

// route is where keys go, each with the replicas that its retries would reach.
func routed(e *engine.Engine, keys, retries int) (ids []engine.ID) {
	for k := range keys {
		var tried []engine.ID
		for range retries + 1 {
			id := owner(e, engine.Key(k+1), tried...)
			ids, tried = append(ids, id), append(tried, id)
		}
	}
	return ids
}

func differ(a, b []engine.ID, what string) error {
	for i := range a {
		if a[i] != b[i] {
			return fmt.Errorf("%s: query %d goes to %d, not to %d", what, i, a[i], b[i])
		}
	}
	return nil
}

// agedLaw: after any churn a machine decides as one that never saw anything else.
func agedLaw(mk tableMaker, seed uint64) error {
	c := newChurn(seed)
	e, err := fresh(mk, c.fleet)
	if err != nil {
		return err
	}
	for range 12 {
		kind := kinds[c.IntN(len(kinds))]
		touched := c.change(kind)
		if err := tell(e, kind, touched, c.fleet); err != nil {
			return err
		}
		young, err := fresh(mk, c.fleet)
		if err != nil {
			return err
		}
		if err := differ(routed(e, 80, 3), routed(young, 80, 3), "after "+kind); err != nil {
			return err
		}
	}
	return nil
}

// orderLaw: the order of the candidates does not matter.
func orderLaw(mk tableMaker, seed uint64) error {
	c := newChurn(seed)
	a, err := fresh(mk, c.fleet)
	if err != nil {
		return err
	}
	c.change("reorder")
	b, err := fresh(mk, c.fleet)
	if err != nil {
		return err
	}
	return differ(routed(a, 100, 4), routed(b, 100, 4), "reordered")
}

// twinLaw: a slow twin, which builds everything anew for each query, decides the same.
func twinLaw(mk tableMaker, seed uint64, twin func(fleet []engine.Candidate, key engine.Key, tried []engine.ID) engine.ID) error {
	c := newChurn(seed)
	e, err := fresh(mk, c.fleet)
	if err != nil {
		return err
	}
	for range 6 {
		kind := kinds[c.IntN(len(kinds))]
		touched := c.change(kind)
		if err := tell(e, kind, touched, c.fleet); err != nil {
			return err
		}
		for range 12 {
			key := engine.Key(c.Uint64() | 1)
			var tried []engine.ID
			for range c.IntN(len(c.fleet) + 2) {
				if len(c.fleet) > 0 && len(tried) < engine.MaxTried {
					tried = append(tried, c.fleet[c.IntN(len(c.fleet))].ID)
				}
			}
			got, want := owner(e, key, tried...), twin(c.fleet, key, tried)
			if got != want {
				return fmt.Errorf("after %s: key %d goes to %d, the twin says %d", kind, key, got, want)
			}
		}
	}
	return nil
}

// minimalLaw: a change of one candidate moves only the keys that it loses or gains.
func minimalLaw(mk tableMaker, seed uint64) error {
	c := newChurn(seed)
	for _, kind := range []string{"add", "remove", "drain", "reweight", "reorder"} {
		before, err := fresh(mk, c.fleet)
		if err != nil {
			return err
		}
		touched := c.change(kind)
		after, err := fresh(mk, c.fleet)
		if err != nil {
			return err
		}
		lost, gained := 0, 0
		for key := range engine.Key(400) {
			was, is := owner(before, key+1), owner(after, key+1)
			if was == is || was == 0 || is == 0 {
				continue
			}
			if kind == "reorder" || was != touched && is != touched {
				return fmt.Errorf("%s of %d moves a key from %d to %d", kind, touched, was, is)
			}
			if was == touched {
				lost++
			} else {
				gained++
			}
		}
		if lost > 0 && gained > 0 {
			return fmt.Errorf("%s of %d takes keys from it and gives it others", kind, touched)
		}
	}
	return nil
}

// underChurn checks a law under generated churn.
func underChurn(t *testing.T, law func(seed uint64) error) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		if err := law(rapid.Uint64().Draw(t, "seed")); err != nil {
			t.Fatal(err)
		}
	})
}

// noticed fails unless the law rejects a planted fault.
func noticed(t *testing.T, fault string, law func(seed uint64) error) {
	t.Helper()
	for seed := range uint64(60) {
		if law(seed) != nil {
			return
		}
	}
	t.Errorf("nobody noticed: %s", fault)
}

// wrapped is a policy whose Changed or Decide has a planted fault.
type wrapped struct {
	engine.Policy
	changed func()
	decide  func(key engine.Key) error
}

func (w *wrapped) Changed() {
	if w.changed != nil {
		w.changed()
		return
	}
	w.Policy.Changed()
}

func (w *wrapped) Decide(now engine.Instant, key engine.Key) error {
	if w.decide != nil {
		return w.decide(key)
	}
	return w.Policy.Decide(now, key)
}

// fixture is the seed library's: names, weights i mod 4 + 1, keys.
func fixture(n int) (cs []engine.Candidate, names map[engine.ID]string) {
	names = map[engine.ID]string{}
	for i := range n {
		name := fmt.Sprintf("backend-%04d", i)
		id := engine.IDOf(name)
		names[id] = name
		cs = append(cs, engine.Candidate{ID: id, Weight: engine.Weight(i%4 + 1)})
	}
	return cs, names
}

func noneThenSome(t *testing.T, mk tableMaker) {
	t.Helper()
	cs, _ := fixture(5)
	e, err := fresh(mk, cs)
	require.NoError(t, err)
	for _, c := range cs {
		require.NoError(t, e.SetStatus(0, c.ID, engine.StatusDraining))
	}
	var d engine.Decision
	require.ErrorIs(t, e.Decide(&engine.Query{Key: 1}, &d), engine.ErrNoneEligible)
	require.NoError(t, e.SetStatus(0, cs[3].ID, engine.StatusReady))
	require.NoError(t, e.Decide(&engine.Query{Key: 1}, &d))
	assert.Equal(t, cs[3].ID, d.ID)
	require.NoError(t, e.SetCandidates(0, nil))
	require.ErrorIs(t, e.Decide(&engine.Query{Key: 1}, &d), engine.ErrNoCandidates)
}

// flipsAllocateNothing is about the tables: decisions have a test of their own for every policy.
func flipsAllocateNothing(t *testing.T, mk tableMaker) {
	t.Helper()
	cs, _ := fixture(64)
	e, err := fresh(mk, cs)
	require.NoError(t, err)
	flip := func() {
		for _, st := range []engine.Status{engine.StatusDraining, engine.StatusReady} {
			_ = e.SetStatus(0, cs[40].ID, st)
		}
	}
	flip()
	assert.Zero(t, testing.AllocsPerRun(50, flip))
}
