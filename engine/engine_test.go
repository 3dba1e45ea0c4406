package engine_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// Words of the block's head, as the layout says.
const (
	wordMagic = iota
	wordPolicy
	wordSet
	wordCount
	wordNow
	wordFirst
	wordRand
	wordTie
	wordsHead
)

func TestAFreshBlockHasItsMarkAndItsSeed(t *testing.T) {
	p := &stub{seed: 7, layout: engine.Layout{Fixed: 3, PerSlot: 2}}
	e := engine.New(p, engine.Config{})
	b := e.Block()
	require.Len(t, b, wordsHead+3)
	assert.Equal(t, "\x03HEADROM", string(binary.LittleEndian.AppendUint64(nil, b[wordMagic])), "the layout's version, then the mark")
	assert.Equal(t, hash.Word(hash.Word(hash.String("stub seed=7"), 0), 3<<32|2), b[wordPolicy])
	assert.Equal(t, hash.Start(), b[wordSet], "nobody")
	assert.Equal(t, []uint64{0, 1 << 63, 0, 7, hash.Mix(8)}, b[wordCount:wordsHead])
	assert.Equal(t, []string{"bind 3 words, 0 candidates, fresh true", "changed, 0 eligible"}, p.told())
	assert.Equal(t, 3, cap(p.fixed), "a policy cannot grow into what follows")
	assert.Equal(t, "stub seed=7", e.Spec())

	salted := engine.New(p, engine.Config{Salt: 5}).Block()
	assert.Equal(t, hash.Word(hash.Word(hash.String("stub seed=7"), 5), 3<<32|2), salted[wordPolicy])
	assert.Equal(t, hash.Mix(7^hash.Mix(5)), salted[wordRand])
	assert.Equal(t, hash.Mix(salted[wordRand]+1), salted[wordTie])
}

func TestARefusedFleetChangesNothing(t *testing.T) {
	p := &stub{layout: engine.Layout{Fixed: 1, PerSlot: 1}}
	e := engine.New(p, engine.Config{MaxCandidates: 3})
	require.NoError(t, e.SetCandidates(100, ids(1, 2, 3)), "as many as there may be")
	decide(t, e, engine.Query{Now: 100})
	before := snapshot(t, e)
	for name, c := range map[string]struct {
		cs     []engine.Candidate
		refuse error
		err    error
		text   string
	}{
		"too many":      {ids(1, 2, 3, 4), nil, engine.ErrCapacity, "capacity exceeded: 4 candidates, at most 3"},
		"one twice":     {ids(5, 6, 5), nil, engine.ErrDuplicateID, "duplicate endpoint: candidate 2"},
		"no status":     {[]engine.Candidate{{ID: 8}, {ID: 9, Status: engine.StatusUnavailable + 1}}, nil, engine.ErrConfig, "bad config: candidate 1 has no valid status"},
		"by the policy": {ids(8), errOwn, errOwn, "the policy's own"},
	} {
		p.refuse = c.refuse
		err := e.SetCandidates(500, c.cs)
		require.ErrorIs(t, err, c.err, name)
		assert.EqualError(t, err, c.text)
		assert.Equal(t, before, snapshot(t, e), "%s: the state stays, and the clock", name)
		assert.Equal(t, engine.ID(1), decide(t, e, engine.Query{Now: 100}).ID, "the old fleet serves")
		require.NoError(t, e.Report(100, engine.Report{ID: 1}))
	}
	p.refuse = nil
	assert.NoError(t, e.SetCandidates(500, []engine.Candidate{{ID: 9, Status: engine.StatusUnavailable}}), "the last status is one")
}

func TestTheDefaultBoundIsMaxCandidates(t *testing.T) {
	e := engine.New(&stub{}, engine.Config{})
	cs := make([]engine.Candidate, engine.MaxCandidates+1)
	for i := range cs {
		cs[i].ID = engine.ID(i)
	}
	assert.ErrorIs(t, e.SetCandidates(0, cs), engine.ErrCapacity)
	assert.NoError(t, e.SetCandidates(0, cs[1:]))
	assert.Equal(t, 65536, engine.MaxCandidates)
}

func TestStateFollowsReplicasToTheirNewPlaces(t *testing.T) {
	cs := ids(10, 20, 30)
	e, p := started(t, cs)
	cs[0].ID = 99 // the caller's slice is the caller's
	p.choose = func(*engine.Set) uint32 { return 1 }
	assert.Equal(t, engine.ID(20), decide(t, e, engine.Query{}).ID)
	copy(p.Set.Words(0), []uint64{11, 12})
	copy(p.Set.Words(1), []uint64{21, 22})
	copy(p.Set.Words(2), []uint64{31, 32})
	copy(p.fixed, []uint64{1, 2, 3})
	p.told()

	require.NoError(t, e.SetCandidates(200, []engine.Candidate{{ID: 40}, {ID: 30}, {ID: 20, Status: engine.StatusDraining}, {ID: 50}}))
	assert.Equal(t, []string{"bind 3 words, 4 candidates, fresh false", "moved [-1 2 1]", "changed, 3 eligible"}, p.told())
	assert.Equal(t, []uint64{1, 2, 3}, p.fixed)
	for slot, want := range [][]uint64{{0, 0}, {31, 32}, {21, 22}, {0, 0}} {
		assert.Equal(t, want, p.Set.Words(uint32(slot)))
	}
	assert.Equal(t, []uint32{0, 1, 3}, p.Set.EligibleSlots())
	assert.Equal(t, uint32(1), e.InFlight(20))
	assert.Zero(t, e.InFlight(30)+e.InFlight(40)+e.InFlight(10)+e.InFlight(77))
	assert.Equal(t, uint64(4), e.Block()[wordCount])

	require.NoError(t, e.SetCandidates(200, ids(20)))
	require.NoError(t, e.SetCandidates(200, ids(60, 61, 20, 62, 63)))
	for slot, want := range [][]uint64{{0, 0}, {0, 0}, {21, 22}, {0, 0}, {0, 0}} {
		assert.Equal(t, want, p.Set.Words(uint32(slot)), "a newcomer starts from nothing, whatever the buffer held")
	}
	require.Len(t, e.Block(), wordsHead+3+5*3)
	require.NoError(t, e.Report(200, engine.Report{ID: 20}))
	assert.Zero(t, e.InFlight(20))
}

func TestAStatusIsChangedOnce(t *testing.T) {
	e, p := started(t, ids(1, 2))
	assert.ErrorIs(t, e.SetStatus(900, 9, engine.StatusReady), engine.ErrUnknownID)
	err := e.SetStatus(900, 1, engine.StatusUnavailable+1)
	assert.ErrorIs(t, err, engine.ErrConfig)
	assert.EqualError(t, err, "bad config: no such status")
	assert.Equal(t, engine.Instant(100), p.Set.Last(), "refused calls have no instant")

	decide(t, e, engine.Query{Now: 100})
	p.told()
	require.NoError(t, e.SetStatus(200, 1, engine.StatusDraining))
	assert.Equal(t, []string{"changed, 1 eligible"}, p.told())
	assert.Equal(t, uint32(1), e.InFlight(1), "what is in flight is not the status's business")
	assert.False(t, p.Set.IsEligible(0))
	require.NoError(t, e.SetStatus(300, 1, engine.StatusDraining))
	assert.Empty(t, p.told(), "the same again")
	assert.Equal(t, engine.Instant(300), p.Set.Last())
	require.NoError(t, e.SetStatus(300, 1, engine.StatusUnavailable))
	assert.Equal(t, []string{"changed, 1 eligible"}, p.told())
	assert.Equal(t, engine.ID(2), decide(t, e, engine.Query{Now: 300}).ID)
	require.NoError(t, e.SetStatus(300, 1, engine.StatusReady))
	assert.Equal(t, engine.ID(1), decide(t, e, engine.Query{Now: 300}).ID)
}

// D8 of the seed library: four conditions were one error.
func TestD8TheFourOutcomesNeverMerge(t *testing.T) {
	var d engine.Decision
	p := &stub{}
	e := engine.New(p, engine.Config{})
	assert.Same(t, engine.ErrNoCandidates, e.Decide(&engine.Query{Now: 5}, &d))
	assert.Equal(t, engine.Instant(5), p.Set.Last(), "a query that finds nobody still has its instant")
	require.NoError(t, e.SetCandidates(0, []engine.Candidate{{ID: 1, Status: engine.StatusDraining}}))
	assert.Same(t, engine.ErrNoneEligible, e.Decide(&engine.Query{}, &d))
	require.NoError(t, e.SetCandidates(0, ids(1, 2)))
	assert.Same(t, engine.ErrNoneEligible, e.Decide(&engine.Query{Tried: []engine.ID{2, 1}}, &d))
	assert.Zero(t, d, "nothing was decided")
	p.fail = errOwn
	assert.Same(t, errOwn, e.Decide(&engine.Query{Now: 9}, &d))
	assert.Same(t, errOwn, e.Decide(&engine.Query{Now: 9, Tried: []engine.ID{2}}, &d))
	assert.Zero(t, e.InFlight(1)+e.InFlight(2), "a refused query is not in flight")
	p.fail = nil
	assert.Equal(t, engine.Decision{ID: 1, RIF: 4}, decide(t, e, engine.Query{Now: 9}))
	assert.Equal(t, engine.Decision{ID: 2, Index: 1, RIF: 4}, decide(t, e, engine.Query{Now: 9, Tried: []engine.ID{1}}))
	assert.Equal(t, [2]uint32{1, 1}, [2]uint32{e.InFlight(1), e.InFlight(2)})
	assert.Equal(t, engine.Decision{Index: 1, RIF: 4}, *e.Placed())
}

// D7 of the seed library: an instant from the future outlived every honest one.
func TestD7InstantsNeverGoBackAndReadingsAreNotOfTheFuture(t *testing.T) {
	e, p := started(t, ids(1, 2))
	require.NoError(t, e.Report(1000, engine.Report{ID: 1}))
	p.told()
	decide(t, e, engine.Query{Now: 400, Key: 6})
	_, _ = e.Record(400, 2, engine.Reading{RIF: 3, Latency: 5, Asked: 2000})
	_, _ = e.Record(1200, 2, engine.Reading{RIF: 3, Latency: -7, Asked: 1100})
	_, _ = e.Record(1200, 2, engine.Reading{RIF: 3, Latency: 1 << 62, Asked: 1201})
	require.NoError(t, e.RecordLoad(900, 2, engine.LoadReport{QPS: 8}))
	require.NoError(t, e.Report(800, engine.Report{ID: 2, Outcome: engine.OutcomeOverloaded, Latency: 4}))
	require.NoError(t, e.Forget(1100, 2, 3000))
	require.NoError(t, e.Forget(1300, 1, 1250))
	assert.Equal(t, []string{
		"decide 1000 6",
		"record 1000 1 {RIF:3 Latency:5 Asked:1000}",
		"record 1200 1 {RIF:3 Latency:-1 Asked:1100}",
		"record 1200 1 {RIF:3 Latency:144115188075855870 Asked:1200}",
		"load 1200 1 {Utilization:0 QPS:8 EPS:0}",
		"observe 1200 1 overloaded 4",
		"forget 1 1200",
		"forget 0 1250",
	}, p.told())
	_, _ = e.Record(1200, 2, engine.Reading{Asked: 1200})
	assert.Equal(t, []string{"record 1300 1 {RIF:0 Latency:0 Asked:1200}"}, p.told(), "no time at all is a latency")
	due, err := e.Probes(1250, []engine.ID{5})
	require.NoError(t, err)
	assert.Equal(t, []engine.ID{5, 1300}, due)
	es, err := e.Entries(1400, nil)
	require.NoError(t, err)
	assert.Equal(t, engine.Instant(1400), es[0].At)
	es, _ = e.Entries(20, es)
	assert.Equal(t, engine.Instant(1300), es[1].At, "looking moves no clock, and none goes back")
	assert.Equal(t, engine.Instant(100), p.Set.First())
	decide(t, e, engine.Query{Now: 1350})
	assert.Equal(t, engine.Instant(1350), p.Set.Last(), "a decision moves the clock")
	require.NoError(t, e.SetCandidates(50, ids(1)))
	require.NoError(t, e.SetStatus(50, 1, engine.StatusReady))
	assert.Equal(t, engine.Instant(1350), p.Set.Last())
}

func TestTheFirstInstantMayBeAny(t *testing.T) {
	for given, want := range map[engine.Instant]engine.Instant{
		math.MinInt64: math.MinInt64 + 1, math.MinInt64 + 1: math.MinInt64 + 1, -5: -5, 0: 0, math.MaxInt64: math.MaxInt64,
	} {
		p := &stub{}
		e := engine.New(p, engine.Config{})
		_, err := e.Probes(given, nil)
		require.NoError(t, err)
		assert.Equal(t, want, p.Set.First())
		assert.Equal(t, want, p.Set.Last())
		_, _ = e.Probes(given+1, nil)
		assert.Equal(t, want, p.Set.First(), "the first stays the first")
	}
}

func TestAFirstCallMayBeADecision(t *testing.T) {
	p := &stub{}
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(-9, ids(1)))
	b := snapshot(t, e)
	binary.LittleEndian.PutUint64(b[8*wordNow:], 1<<63) // a restored block may hold a fleet and no instant yet
	binary.LittleEndian.PutUint64(b[8*wordFirst:], 0)
	require.NoError(t, e.Restore(b))
	decide(t, e, engine.Query{Now: -7})
	assert.Equal(t, engine.Instant(-7), p.Set.First())
}

func TestStrangersAreUnknown(t *testing.T) {
	e, p := started(t, ids(1))
	_, err := e.Record(500, 9, engine.Reading{})
	assert.Same(t, engine.ErrUnknownID, err)
	assert.Same(t, engine.ErrUnknownID, e.RecordLoad(500, 9, engine.LoadReport{}))
	assert.Same(t, engine.ErrUnknownID, e.Report(500, engine.Report{ID: 9}))
	assert.Same(t, engine.ErrUnknownID, e.Forget(500, 9, 0))
	assert.Empty(t, p.told())
	assert.Equal(t, engine.Instant(100), p.Set.Last())
	a, err := e.Record(500, 1, engine.Reading{})
	assert.NoError(t, err)
	assert.Equal(t, engine.Replaced, a, "what the policy says")
}

func TestCountsInFlightStopAtBothEnds(t *testing.T) {
	e, p := started(t, ids(1, 2))
	require.NoError(t, e.SetStatus(100, 2, engine.StatusDraining))
	at := wordsHead + 3
	for range 3 {
		require.NoError(t, e.Report(100, engine.Report{ID: 1}))
		require.NoError(t, e.Report(100, engine.Report{ID: 2}))
	}
	assert.Equal(t, []uint64{0, 1 << 32}, []uint64{e.Block()[at], e.Block()[at+3]}, "one report too many takes nothing, and no status")
	e.Block()[at] = 1<<32 - 2
	decide(t, e, engine.Query{Now: 100})
	assert.Equal(t, uint32(math.MaxUint32), e.InFlight(1))
	decide(t, e, engine.Query{Now: 100})
	assert.Equal(t, uint64(1<<32-1), e.Block()[at], "a full count stays full, and the status ready")
	p.choose = func(s *engine.Set) uint32 { return 0 }
	decide(t, e, engine.Query{Now: 100})
	require.NoError(t, e.Report(100, engine.Report{ID: 1}))
	assert.Equal(t, uint32(math.MaxUint32-1), e.InFlight(1))
}

func TestInspectingStartsFromNothing(t *testing.T) {
	e, _ := started(t, ids(1))
	c, f := engine.Counters{Decisions: 9, Expired: 9}, engine.Fit{Pool: 9, Held: true}
	require.NoError(t, e.Inspect(&c, &f))
	assert.Equal(t, engine.Counters{Decisions: 3}, c)
	assert.Equal(t, engine.Fit{Pool: 2, Threshold: engine.NoThreshold}, f)
}
