package policy_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/prng"
	"github.com/headroom-lb/headroom/engine/policy"
)

// reportedTwin is the rule as it is written down: a map, big numbers and one visit at a time.
type reportedTwin struct {
	c       policy.WeightedRoundRobinConfig
	fault   string
	rand    uint64
	fleet   []engine.Candidate
	state   map[engine.ID]*reportedState
	weighed bool
	at      engine.Instant
	started bool
	turn    int // slot
	visited int
}

type reportedState struct {
	weight         *big.Int // nil if none
	since, updated engine.Instant
	part, saved    uint64
}

const twinTurn = 1 << 30

func (w *reportedTwin) changeTo(fleet []engine.Candidate) {
	next := map[engine.ID]*reportedState{}
	for _, c := range fleet {
		next[c.ID] = w.state[c.ID]
		if next[c.ID] == nil {
			next[c.ID] = &reportedState{}
		}
		if !c.Status.Eligible() && w.fault != "no blackout after a drain" {
			next[c.ID].weight = nil
		}
	}
	if last := w.turn - 1; w.started && last >= 0 && last < len(w.fleet) {
		if to := slices.IndexFunc(fleet, func(c engine.Candidate) bool { return c.ID == w.fleet[last].ID }); to >= 0 {
			w.turn = to + 1
		} else {
			w.turn = last
		}
	}
	w.fleet, w.state, w.weighed = slices.Clone(fleet), next, false
}

func (w *reportedTwin) report(now engine.Instant, id engine.ID, l engine.LoadReport) {
	s := w.state[id]
	i := slices.IndexFunc(w.fleet, func(c engine.Candidate) bool { return c.ID == id })
	if i < 0 || !w.fleet[i].Status.Eligible() || l.QPS == 0 || l.Utilization == 0 {
		return
	}
	if w.fault == "errors are free" {
		l.EPS = 0
	}
	qps, used, failed := big.NewInt(int64(l.QPS)), big.NewInt(int64(min(l.Utilization, 1<<31))), big.NewInt(int64(min(l.EPS, l.QPS)))
	under := new(big.Int).Mul(used, qps)
	under.Add(under, failed.Mul(failed, new(big.Int).SetUint64(w.c.ErrorPenalty)))
	weight := new(big.Int).Mul(qps, qps)
	weight.Mul(weight, big.NewInt(10_000_000)).Quo(weight, under)
	if weight.Sign() == 0 {
		weight.SetInt64(1)
	}
	if s.weight == nil || now-s.updated >= engine.Instant(w.c.Expiration) {
		s.since = now
	}
	s.weight, s.updated = weight, now
}

func (w *reportedTwin) usable(now engine.Instant, s *reportedState) *big.Int {
	if s.weight == nil || now-s.updated >= engine.Instant(w.c.Expiration) && w.fault != "never expires" || now-s.since < engine.Instant(w.c.Blackout) && w.fault != "no blackout" {
		return nil
	}
	return s.weight
}

func (w *reportedTwin) weigh(now engine.Instant) {
	sum, known, largest := new(big.Int), int64(0), new(big.Int)
	for _, c := range w.fleet {
		if weight := w.usable(now, w.state[c.ID]); c.Status.Eligible() && weight != nil {
			known++
			sum.Add(sum, weight)
			if weight.Cmp(largest) > 0 {
				largest.Set(weight)
			}
		}
	}
	mean := new(big.Int)
	if known >= 2 {
		mean.Quo(sum, big.NewInt(known))
	}
	if most := new(big.Int).Mul(mean, big.NewInt(10)); largest.Cmp(most) > 0 && w.fault != "no cut" {
		largest = most
	}
	floor := new(big.Int).Quo(mean, big.NewInt(100))
	for _, c := range w.fleet {
		if !c.Status.Eligible() {
			continue
		}
		s := w.state[c.ID]
		part := uint64(twinTurn)
		if known >= 2 {
			weight := w.usable(now, s)
			if weight == nil {
				weight = mean
				if w.fault == "the unknown have the most" {
					weight = largest
				}
			}
			for _, bound := range []*big.Int{floor, big.NewInt(1)} {
				if weight.Cmp(bound) < 0 {
					weight = bound
				}
			}
			if weight.Cmp(largest) > 0 {
				weight = largest
			}
			scaled := new(big.Int).Mul(weight, big.NewInt(twinTurn))
			scaled.Add(scaled, new(big.Int).Quo(largest, big.NewInt(2)))
			part = scaled.Quo(scaled, largest).Uint64()
		}
		if s.part == 0 {
			s.saved = uint64(prng.Below(&w.rand, twinTurn))
		}
		s.part = part
	}
	w.weighed, w.at = true, now
}

func (w *reportedTwin) decide(now engine.Instant, tried []engine.ID) (uint32, error) {
	open := func(c engine.Candidate) bool { return c.Status.Eligible() && !slices.Contains(tried, c.ID) }
	switch {
	case len(w.fleet) == 0:
		return 0, engine.ErrNoCandidates
	case !slices.ContainsFunc(w.fleet, open):
		return 0, engine.ErrNoneEligible
	}
	if !w.weighed || now-w.at >= engine.Instant(w.c.Update) || w.fault == "weights at once" {
		w.weigh(now)
	}
	if !w.started {
		w.turn, w.started = int(prng.Below(&w.rand, uint32(len(w.fleet)))), true
	}
	w.visited = 0
	for {
		if w.turn >= len(w.fleet) {
			w.turn = 0
		}
		c := w.fleet[w.turn]
		w.turn++
		s := w.state[c.ID]
		if !open(c) {
			if w.fault == "the avoided save up" && c.Status.Eligible() {
				s.saved = min(s.saved+s.part, twinTurn-1)
			}
			continue
		}
		w.visited++
		if s.saved += s.part; s.saved >= twinTurn {
			s.saved -= twinTurn
			return uint32(w.turn - 1), nil
		}
	}
}

// againstReportedTwin walks a machine and its twin through reports, churn and time and returns
// where they part, and the most visits that one decision took.
func againstReportedTwin(seed uint64, fault string, steps int) (visited int, err error) {
	r := rand.New(rand.NewPCG(seed, 2))
	c := policy.DefaultWeightedRoundRobin(seed)
	if seed%3 == 1 {
		c.Blackout, c.ErrorPenalty = 0, 25000
	}
	p, err := policy.NewWeightedRoundRobin(c)
	if err != nil {
		return 0, err
	}
	e := engine.New(p, engine.Config{})
	twin := &reportedTwin{c: c, fault: fault, rand: seed}
	spread := []int{3, 100, 1 << 20, 1 << 31}[seed%4]
	now := engine.Instant(seed) * 1000
	var fleet []engine.Candidate
	for i := range steps {
		now += engine.Instant(engine.Millisecond) * engine.Instant([]int{0, 3, 60, 400}[r.IntN(4)])
		switch op := r.IntN(1000); {
		case op < 4 || i == 0:
			wanted := r.IntN(24)
			fleet = fleet[:0]
			for _, name := range r.Perm(24)[:wanted] {
				fleet = append(fleet, engine.Candidate{ID: engine.ID(name), Status: engine.Status(r.IntN(8) / 6)})
			}
			if err := e.SetCandidates(now, fleet); err != nil {
				return visited, err
			}
			twin.changeTo(fleet)
		case op < 14 && len(fleet) > 0:
			c := &fleet[r.IntN(len(fleet))]
			st := engine.Status(r.IntN(6) / 4)
			same := st == c.Status
			c.Status = st
			if err := e.SetStatus(now, c.ID, st); err != nil {
				return visited, err
			}
			if !same {
				twin.changeTo(fleet)
			}
		case op < 16: // long enough for weights to expire, at times
			now += engine.Instant(engine.Second) * engine.Instant(r.IntN(250))
		case op < 20: // a restored machine goes on as if nothing had been
			block, err := e.Snapshot(nil)
			if err != nil {
				return visited, err
			}
			if err := e.Restore(block); err != nil {
				return visited, err
			}
		case op < 500 && len(fleet) > 0:
			l := engine.LoadReport{Utilization: uint32(r.IntN(15000)), QPS: uint32(r.IntN(spread)), EPS: uint32(r.IntN(spread) / 8)}
			id := fleet[r.IntN(len(fleet)*5/6+1)%len(fleet)].ID
			if err := e.RecordLoad(now, id, l); err != nil {
				return visited, err
			}
			twin.report(now, id, l)
		default:
			q := engine.Query{Now: now}
			for range max(0, r.IntN(8)-4) {
				q.Tried = append(q.Tried, engine.ID(r.IntN(24)))
			}
			var d engine.Decision
			want, wantErr := twin.decide(now, q.Tried)
			visited = max(visited, twin.visited)
			err := e.Decide(&q, &d)
			if !errors.Is(err, wantErr) || err == nil && d.Index != want {
				return visited, fmt.Errorf("step %d: decided %d (%w), the twin %d (%w)", i, d.Index, err, want, wantErr)
			}
		}
	}
	return visited, nil
}

func TestTheReportedRotationDecidesAsItsTwinDoes(t *testing.T) {
	visited := 0
	for seed := range uint64(36) {
		most, err := againstReportedTwin(seed, "", 6000)
		require.NoError(t, err, "seed %d", seed)
		visited = max(visited, most)
	}
	assert.Greater(t, visited, 24*5, "some decisions took many rounds of visits, which the policy leaps over")
}

func TestTheReportedTwinNoticesPlantedFaults(t *testing.T) {
	for _, fault := range []string{
		"no blackout", "no blackout after a drain", "never expires", "weights at once", "errors are free",
		"the unknown have the most", "no cut", "the avoided save up",
	} {
		noticed := false
		for seed := uint64(0); seed < 12 && !noticed; seed++ {
			_, err := againstReportedTwin(seed, fault, 6000)
			noticed = err != nil
		}
		assert.True(t, noticed, fault)
	}
}
