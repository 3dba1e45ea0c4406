package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
	"github.com/headroom-lb/headroom/engine/internal/prng"
)

func TestColumnsShowWhatWasGiven(t *testing.T) {
	e, p := started(t, []engine.Candidate{{ID: 4, Weight: 9, Priority: 2, Locality: 8}, {ID: 5, Status: engine.StatusDraining}, {ID: 6, Weight: 1}})
	s := p.Set
	assert.Equal(t, []int{3, 2, 2}, []int{s.Len(), s.Eligible(), s.Open()})
	assert.Equal(t, []engine.ID{4, 5, 6}, []engine.ID{s.ID(0), s.ID(1), s.ID(2)})
	assert.Equal(t, []uint32{9, 1, 1}, []uint32{s.Weight(0), s.Weight(1), s.Weight(2)}, "an unset weight is one")
	assert.Equal(t, uint8(2), s.Priority(0))
	assert.Equal(t, uint32(8), s.Locality(0))
	assert.Equal(t, []uint32{0, 2}, s.EligibleSlots())
	assert.Equal(t, []bool{true, false, true}, []bool{s.IsOpen(0), s.IsOpen(1), s.IsOpen(2)})
	assert.False(t, s.AnyTried())
	assert.Equal(t, hash.Mix(6^e.Block()[wordTie]), s.Tie(2))
	other := &stub{seed: 8}
	o := engine.New(other, engine.Config{})
	require.NoError(t, o.SetCandidates(0, ids(6)))
	assert.NotEqual(t, s.Tie(2), other.Set.Tie(0), "machines differ on ties")
}

func TestEverybodyIsFoundBySlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.Uint64(), 0, 200, rapid.ID[uint64]).Draw(t, "ids")
		cs := make([]engine.Candidate, len(some))
		for i, id := range some {
			cs[i].ID = engine.ID(id)
		}
		p := &stub{}
		e := engine.New(p, engine.Config{})
		slot, ok := p.Set.Slot(7)
		require.False(t, ok)
		require.Zero(t, slot)
		require.NoError(t, e.SetCandidates(0, cs))
		for i, c := range cs {
			slot, ok := p.Set.Slot(c.ID)
			require.True(t, ok)
			require.Equal(t, uint32(i), slot)
		}
		stranger := engine.ID(rapid.Uint64().Draw(t, "stranger"))
		slot, ok = p.Set.Slot(stranger)
		require.True(t, ok || slot == 0)
		require.Equal(t, slices.ContainsFunc(cs, func(c engine.Candidate) bool { return c.ID == stranger }), ok)
	})
}

// Identities that fall on one place of the table, at its end, go on from the start.
func TestIdentitiesThatCollideAreToldApart(t *testing.T) {
	var last []engine.ID // those whose place is the last of eight
	for id := engine.ID(0); len(last) < 5; id++ {
		if hash.Mix(uint64(id))&7 == 7 {
			last = append(last, id)
		}
	}
	e, p := started(t, ids(last[:4]...))
	for i, id := range last[:4] {
		slot, ok := p.Set.Slot(id)
		require.True(t, ok)
		assert.Equal(t, uint32(i), slot)
	}
	_, ok := p.Set.Slot(last[4])
	assert.False(t, ok, "a stranger on the same place")
	assert.EqualError(t, e.SetCandidates(0, ids(last[0], last[1], last[1])), "duplicate endpoint: candidate 2")
}

// open is what a set says of a query, seen from inside its decision.
func TestOnlyEligibleAndUntriedAreOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		cs := make([]engine.Candidate, n)
		for i := range cs {
			cs[i] = engine.Candidate{ID: engine.ID(i), Status: engine.Status(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "status"))}
		}
		tried := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) engine.ID { return engine.ID(rapid.IntRange(0, 14).Draw(t, "id")) }), 0, 14).Draw(t, "tried")
		var open []uint32
		avoided := 0
		for i, c := range cs {
			switch {
			case !c.Status.Eligible():
			case slices.Contains(tried, c.ID):
				avoided++
			default:
				open = append(open, uint32(i))
			}
		}
		p := &stub{seed: 3}
		e := engine.New(p, engine.Config{})
		require.NoError(t, e.SetCandidates(0, cs))
		p.choose = func(s *engine.Set) uint32 {
			require.Equal(t, len(open), s.Open())
			require.Equal(t, avoided > 0, s.AnyTried())
			for k, slot := range open {
				require.Equal(t, slot, s.OpenAt(uint32(k)))
			}
			for slot := range cs {
				require.Equal(t, slices.Contains(open, uint32(slot)), s.IsOpen(uint32(slot)))
			}
			state := e.Block()[wordRand]
			want := open[prng.Below(&state, uint32(len(open)))]
			require.Equal(t, want, s.DrawOpen())
			require.Equal(t, state, e.Block()[wordRand])
			require.Equal(t, prng.Below64(&state, 1<<40), s.Draw64(1<<40))
			return want
		}
		var d engine.Decision
		err := e.Decide(&engine.Query{Tried: tried}, &d)
		if len(open) == 0 {
			require.ErrorIs(t, err, engine.ErrNoneEligible)
		} else {
			require.NoError(t, err)
		}
		require.False(t, p.Set.AnyTried(), "the next query has tried nobody")
		require.Empty(t, p.Set.Answers())
	})
}

func TestListsOfAQueryAreBounded(t *testing.T) {
	many := make([]engine.ID, 100)
	cs := make([]engine.Candidate, 100)
	answers := make([]engine.Answer, 100)
	for i := range many {
		many[i], cs[i].ID, answers[i].ID = engine.ID(i), engine.ID(i), engine.ID(i)
	}
	e, p := started(t, cs)
	assert.Equal(t, engine.ID(32), decide(t, e, engine.Query{Tried: many[:32]}).ID)
	p.choose = func(s *engine.Set) uint32 {
		assert.Len(t, s.Answers(), 16)
		return 1
	}
	decide(t, e, engine.Query{Answers: answers[:16]})
	p.choose = func(s *engine.Set) uint32 {
		assert.Empty(t, s.Answers())
		assert.False(t, s.AnyTried())
		return 2
	}
	var d engine.Decision
	err := e.Decide(&engine.Query{Now: 900, Tried: many[:33]}, &d)
	assert.ErrorIs(t, err, engine.ErrCapacity)
	assert.EqualError(t, err, "capacity exceeded: 33 replicas tried, at most 32")
	assert.Equal(t, engine.Instant(100), p.Set.Last())
	require.NoError(t, e.Place(100, 0))
	err = e.Decide(&engine.Query{Tried: many[:3], Answers: answers[:17]}, &d)
	assert.ErrorIs(t, err, engine.ErrCapacity)
	assert.EqualError(t, err, "capacity exceeded: 17 answers, at most 16")
	require.NoError(t, e.Place(100, 0), "after a refusal the next query has neither")
	assert.Zero(t, d)

	x := e.Explain(&engine.Query{Tried: many[:33]})
	assert.ErrorIs(t, x.Err, engine.ErrCapacity)
	assert.Equal(t, "not placed: capacity exceeded: 33 replicas tried, at most 32", x.Sentence(nil))
}

func TestAnswersAreTheNewestOfTheOpen(t *testing.T) {
	e, p := started(t, []engine.Candidate{{ID: 1}, {ID: 2, Status: engine.StatusDraining}, {ID: 3}, {ID: 4}})
	answer := func(id engine.ID, rif uint32, lat engine.Duration, asked engine.Instant) engine.Answer {
		return engine.Answer{ID: id, Reading: engine.Reading{RIF: rif, Latency: lat, Asked: asked}}
	}
	p.choose = func(s *engine.Set) uint32 {
		assert.Equal(t, []engine.SlotAnswer{
			{Slot: 3, Reading: engine.Reading{RIF: 7, Latency: engine.MaxLatency, Asked: 150}},
			{Slot: 0, Reading: engine.Reading{RIF: 6, Latency: engine.UnknownLatency, Asked: 90}},
		}, s.Answers())
		return 0
	}
	decide(t, e, engine.Query{Now: 150, Tried: []engine.ID{3}, Answers: []engine.Answer{
		answer(4, 1, 1, 1), answer(1, 5, 5, 5), answer(2, 1, 1, 1), answer(3, 1, 1, 1), answer(9, 1, 1, 1),
		answer(1, 6, -6, 90), answer(4, 7, 1<<60, 151),
	}})
	p.choose = func(s *engine.Set) uint32 {
		assert.Equal(t, engine.Instant(150), s.Answers()[0].Reading.Asked, "the instant in force, not the caller's")
		assert.Len(t, s.Answers(), 1)
		return 0
	}
	decide(t, e, engine.Query{Now: 20, Answers: []engine.Answer{answer(4, 1, 1, 999)}})
	p.choose = func(s *engine.Set) uint32 { assert.Empty(t, s.Answers()); return 0 }
	decide(t, e, engine.Query{Now: 150})
}
