package policy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

func ringOf(points int) tableMaker {
	return func() engine.Policy {
		p, err := NewRingHash(7, points)
		if err != nil {
			panic(err)
		}
		return p
	}
}

// ringTwin sorts the whole ring for each query and walks it from the start.
func ringTwin(points int) func([]engine.Candidate, engine.Key, []engine.ID) engine.ID {
	type point struct {
		position uint64
		id       engine.ID
	}
	return func(fleet []engine.Candidate, key engine.Key, tried []engine.ID) engine.ID {
		var all []point
		for _, c := range fleet {
			if c.Status != engine.StatusReady {
				continue
			}
			start := hash.Mix(uint64(c.ID) ^ 0x72696e672e6d656d)
			for j := range points * max(1, int(c.Weight)) {
				all = append(all, point{hash.Mix(start+uint64(j+1)*0x9e3779b97f4a7c15) >> 20, c.ID})
			}
		}
		slices.SortFunc(all, func(a, b point) int {
			return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.id, b.id))
		})
		at := hash.Mix(uint64(key)^0x72696e672e6b6579) >> 20
		first := slices.IndexFunc(all, func(p point) bool { return p.position >= at })
		for i := range all {
			if p := all[(max(first, 0)+i)%len(all)]; !slices.Contains(tried, p.id) {
				return p.id
			}
		}
		return 0
	}
}

func TestARingDecidesAsItsTwin(t *testing.T) {
	for _, points := range []int{1, 3, 16} {
		underChurn(t, func(seed uint64) error { return twinLaw(ringOf(points), seed, ringTwin(points)) })
	}
}

func TestAnAgedRingEqualsAFreshOne(t *testing.T) {
	underChurn(t, func(seed uint64) error { return agedLaw(ringOf(16), seed) })
}

func TestARingDoesNotDependOnTheOrderOfCandidates(t *testing.T) {
	underChurn(t, func(seed uint64) error { return orderLaw(ringOf(16), seed) })
}

func TestARingMovesNoMoreKeysThanItMust(t *testing.T) {
	underChurn(t, func(seed uint64) error { return minimalLaw(ringOf(16), seed) })
}

// coarse puts all points on a few positions, so that many are equal.
func coarse(dst []uint64, id engine.ID, n int) []uint64 {
	from := len(dst)
	dst = ringPositions(dst, id, n)
	for i := from; i < len(dst); i++ {
		dst[i] &= 7 << 61
	}
	return dst
}

func TestPointsAtOnePositionAreInOrderOfIdentity(t *testing.T) {
	mk := func() engine.Policy {
		p := ringOf(4)().(*RingHash)
		p.ring.emit = coarse
		return p
	}
	underChurn(t, func(seed uint64) error { return orderLaw(mk, seed) })
	underChurn(t, func(seed uint64) error { return agedLaw(mk, seed) })
}

// Every array of an aged ring, not its decisions only.
func TestAPatchedRingIsTheRebuiltRing(t *testing.T) {
	underChurn(t, func(seed uint64) error {
		c := newChurn(seed)
		p := ringOf(5)().(*RingHash)
		e := engine.New(p, engine.Config{})
		for range 15 {
			if err := e.SetCandidates(0, c.fleet); err != nil {
				return err
			}
			q := ringOf(5)().(*RingHash)
			young := engine.New(q, engine.Config{})
			if err := young.SetCandidates(0, c.fleet); err != nil {
				return err
			}
			n := q.ring.len()
			if p.ring.len() != n || !slices.Equal(p.ring.points[:n], q.ring.points[:n]) || n > 0 && !slices.Equal(p.ring.starts, q.ring.starts) {
				return fmt.Errorf("%v\n%v", p.ring, q.ring)
			}
			c.change(kinds[c.IntN(6)])
		}
		return nil
	})
}

func TestTheRingLawsNoticePlantedFaults(t *testing.T) {
	aged := func(mk tableMaker) func(uint64) error { return func(s uint64) error { return agedLaw(mk, s) } }
	order := func(mk tableMaker) func(uint64) error { return func(s uint64) error { return orderLaw(mk, s) } }
	minimal := func(mk tableMaker) func(uint64) error { return func(s uint64) error { return minimalLaw(mk, s) } }
	twin := func(mk tableMaker) func(uint64) error {
		return func(s uint64) error { return twinLaw(mk, s, ringTwin(16)) }
	}
	ring := func() *RingHash { return ringOf(16)().(*RingHash) }

	deaf := func() engine.Policy { // to a change of weight
		p := ring()
		return &wrapped{Policy: p, changed: func() {
			for i, o := range p.ring.owners {
				if slot, ok := p.Set.Slot(o.id); ok && p.Set.IsEligible(slot) {
					p.ring.owners[i].weight = p.Set.Weight(slot)
				}
			}
			same := len(p.ring.owners) > 0 && slices.EqualFunc(p.ring.owners, p.Set.EligibleSlots(), func(o ringOwner, slot uint32) bool {
				return o.id == p.Set.ID(slot) && o.slot == slot
			})
			if !same {
				p.ring = ring().ring
				p.Changed()
			}
		}}
	}
	noticed(t, "a weight that is not followed", aged(deaf))
	noticed(t, "a weight that is not followed", twin(deaf))

	unordered := func() engine.Policy {
		p := ring()
		p.ring.emit = func(dst []uint64, id engine.ID, n int) []uint64 {
			slot, _ := p.Set.Slot(id)
			return ringPositions(dst, engine.ID(slot), n)
		}
		return p
	}
	noticed(t, "points by slot", order(unordered))
	noticed(t, "points by slot", minimal(unordered))

	unindexed := func() engine.Policy { // the patched ring under the index of before
		p := ring()
		return &wrapped{Policy: p, changed: func() {
			starts := slices.Clone(p.ring.starts)
			p.Changed()
			if len(starts) == len(p.ring.starts) {
				for i, at := range starts {
					p.ring.starts[i] = min(at, uint32(p.ring.len()))
				}
			}
		}}
	}
	noticed(t, "an index that is not renewed", aged(unindexed))

	misnamed := func() engine.Policy { // one of the points keeps its old slot
		p := ring()
		return &wrapped{Policy: p, changed: func() {
			p.Changed()
			if n := p.ring.len(); n > 0 && p.Set.Eligible() > 2 {
				p.ring.points[n/2] = p.ring.points[n/2]&^ringSlotMask | uint64(p.Set.EligibleSlots()[n%2])
			}
		}}
	}
	noticed(t, "a point with the slot of before", order(misnamed))
	noticed(t, "a point with the slot of before", twin(misnamed))

	gcd := func() engine.Policy {
		p := ring()
		return &wrapped{Policy: p, changed: func() {
			g := uint32(0)
			for _, slot := range p.Set.EligibleSlots() {
				for a := p.Set.Weight(slot); a != 0; {
					g, a = a, g%a
				}
			}
			p.ring = ring().ring
			p.ring.update(p.Set, 12/max(1, g))
		}}
	}
	noticed(t, "a scale that follows the weights", minimal(gcd))

	oneFurther := func() engine.Policy {
		p := ring()
		return &wrapped{Policy: p, decide: func(key engine.Key) error {
			i := p.ring.find(ringKey(key))
			if p.Set.AnyTried() {
				i++
			}
			if int(i) >= p.ring.len() {
				i = 0
			}
			p.Set.Choose(p.walk(i), engine.RegimeDirect)
			return nil
		}}
	}
	noticed(t, "a retry that skips a point", twin(oneFurther))
}

// arcs are the candidates' parts of the ring, by slot.
func arcs(p *RingHash) []float64 {
	n := p.ring.len()
	out := make([]float64, p.Set.Len())
	for i := range n {
		at := p.ring.points[i]
		out[at&ringSlotMask] += float64(ringArc(p.ring.points[(i+n-1)%n], at)) / (1 << 44)
	}
	return out
}

// spreadLaw: with k points each, parts of the ring deviate by about 1/sqrt(k) of themselves.
func spreadLaw(emit func([]uint64, engine.ID, int) []uint64) error {
	p, _ := NewRingHash(7, 128)
	p.ring.emit = emit
	e := engine.New(p, engine.Config{})
	cs, _ := fixture(512)
	if err := e.SetCandidates(0, cs); err != nil {
		return err
	}
	var sum, square [5]float64
	for i, a := range arcs(p) {
		w := cs[i].Weight
		want := float64(w) * 128 / float64(p.ring.len())
		sum[w] += a / want
		square[w] += (a/want - 1) * (a/want - 1)
	}
	for w := 1; w < 5; w++ { // 128 members of each weight
		sd := 1 / math.Sqrt(128*float64(w))
		if mean := sum[w] / 128; math.Abs(mean-1) > 6.8*sd/math.Sqrt(128) {
			return fmt.Errorf("weight %d owns %.3f of what it should", w, mean)
		}
		if got := math.Sqrt(square[w] / 128); math.Abs(got/sd-1) > 6.8/math.Sqrt(256) {
			return fmt.Errorf("parts of weight %d deviate by %.4f, not by %.4f", w, got, sd)
		}
	}
	return nil
}

func TestARingIsBalancedInProportionToWeight(t *testing.T) {
	require.NoError(t, spreadLaw(ringPositions))
	assert.Error(t, spreadLaw(func(dst []uint64, id engine.ID, n int) []uint64 { // weight in vain
		from := len(dst)
		dst = ringPositions(dst, id, n)
		for i := from + 128; i < len(dst); i++ {
			dst[i] = dst[i-128]
		}
		return dst
	}))
}

func TestKeysAndKeylessQueriesFollowTheArcs(t *testing.T) {
	cs, _ := fixture(8)
	p := ringOf(128)().(*RingHash)
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, cs))
	share := arcs(p)
	n := enginetest.Draws(slices.Min(share), 0.05)
	follows := func(key func(i int) engine.Key) (err error) {
		counts := make([]int, 8)
		var d engine.Decision
		for i := range n {
			require.NoError(t, e.Decide(&engine.Query{Key: key(i)}, &d))
			counts[d.Index]++
		}
		for i := range counts {
			err = errors.Join(err, enginetest.CheckShare(share[i], counts[i], n))
		}
		return err
	}
	assert.NoError(t, follows(func(i int) engine.Key { return engine.Key(i + 1) }))
	assert.NoError(t, follows(func(int) engine.Key { return 0 }), "without a key")
	assert.Error(t, follows(func(i int) engine.Key { return engine.Key(i%300 + 1) }), "few keys are not the ring")
}

func TestAKeyBelongsToTheFirstPointAtOrAfterIt(t *testing.T) {
	at := map[engine.ID][]uint64{1: {10 << 40, 50 << 40}, 2: {30 << 40, 1 << 63}}
	p := ringOf(2)().(*RingHash)
	p.ring.emit = func(dst []uint64, id engine.ID, _ int) []uint64 { return append(dst, at[id]...) }
	e, err := fresh(func() engine.Policy { return p }, []engine.Candidate{{ID: 1}, {ID: 2}})
	require.NoError(t, err)
	require.NotNil(t, e)
	for position, slot := range map[uint64]uint64{
		0: 0, 10 << 40: 0, 10<<40 + 1<<20: 1, 30 << 40: 1, 30<<40 + 1<<20: 0, 50 << 40: 0, 51 << 40: 1, 1 << 63: 1, 1<<63 + 1<<20: 0, 1<<64 - 1: 0,
	} {
		assert.Equal(t, slot, p.ring.points[p.ring.find(position)]&ringSlotMask, position)
	}
}

// D2 of the seed library: a ring without members divided by zero.
func TestARingOfNobodyIsEmptyAndNoDivisionIsMade(t *testing.T) { noneThenSome(t, ringOf(128)) }

// D5 of the seed library: what is said of allocation is checked.
func TestAFlipOfStatusAllocatesNothingInARing(t *testing.T) { flipsAllocateNothing(t, ringOf(128)) }

func TestARingOfTooManyPointsIsRefusedAndTheOldOneStays(t *testing.T) {
	e, err := fresh(ringOf(128), []engine.Candidate{{ID: 1}})
	require.NoError(t, err)
	for want, cs := range map[string][]engine.Candidate{
		"capacity exceeded: a total weight of 8193 at 128 points each makes 1048704 points, at most 1048576; points=127 would fit": {{ID: 2, Weight: 8192}, {ID: 3, Status: engine.StatusDraining}},
		"capacity exceeded: a total weight of 8589934590 at 128 points each makes 1099511627520 points, at most 1048576; smaller weights in the same proportion would fit": {
			{ID: 2, Weight: 1<<32 - 1}, {ID: 3, Weight: 1<<32 - 1}},
	} {
		err := e.SetCandidates(0, cs)
		require.ErrorIs(t, err, engine.ErrCapacity)
		assert.EqualError(t, err, want)
		assert.Equal(t, engine.ID(1), owner(e, 5))
	}
	require.NoError(t, e.SetCandidates(0, []engine.Candidate{{ID: 2, Weight: 8192}}), "at the bound")
	assert.Equal(t, engine.ID(2), owner(e, 5))
}

func TestRingPointsAreBounded(t *testing.T) {
	for _, points := range []int{0, -1, 4097} {
		_, err := NewRingHash(0, points)
		assert.ErrorIs(t, err, engine.ErrConfig)
	}
	p, err := Parse("ring_hash points=64 seed=3")
	require.NoError(t, err)
	assert.Equal(t, "ring_hash seed=3 points=64", p.Spec())
}

func TestClientsWithOtherSeedsAgreeOnOwners(t *testing.T) {
	cs, _ := fixture(9)
	a, err := fresh(func() engine.Policy { p, _ := Parse("ring_hash seed=1"); return p }, cs)
	require.NoError(t, err)
	b, err := fresh(func() engine.Policy { p, _ := Parse("ring_hash seed=2"); return p }, cs)
	require.NoError(t, err)
	assert.NoError(t, differ(routed(a, 300, 2), routed(b, 300, 2), "another seed"))
	assert.Error(t, differ(keyless(a), keyless(b), "keyless"), "queries without a key go apart")
}

func keyless(e *engine.Engine) (ids []engine.ID) {
	for range 50 {
		ids = append(ids, owner(e, 0))
	}
	return ids
}

func TestRingHashExplainsTheWayToEachNextPoint(t *testing.T) {
	cs, names := fixture(6)
	e, err := fresh(ringOf(128), cs)
	require.NoError(t, err)
	x := e.Explain(&engine.Query{Key: 9, Tried: []engine.ID{cs[2].ID}})
	require.NoError(t, x.Err)
	for _, w := range x.Weighed {
		if w.Verdict == engine.VerdictLost || w.Verdict == engine.VerdictRunnerUp {
			assert.Greater(t, w.Load, x.Weighed[0].Load, "the chosen one is the nearest")
		}
	}
	assert.Equal(t, engine.VerdictChosen, x.Weighed[0].Verdict)
	said := x.Sentence(func(id engine.ID) string { return names[id] })
	assert.Contains(t, said, " owns the first point at or after the key among candidates not tried; next would be backend-")
	require.Len(t, x.Notes, 1)
	assert.Regexp(t, `^owns 0\.\d+ of the ring; 0\.\d+ by weight$`, x.Notes[0])
}
