package policy

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// zoneLaws are what the division among localities must keep. Each says what breaks it.
var zoneLaws = map[string]func(rule zoner, c LocalityConfig, cs []engine.Candidate) error{
	"the shares are those of the definition": func(rule zoner, c LocalityConfig, cs []engine.Candidate) error {
		got, want := rule(c, cs), zoneTwin("")(c, cs)
		for i := range cs {
			if got.each[i].Cmp(want.each[i]) != 0 {
				return fmt.Errorf("candidate %d has %s, want %s", i, got.each[i], want.each[i])
			}
		}
		return nil
	},
	"each locality is given its part of the capacity by all callers together": func(rule zoner, c LocalityConfig, cs []engine.Candidate) error {
		if c.Zone == "" {
			return nil
		}
		for priority := range rule(c, cs).within {
			room, total := rooms(c, cs, priority, "")
			given, callers := map[uint32]*big.Rat{}, crowd(c, room)
			if sum(callers).Sign() == 0 {
				continue // they are all elsewhere
			}
			for l := range room {
				given[l] = new(big.Rat)
			}
			for l, part := range callers {
				if part.Sign() == 0 {
					continue
				}
				there := c
				there.Zone = zoneNames[l]
				for to, share := range rule(there, cs).within[priority] {
					given[to].Add(given[to], new(big.Rat).Mul(share, part))
				}
			}
			for l := range room {
				if want := new(big.Rat).Quo(room[l], total); given[l].Cmp(want) != 0 {
					return fmt.Errorf("locality %s has %s of priority %d, want %s", zoneNames[l], given[l], priority, want)
				}
			}
		}
		return nil
	},
	"taking a member down never raises its locality's share, unless panic begins": func(rule zoner, c LocalityConfig, cs []engine.Candidate) error {
		before := rule(c, cs)
		for i, x := range cs {
			worse := slices.Clone(cs)
			worse[i].Status = engine.StatusUnavailable
			after := rule(c, worse)
			was, is := before.within[x.Priority][x.Locality], after.within[x.Priority][x.Locality]
			began := after.regimes[x.Priority] == engine.RegimePanic && before.regimes[x.Priority] != engine.RegimePanic
			if x.Status.Eligible() && is != nil && !began && is.Cmp(was) > 0 {
				return fmt.Errorf("with candidate %d down, its locality goes from %s to %s", i, was, is)
			}
		}
		return nil
	},
	"a locality keeps its capacity until overprovisioning is used up": func(rule zoner, c LocalityConfig, cs []engine.Candidate) error {
		c.Zone, c.Callers = "", nil
		got := rule(c, cs)
		for priority, within := range got.within {
			room, total := rooms(c, cs, priority, "")
			for l := range room {
				if new(big.Rat).Mul(within[l], total).Cmp(room[l]) != 0 {
					return fmt.Errorf("locality %s has %s of %s, want %s", zoneNames[l], within[l], total, room[l])
				}
			}
		}
		return nil
	},
	"the caller's own locality keeps all it can of its callers' queries": func(rule zoner, c LocalityConfig, cs []engine.Candidate) error {
		home := engine.LocalityOf(c.Zone)
		got := rule(c, cs)
		for priority, within := range got.within {
			room, total := rooms(c, cs, priority, "")
			if room[home] == nil || c.Zone == "" || got.regimes[priority] == engine.RegimePanic {
				continue
			}
			keep := least(rat(1, 1), new(big.Rat).Quo(room[home], new(big.Rat).Mul(total, crowd(c, room)[home])))
			if within[home].Cmp(keep) != 0 {
				return fmt.Errorf("home keeps %s, could keep %s", within[home], keep)
			}
		}
		return nil
	},
}

var zoneNames = func() map[uint32]string {
	names := map[uint32]string{}
	for i := range 8 {
		name := fmt.Sprint("zone-", i)
		names[engine.LocalityOf(name)] = name
	}
	return names
}()

func sum(xs map[uint32]*big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, x := range xs {
		total.Add(total, x)
	}
	return total
}

func holdsInZones(law string, rule zoner) error {
	for seed := range uint64(1000) {
		c, cs := drawnZones(rand.New(rand.NewPCG(seed, 2)))
		if err := zoneLaws[law](rule, c, cs); err != nil {
			return fmt.Errorf("fleet %d: %w", seed, err)
		}
	}
	return nil
}

func TestLocalityKeepsItsLaws(t *testing.T) {
	for law := range zoneLaws {
		assert.NoError(t, holdsInZones(law, zoned), law)
	}
}

func TestTheLocalityLawsNoticePlantedFaults(t *testing.T) {
	for fault, law := range map[string]string{
		"the whole weight of whoever has one up": "a locality keeps its capacity until overprovisioning is used up",
		"eligible weight alone":                  "a locality keeps its capacity until overprovisioning is used up",
		"spill by capacity":                      "each locality is given its part of the capacity by all callers together",
		"home keeps all while it has any":        "the caller's own locality keeps all it can of its callers' queries",
	} {
		assert.NoError(t, holdsInZones(law, zoneTwin("")), "the twin keeps: %s", law)
		assert.Error(t, holdsInZones(law, zoneTwin(fault)), fault)
		assert.Error(t, holdsInZones("the shares are those of the definition", zoneTwin(fault)), fault)
	}
	rising := func(c LocalityConfig, cs []engine.Candidate) spreading {
		o := zoneTwin("")(c, cs)
		for _, within := range o.within {
			for l := range within {
				within[l] = new(big.Rat).Sub(rat(1, 1), within[l])
			}
		}
		return o
	}
	assert.Error(t, holdsInZones("taking a member down never raises its locality's share, unless panic begins", rising))
}

// A machine that has been through churn decides from the same tables as a fresh one.
func TestAnAgedLocalityHasTheTablesOfAFreshOne(t *testing.T) {
	for _, zone := range []string{"", "zone-1"} {
		c := LocalityConfig{GroupConfig: DefaultGroups(7), Zone: zone}
		p, err := NewLocality(c)
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		r := rand.New(rand.NewPCG(3, 4))
		rebuilt := map[string]bool{}
		for range 200 {
			_, cs := drawnZones(r)
			require.NoError(t, e.SetCandidates(0, cs))
			for range 4 {
				i := r.IntN(len(cs))
				cs[i].Status = engine.Status(r.IntN(3))
				require.NoError(t, e.SetStatus(0, cs[i].ID, cs[i].Status))
				aged, fresh := zoneTables(p, len(cs)), zoned(c, cs)
				require.Equal(t, fresh.text(), aged.text())
				rebuilt[aged.text()] = true
			}
		}
		assert.Greater(t, len(rebuilt), 100, "the churn must matter")
	}
}

// A block brought back decides as the one it was taken from, after churn and between changes.
func TestARestoredLocalityDrawsAsBefore(t *testing.T) {
	p, err := NewLocality(LocalityConfig{GroupConfig: DefaultGroups(7), Zone: "zone-1"})
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		_, cs := drawnZones(r)
		require.NoError(t, e.SetCandidates(0, cs))
		_ = e.SetStatus(0, cs[0].ID, engine.StatusReady)
		block, err := e.Snapshot(nil)
		require.NoError(t, err)
		var first, second [20]engine.Decision
		for i := range first {
			require.NoError(t, e.Decide(&engine.Query{}, &first[i]))
		}
		require.NoError(t, e.Restore(block))
		for i := range second {
			require.NoError(t, e.Decide(&engine.Query{}, &second[i]))
		}
		require.Equal(t, first, second)
		require.NoError(t, e.SetStatus(0, cs[0].ID, engine.StatusDraining), "and the tables are still of this set")
	}
}
