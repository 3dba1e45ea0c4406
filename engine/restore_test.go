package engine_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func TestASnapshotIsTheBlockInLittleEndian(t *testing.T) {
	e, p := started(t, ids(1, 2))
	p.fixed[0] = 0x0102030405060708
	b, err := e.Snapshot([]byte{42})
	require.NoError(t, err)
	assert.Equal(t, byte(42), b[0], "appended")
	want := []byte{42}
	for _, w := range e.Block() {
		want = binary.LittleEndian.AppendUint64(want, w)
	}
	assert.Equal(t, want, b)
	p.fixed[0] = 0
	p.told()
	require.NoError(t, e.Restore(b[1:]))
	assert.Equal(t, uint64(0x0102030405060708), p.fixed[0])
	assert.Equal(t, []string{"bind 3 words, 2 candidates, fresh false"}, p.told(), "nothing moved and nothing changed")
}

func TestRestoreRefusesByNameAndChangesNothing(t *testing.T) {
	e, p := started(t, []engine.Candidate{{ID: 1}, {ID: 2, Status: engine.StatusDraining}})
	decide(t, e, engine.Query{Now: 100})
	good := snapshot(t, e)
	decide(t, e, engine.Query{Now: 200})
	p.fixed[1] = 77
	before := snapshot(t, e)
	with := func(word int, change uint64) []byte {
		b := append([]byte(nil), good...)
		binary.LittleEndian.PutUint64(b[8*word:], binary.LittleEndian.Uint64(b[8*word:])^change)
		return b
	}
	hint := " differ; restore on a machine with the same spec, salt, candidates and statuses"
	for want, block := range map[string][]byte{
		"0 bytes, want 136":             {},
		"128 bytes, want 136":           good[:len(good)-8],
		"144 bytes, want 136":           append(append([]byte(nil), good...), 0, 0, 0, 0, 0, 0, 0, 0),
		"policy" + hint:                 with(wordPolicy, 1),
		"candidates" + hint:             with(wordSet, 1<<63),
		"candidate count" + hint:        with(wordCount, 1),
		"status of candidate 0 differs": with(wordsHead+3, 1<<33),
		"status of candidate 1 differs": with(wordsHead+3+3, 1<<32),
	} {
		err := e.Restore(block)
		require.ErrorIs(t, err, engine.ErrBlock, want)
		assert.EqualError(t, err, "state block does not fit: "+want)
		assert.Equal(t, before, snapshot(t, e), want)
	}
	for _, older := range [][]byte{with(wordMagic, 1), with(wordMagic, 1)[:16]} {
		err := e.Restore(older)
		require.ErrorIs(t, err, engine.ErrBlock)
		assert.EqualError(t, err, "state block does not fit: layout differs: the block is of another version; start without it")
		assert.Equal(t, before, snapshot(t, e))
	}
	p.invalid = true
	err := e.Restore(good)
	require.ErrorIs(t, err, engine.ErrBlock)
	assert.EqualError(t, err, "state block does not fit: not a state of this policy")
	assert.Equal(t, before, snapshot(t, e))
	assert.Equal(t, uint64(77), p.fixed[1], "the policy is bound to its old words again")
	decide(t, e, engine.Query{Now: 200})
	assert.Equal(t, uint32(3), e.InFlight(1), "and the set to its own")

	p.invalid = false
	require.NoError(t, e.Restore(with(wordsHead+3, 0xff)), "a count in flight is state")
	assert.Equal(t, uint32(1^0xff), e.InFlight(1))
	require.NoError(t, e.Restore(good))
	assert.Equal(t, good, snapshot(t, e))
	assert.Zero(t, p.fixed[1])
	decide(t, e, engine.Query{Now: 100})
	p.fixed[2] = 5
	require.NoError(t, e.Restore(good), "again, into the words that served before")
	assert.Equal(t, good, snapshot(t, e))
	require.ErrorIs(t, e.Restore(with(wordsHead+3, 1<<33)), engine.ErrBlock)
	assert.Equal(t, good, snapshot(t, e), "and a refusal after that changes nothing either")
	for range 3 {
		require.NoError(t, e.SetCandidates(300, ids(4, 1, 3)))
		assert.Equal(t, uint32(1), e.InFlight(1), "and changes of the fleet go on from there")
		assert.Zero(t, e.InFlight(3)+e.InFlight(4))
		require.NoError(t, e.SetCandidates(300, ids(3, 1)))
	}
}

// What identifies a set is all of it but the statuses, which are state.
func TestABlockBelongsToItsCandidates(t *testing.T) {
	base := []engine.Candidate{{ID: 1, Weight: 2, Locality: 3, Priority: 4}, {ID: 5}}
	e, _ := started(t, base)
	block := snapshot(t, e)
	for name, change := range map[string]func(cs []engine.Candidate){
		"identity":            func(cs []engine.Candidate) { cs[0].ID = 9 },
		"weight":              func(cs []engine.Candidate) { cs[0].Weight = 3 },
		"locality":            func(cs []engine.Candidate) { cs[0].Locality = 4 },
		"weight for locality": func(cs []engine.Candidate) { cs[0].Weight, cs[0].Locality = 3, 2 },
		"a great weight":      func(cs []engine.Candidate) { cs[0].Weight |= 1 << 31 },
		"priority":            func(cs []engine.Candidate) { cs[0].Priority = 5 },
		"order":               func(cs []engine.Candidate) { cs[0], cs[1] = cs[1], cs[0] },
	} {
		cs := append([]engine.Candidate(nil), base...)
		change(cs)
		other, _ := started(t, cs)
		err := other.Restore(block)
		assert.ErrorContains(t, err, "candidates differ", name)
	}
	weight, _ := started(t, []engine.Candidate{{ID: 1, Weight: 1}})
	locality, _ := started(t, []engine.Candidate{{ID: 1, Locality: 1 << 31}})
	assert.ErrorContains(t, locality.Restore(snapshot(t, weight)), "candidates differ", "a bit of the weight is none of the locality")
	same, _ := started(t, base)
	assert.NoError(t, same.Restore(block))
}

func TestAMachineWithoutAFleetRestores(t *testing.T) {
	e := engine.New(&stub{seed: 4}, engine.Config{})
	_, err := e.Probes(77, nil)
	require.NoError(t, err)
	block := snapshot(t, e)
	fresh := engine.New(&stub{seed: 4}, engine.Config{})
	require.NoError(t, fresh.Restore(block))
	assert.Equal(t, block, snapshot(t, fresh))
}

// The lists that Attach leaves are of one query and one set.
func TestListsDoNotOutliveTheirQueryOrTheirSet(t *testing.T) {
	e, p := started(t, ids(1, 2, 3))
	assert.Empty(t, p.Set.Answers())
	block := snapshot(t, e)
	for name, between := range map[string]func() error{
		"a restore": func() error { return e.Restore(block) },
		"a status":  func() error { return e.SetStatus(100, 3, engine.StatusDraining) },
		"a fleet":   func() error { return e.SetCandidates(100, ids(1, 2, 3)) },
		"a list":    func() error { return e.Attach(100, nil, nil) },
	} {
		require.NoError(t, e.Attach(100, []engine.ID{1, 2}, []engine.Answer{{ID: 3}}))
		require.True(t, p.Set.AnyTried())
		require.NoError(t, between(), name)
		assert.False(t, p.Set.AnyTried(), name)
		assert.Empty(t, p.Set.Answers(), name)
		require.NoError(t, e.Place(100, 0))
		assert.Zero(t, e.Placed().Index, name)
	}
}

// Counts that a machine takes over replace its own, to the last bit, and nothing else.
func TestCountsInFlightAreReplacedAndNothingElse(t *testing.T) {
	e, p := started(t, []engine.Candidate{{ID: 1}, {ID: 2, Status: engine.StatusDraining}, {ID: 3, Status: engine.StatusUnavailable}, {ID: 4}})
	const most = 1<<32 - 1
	counts := func(open ...engine.InFlight) (got [4]uint32) {
		was := slices.Clone(e.Block())
		want := slices.Clone(was)
		p.told()
		require.NoError(t, e.SetInFlight(open))
		told := p.told()
		for i := range got {
			got[i] = e.InFlight(engine.ID(i + 1))
			at := wordsHead + 3 + 3*i
			want[at] = want[at]>>32<<32 | uint64(got[i])
		}
		if slices.Equal(was, e.Block()) {
			assert.Empty(t, told)
		} else {
			assert.Equal(t, []string{"bind 3 words, 4 candidates, fresh false", "changed, 2 eligible"}, told, "it may have derived something from them")
		}
		assert.Equal(t, want, e.Block())
		return got
	}
	for slot := range uint32(4) {
		copy(p.Set.Words(slot), []uint64{most << 8, most << 9})
	}
	assert.Equal(t, [4]uint32{most, most, 6, 0}, counts(engine.InFlight{ID: 2, Queries: most}, engine.InFlight{ID: 9, Queries: 8},
		engine.InFlight{ID: 1, Queries: most}, engine.InFlight{ID: 3, Queries: 6}))
	assert.Equal(t, [4]uint32{0, 5, 0, 6}, counts(engine.InFlight{ID: 4, Queries: most}, engine.InFlight{ID: 4, Queries: 6},
		engine.InFlight{ID: 2, Queries: 5}), "who is not named has none, and of two the last counts")
	assert.Equal(t, [4]uint32{0, 5, 0, 6}, counts(engine.InFlight{ID: 2, Queries: 5}, engine.InFlight{ID: 4, Queries: 6}), "as they stand")
	assert.Equal(t, [4]uint32{}, counts())
}
