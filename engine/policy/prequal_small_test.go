package policy

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// smallPolicy is a policy that lends its set to a pool of four and decides nothing.
type smallPolicy struct {
	engine.Base
	pool probe.Pool
}

func (*smallPolicy) Name() string                            { return "smallPolicy" }
func (*smallPolicy) Spec() string                            { return "smallPolicy" }
func (p *smallPolicy) Layout() engine.Layout                 { return engine.Layout{Fixed: p.pool.Words()} }
func (*smallPolicy) Decide(engine.Instant, engine.Key) error { return nil }
func (p *smallPolicy) Changed()                              { p.pool.Changed() }
func (p *smallPolicy) Bind(w []uint64, s *engine.Set, fresh bool) {
	p.Set = s
	p.pool.Bind(w, s, fresh)
}

// smallEntry is an entry of a small scope.
type smallEntry struct {
	rif uint32
	lat engine.Duration
	at  engine.Instant
	tie uint64
}

// smallOrder is the rule in the design's words, weighed over some slots: a total order.
func smallOrder(of []smallEntry, among []int, t uint32, fault string) func(i, j int) int {
	lat := smallLatencies(of, among, fault)
	hot := func(i int) int {
		if t != engine.NoThreshold && (of[i].rif > t || fault == "hot at the threshold" && of[i].rif == t) {
			return 1
		}
		return 0
	}
	return func(i, j int) int {
		switch {
		case hot(i) != hot(j):
			return cmp.Compare(hot(i), hot(j))
		case (hot(i) == 1 || fault == "cold by RIF") && of[i].rif != of[j].rif:
			return cmp.Compare(of[i].rif, of[j].rif)
		case lat[i] != lat[j]:
			return cmp.Compare(lat[i], lat[j])
		case of[i].rif != of[j].rif && fault != "RIF does not settle":
			return cmp.Compare(of[i].rif, of[j].rif)
		case of[i].at != of[j].at && fault != "older first":
			return cmp.Compare(of[j].at, of[i].at)
		case of[i].at != of[j].at:
			return cmp.Compare(of[i].at, of[j].at)
		}
		return cmp.Compare(of[i].tie, of[j].tie)
	}
}

// smallBest is the slot that decides among some slots.
func smallBest(of []smallEntry, among []int, t uint32, fault string) int {
	return smallFirst(among, smallOrder(of, among, t, fault))
}

// smallWorst is who is removed: every other precedes it.
func smallWorst(of []smallEntry, among []int, t uint32, fault string) int {
	if fault == "removes the oldest" {
		return smallFirst(among, func(i, j int) int { return cmp.Compare(of[i].at, of[j].at) })
	}
	order := smallOrder(of, among, t, fault)
	return smallFirst(among, func(i, j int) int { return order(j, i) })
}

// smallLatencies are as ranked: unknown is the lower median of the known ones.
func smallLatencies(of []smallEntry, among []int, fault string) (out [4]engine.Duration) {
	known := make([]engine.Duration, 0, len(out))
	for _, i := range among {
		if of[i].lat != engine.UnknownLatency {
			known = append(known, of[i].lat)
		}
	}
	median := engine.UnknownLatency
	for _, l := range known { // the least that at least half are not above
		n := 0
		for _, k := range known {
			if k <= l {
				n++
			}
		}
		if 2*n >= len(known) && (median == engine.UnknownLatency || l < median) {
			median = l
		}
	}
	if fault == "unknown is fastest" {
		median = engine.UnknownLatency
	}
	for i := range of {
		if out[i] = of[i].lat; out[i] == engine.UnknownLatency {
			out[i] = median
		}
	}
	return out
}

// smallFirst is the one that no other precedes.
func smallFirst(among []int, order func(i, j int) int) int {
	at := among[0]
	for _, i := range among[1:] {
		if order(i, at) < 0 {
			at = i
		}
	}
	return at
}

// smallScopes tries every pool of n entries with RIF 0 to 3 and latency 0 to 3 or unknown, at
// every threshold from 0 to 3 and none, received at one instant and one after the other.
func smallScopes(t *testing.T, n int, fault string) (tried int, found error) {
	p := &smallPolicy{}
	p.pool.Init(4, 1, hotCold)
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, fleet(n)))
	of, all := make([]smallEntry, n), make([]int, n)
	for i := range all {
		all[i] = i
	}
	build := func(threshold uint32) {
		for p.pool.Len() > 0 {
			p.pool.RemoveOldest()
		}
		p.pool.SetThreshold(threshold)
		for i := range of {
			p.pool.Record(of[i].at, &probe.Incoming{Slot: uint32(i), Uses: 2, RIF: of[i].rif, Latency: of[i].lat, Asked: of[i].at})
		}
	}
	var entries []engine.Entry
	var want []int
	vectors := 1
	for range n {
		vectors *= 20
	}
	for v := range vectors {
		for together := range engine.Instant(2) {
			known := true
			for i, rest := 0, v; i < n; i, rest = i+1, rest/20 {
				of[i] = smallEntry{uint32(rest % 4), engine.Duration(rest/4%5 - 1), engine.Instant(i) * together, p.Set.Tie(uint32(i))}
				known = known && of[i].lat != engine.UnknownLatency
			}
			for _, threshold := range []uint32{0, 1, 2, 3, engine.NoThreshold} {
				tried++
				wrong := func(what string, got uint32, want int) error {
					return fmt.Errorf("%s: %d, want %d of %v at threshold %d", what, got, want, of, threshold)
				}
				decides, leaves := smallBest(of, all, threshold, fault), smallWorst(of, all, threshold, fault)
				build(threshold)
				o := p.pool.Offered()
				p.pool.Take(10, o.Best, o.Entries, o.Cold)
				if got := p.Set.Out.Index; got != uint32(decides) {
					return tried, wrong("step by step decides", got, decides)
				}
				if known && n > 1 {
					build(threshold)
					if !p.pool.Serve(10, probe.Nobody) || p.Set.Out.Index != uint32(decides) {
						return tried, wrong("in one go decides", p.Set.Out.Index, decides)
					}
				}
				build(threshold)
				p.pool.RemoveWorst()
				entries = p.pool.Entries(10, engine.Second, entries[:0])
				if len(entries) != n-1 || slices.ContainsFunc(entries, func(e engine.Entry) bool { return int(e.ID) == leaves }) {
					return tried, wrong("removes somebody else", uint32(len(entries)), leaves)
				}
				want = want[:0]
				for _, i := range all {
					if i != leaves {
						want = append(want, i)
					}
				}
				if known && n > 1 {
					build(threshold)
					next := smallBest(of, want, threshold, fault)
					if !p.pool.Serve(10, probe.Worst) || p.Set.Out.Index != uint32(next) || p.Set.Out.Offered != uint32(n-1) {
						return tried, wrong("in one go removes and decides", p.Set.Out.Index, next)
					}
				}
			}
		}
	}
	return tried, nil
}

func TestHotColdIsRightInEverySmallPool(t *testing.T) {
	most, total := 4, 0
	if testing.Short() {
		most = 3
	}
	for n := 1; n <= most; n++ {
		tried, err := smallScopes(t, n, "")
		require.NoError(t, err)
		total += tried
	}
	t.Logf("%d pools", total)
}

// The scan must be able to fail.
func TestSmallPoolsShowEveryPlantedFault(t *testing.T) {
	for _, fault := range []string{
		"hot at the threshold", "cold by RIF", "RIF does not settle", "older first", "unknown is fastest", "removes the oldest",
	} {
		_, err := smallScopes(t, 3, fault)
		assert.Error(t, err, fault)
	}
}
