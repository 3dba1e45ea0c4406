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

// groupLaws are what the shares of priorities must keep. Each says what breaks it.
var groupLaws = map[string]func(rule ruler, c GroupConfig, cs []engine.Candidate) error{
	"the shares are those of the definition": func(rule ruler, c GroupConfig, cs []engine.Candidate) error {
		got, want := rule(c, cs), twin("")(c, cs)
		for i := range cs {
			if got.each[i].Cmp(want.each[i]) != 0 {
				return fmt.Errorf("candidate %d has %s, want %s", i, got.each[i], want.each[i])
			}
		}
		return nil
	},
	"nothing is lost": func(rule ruler, c GroupConfig, cs []engine.Candidate) error {
		total := new(big.Rat)
		for _, share := range rule(c, cs).each {
			total.Add(total, share)
		}
		if up := slices.ContainsFunc(cs, func(x engine.Candidate) bool { return x.Status.Eligible() }); up && total.Cmp(rat(1, 1)) != 0 {
			return fmt.Errorf("all shares come to %s", total)
		}
		return nil
	},
	"no priority is given more than it can take, nor a later one load that an earlier could": func(rule ruler, c GroupConfig, cs []engine.Candidate) error {
		got, groups, total := rule(c, cs), sides(c, cs, ""), new(big.Rat)
		for _, s := range groups {
			total.Add(total, s.effective)
		}
		if total.Cmp(rat(1, 1)) < 0 {
			return nil
		}
		full := true
		for _, s := range groups {
			share := got.shares[s.priority]
			if share.Cmp(s.effective) > 0 || !full && share.Sign() > 0 {
				return fmt.Errorf("priority %d has %s and can take %s", s.priority, share, s.effective)
			}
			full = full && share.Cmp(s.effective) == 0
		}
		return nil
	},
	"what all are short of is shared in proportion, and whoever is up has a share": func(rule ruler, c GroupConfig, cs []engine.Candidate) error {
		got, groups, total := rule(c, cs), sides(c, cs, ""), new(big.Rat)
		for _, s := range groups {
			total.Add(total, s.effective)
		}
		for _, s := range groups {
			if share := got.shares[s.priority]; total.Cmp(rat(1, 1)) < 0 && total.Sign() > 0 && new(big.Rat).Mul(share, total).Cmp(s.effective) != 0 {
				return fmt.Errorf("priority %d has %s of an effective %s in %s", s.priority, share, s.effective, total)
			}
		}
		return nil
	},
	"taking a member down never raises its priority's share, nor lowers another's": func(rule ruler, c GroupConfig, cs []engine.Candidate) error {
		before := rule(c, cs)
		for i, x := range cs {
			if !x.Status.Eligible() {
				continue
			}
			worse := slices.Clone(cs)
			worse[i].Status = engine.StatusUnavailable
			if !slices.ContainsFunc(worse, func(x engine.Candidate) bool { return x.Status.Eligible() }) {
				continue
			}
			after := rule(c, worse)
			for priority, share := range after.shares {
				if d := share.Cmp(before.shares[priority]); priority == x.Priority && d > 0 || priority != x.Priority && d < 0 {
					return fmt.Errorf("with candidate %d down, priority %d goes from %s to %s", i, priority, before.shares[priority], share)
				}
			}
		}
		return nil
	},
	"panic is below the threshold while all are short, and other decisions past the first priority are spill": func(rule ruler, c GroupConfig, cs []engine.Candidate) error {
		got, groups, total := rule(c, cs), sides(c, cs, ""), new(big.Rat)
		for _, s := range groups {
			total.Add(total, s.effective)
		}
		if total.Sign() == 0 {
			return nil
		}
		for i, s := range groups {
			want := engine.RegimeDirect
			if total.Cmp(rat(1, 1)) < 0 && s.eligible*10000 < s.members*c.PanicThreshold {
				want = engine.RegimePanic
			} else if i > 0 {
				want = engine.RegimeSpill
			}
			if got.regimes[s.priority] != want {
				return fmt.Errorf("priority %d decides in %s, want %s", s.priority, got.regimes[s.priority], want)
			}
		}
		return nil
	},
}

func holdsOften(law string, rule ruler) error {
	for seed := range uint64(1000) {
		c, cs := drawnFleet(rand.New(rand.NewPCG(seed, 1)))
		if err := groupLaws[law](rule, c, cs); err != nil {
			return fmt.Errorf("fleet %d: %w", seed, err)
		}
	}
	return nil
}

func TestPriorityKeepsItsLaws(t *testing.T) {
	for law := range groupLaws {
		assert.NoError(t, holdsOften(law, ruled), law)
	}
}

func TestThePriorityLawsNoticePlantedFaults(t *testing.T) {
	for fault, law := range map[string]string{
		"draining ones are members":            "the shares are those of the definition",
		"in proportion though there is enough": "no priority is given more than it can take, nor a later one load that an earlier could",
		"millionths":                           "what all are short of is shared in proportion, and whoever is up has a share",
		"panic keeps its load":                 "taking a member down never raises its priority's share, nor lowers another's",
		"panic with enough elsewhere":          "panic is below the threshold while all are short, and other decisions past the first priority are spill",
		"panic at the threshold":               "panic is below the threshold while all are short, and other decisions past the first priority are spill",
		"spill by number":                      "panic is below the threshold while all are short, and other decisions past the first priority are spill",
	} {
		assert.NoError(t, holdsOften(law, twin("")), "the twin keeps: %s", law)
		assert.Error(t, holdsOften(law, twin(fault)), fault)
	}
	lossy := func(c GroupConfig, cs []engine.Candidate) outcome {
		o := twin("")(c, cs)
		o.each[0] = new(big.Rat)
		return o
	}
	assert.Error(t, holdsOften("nothing is lost", lossy))
}

// 256 partly available priorities of the largest weights: the denominator has 12,000 bits.
func TestSharesAreExactForAsManyPrioritiesAsThereCanBe(t *testing.T) {
	cs := make([]engine.Candidate, 0, 512)
	for i := range 256 {
		w := engine.Weight(1<<32 - 1 - 2*i)
		cs = append(cs, engine.Candidate{ID: engine.ID(i), Weight: w, Priority: uint8(i), Status: engine.StatusUnavailable},
			engine.Candidate{ID: engine.ID(1000 + i), Weight: 1 + engine.Weight(i)%3, Priority: uint8(i)})
	}
	for _, over := range []uint64{14000, 1000000} {
		c := DefaultGroups(1)
		c.Overprovision = over
		require.NoError(t, groupLaws["the shares are those of the definition"](ruled, c, cs))
	}
}

// A machine that has been through churn decides from the same tables as a fresh one.
func TestAnAgedPriorityHasTheTablesOfAFreshOne(t *testing.T) {
	p, err := NewPriority(DefaultGroups(7))
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	r := rand.New(rand.NewPCG(3, 4))
	rebuilt := map[string]bool{}
	for range 300 {
		_, cs := drawnFleet(r)
		require.NoError(t, e.SetCandidates(0, cs))
		for range 4 {
			i := r.IntN(len(cs))
			cs[i].Status = engine.Status(r.IntN(3))
			require.NoError(t, e.SetStatus(0, cs[i].ID, cs[i].Status))
			aged, fresh := tables(&p.g, len(cs)), ruled(DefaultGroups(7), cs)
			require.Equal(t, fresh.text(), aged.text())
			rebuilt[aged.text()] = true
		}
	}
	assert.Greater(t, len(rebuilt), 100, "the churn must matter")
}
