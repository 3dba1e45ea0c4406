package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/prng"
	"github.com/headroom-lb/headroom/engine/policy"
)

// smoothTwin is the rule as it is written down, a map and a loop; fault plants an error.
type smoothTwin struct {
	fleet  []engine.Candidate
	credit map[engine.ID]int64
	zero   bool
	rand   uint64
	fault  string
}

func (s *smoothTwin) change(fleet []engine.Candidate) {
	s.fleet = slices.Clone(fleet)
	next := map[engine.ID]int64{}
	total, all, sum, known := int64(0), int64(0), int64(0), int64(0)
	for _, c := range s.fleet {
		all += int64(max(1, c.Weight))
		credit, ok := s.credit[c.ID]
		if ok && (s.fault != "forgets the drained" || c.Status.Eligible()) {
			next[c.ID] = credit
		}
		if c.Status.Eligible() {
			total += int64(max(1, c.Weight))
			if ok {
				sum, known = sum+credit, known+1
			}
		}
	}
	mean := int64(0)
	if known > 0 && s.fault != "measures from nothing" {
		mean = sum / known
		if sum%known < 0 {
			mean--
		}
	}
	for _, c := range s.fleet {
		credit, ok := next[c.ID]
		most := total
		if !c.Status.Eligible() {
			most = all
		}
		switch {
		case ok && s.fault == "does not cut":
			next[c.ID] = credit - mean
		case ok:
			next[c.ID] = min(max(credit-mean, -most), most)
		case c.Status.Eligible() && s.zero:
			next[c.ID] = 0
		case c.Status.Eligible():
			next[c.ID] = int64(prng.Below64(&s.rand, uint64(total))) - total/2
		}
	}
	s.credit = next
}

func (s *smoothTwin) decide(tried []engine.ID) (uint32, error) {
	if len(s.fleet) == 0 {
		return 0, engine.ErrNoCandidates
	}
	best, given := -1, int64(0)
	for i, c := range s.fleet {
		if !c.Status.Eligible() {
			continue
		}
		if slices.Contains(tried, c.ID) {
			if s.fault == "the avoided gain too" {
				s.credit[c.ID] += int64(max(1, c.Weight))
			}
			continue
		}
		given += int64(max(1, c.Weight))
		s.credit[c.ID] += int64(max(1, c.Weight))
		if best < 0 || s.credit[c.ID] > s.credit[s.fleet[best].ID] || s.fault == "the last of equals" && s.credit[c.ID] == s.credit[s.fleet[best].ID] {
			best = i
		}
	}
	if best < 0 {
		return 0, engine.ErrNoneEligible
	}
	if s.fault == "pays less" {
		given--
	}
	s.credit[s.fleet[best].ID] -= given
	return uint32(best), nil
}

// againstSmoothTwin walks a machine and its twin through churn and returns where they part.
func againstSmoothTwin(seed uint64, start, fault string, steps int) error {
	r := rand.New(rand.NewPCG(seed, 1))
	p, err := policy.NewSmoothWeightedRoundRobin(seed, start)
	if err != nil {
		return err
	}
	e := engine.New(p, engine.Config{})
	twin := &smoothTwin{zero: start == "zero", rand: seed, fault: fault}
	largest := []int{1, 3, 5, 1000, 1 << 32}[seed%5]
	most := 30
	if seed%8 == 7 { // so many change their place at once that all are sorted
		most = 150
	}
	var fleet []engine.Candidate
	for i := range steps {
		switch op := r.IntN(100); {
		case op == 0 || i == 0:
			names, wanted := r.Perm(most), r.IntN(most)
			fleet = fleet[:0]
			for _, name := range names[:wanted] {
				fleet = append(fleet, engine.Candidate{ID: engine.ID(name), Weight: engine.Weight(r.IntN(largest)), Status: engine.Status(r.IntN(8) / 6)})
			}
			if err := e.SetCandidates(0, fleet); err != nil {
				return err
			}
			twin.change(fleet)
		case op < 6 && len(fleet) > 0:
			c := &fleet[r.IntN(len(fleet))]
			if st := engine.Status(r.IntN(3)); st != c.Status {
				c.Status = st
				if err := e.SetStatus(0, c.ID, st); err != nil {
					return err
				}
				twin.change(fleet)
			}
		case op == 6: // a restored machine goes on as if nothing had been
			block, err := e.Snapshot(nil)
			if err != nil {
				return err
			}
			if err := e.Restore(block); err != nil {
				return err
			}
		case op < 10 && len(fleet) > 0: // one leaves, comes, moves or weighs anew
			fleet = changeOne(r, fleet, most, largest)
			if err := e.SetCandidates(0, fleet); err != nil {
				return err
			}
			twin.change(fleet)
		default:
			q := engine.Query{}
			for range max(0, r.IntN(8)-4) {
				q.Tried = append(q.Tried, engine.ID(r.IntN(most)))
			}
			var d engine.Decision
			want, wantErr := twin.decide(q.Tried)
			err := e.Decide(&q, &d)
			if !errors.Is(err, wantErr) || err == nil && d.Index != want {
				return fmt.Errorf("step %d: decided %d (%w), the twin %d (%w)", i, d.Index, err, want, wantErr)
			}
		}
	}
	return nil
}

func changeOne(r *rand.Rand, fleet []engine.Candidate, most, largest int) []engine.Candidate {
	at := r.IntN(len(fleet))
	c := fleet[at]
	switch r.IntN(4) {
	case 0:
		return slices.Delete(fleet, at, at+1)
	case 1:
		c.ID = engine.ID(r.IntN(most))
		if !slices.ContainsFunc(fleet, func(o engine.Candidate) bool { return o.ID == c.ID }) {
			fleet = slices.Insert(fleet, at, c)
		}
	case 2:
		other := r.IntN(len(fleet))
		fleet[at], fleet[other] = fleet[other], c
	default:
		fleet[at].Weight = engine.Weight(r.IntN(largest))
	}
	return fleet
}

func TestSmoothRotationDecidesAsItsTwinDoes(t *testing.T) {
	for seed := range uint64(40) {
		require.NoError(t, againstSmoothTwin(seed, "zero", "", 4000), "seed %d", seed)
		require.NoError(t, againstSmoothTwin(seed, "random", "", 4000), "seed %d", seed)
	}
}

func TestTheSmoothTwinNoticesPlantedFaults(t *testing.T) {
	for _, fault := range []string{"forgets the drained", "measures from nothing", "does not cut", "the avoided gain too", "the last of equals", "pays less"} {
		noticed := false
		for seed := range uint64(10) {
			noticed = noticed || againstSmoothTwin(seed, "zero", fault, 4000) != nil
		}
		assert.True(t, noticed, fault)
	}
}
