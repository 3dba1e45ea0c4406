package experiment

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// client is one machine under a rule, over replicas 0 to n-1.
type client struct {
	t *testing.T
	m engine.Machine
}

func under(t *testing.T, around func(engine.Machine) engine.Machine, spec string, n int) client {
	t.Helper()
	m, err := rule{spec: spec, around: around}.machine(spec, 1)
	require.NoError(t, err)
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i].ID = engine.IDOf(sim.Name(i))
	}
	require.NoError(t, m.SetCandidates(0, cs))
	return client{t, m}
}

func (c client) end(now engine.Instant, replica int, o engine.Outcome) {
	c.t.Helper()
	r := engine.Report{ID: engine.IDOf(sim.Name(replica)), Outcome: o, Latency: engine.Millisecond}
	require.NoError(c.t, c.m.Report(now, r))
}

func (c client) read(now engine.Instant, replica int, latency engine.Duration) engine.Admission {
	c.t.Helper()
	a, err := c.m.Record(now, engine.IDOf(sim.Name(replica)), engine.Reading{RIF: 3, Latency: latency, Asked: now})
	require.NoError(c.t, err)
	return a
}

// reached tells which replicas four turns of a rotation go to.
func (c client) reached(now engine.Instant) map[uint32]bool {
	c.t.Helper()
	got := map[uint32]bool{}
	for range 4 {
		var d engine.Decision
		require.NoError(c.t, c.m.Decide(&engine.Query{Now: now}, &d))
		got[d.Index] = true
	}
	return got
}

func (c client) entries(now engine.Instant) []engine.Entry {
	c.t.Helper()
	es, err := c.m.Entries(now, nil)
	require.NoError(c.t, err)
	return es
}

const second = engine.Instant(engine.Second)

func TestEjectionTakesFiveInARowAndDoubles(t *testing.T) {
	c := under(t, newEjection, "round_robin", 4)
	all := map[uint32]bool{0: true, 1: true, 2: true, 3: true}
	without := map[uint32]bool{0: true, 2: true, 3: true}
	for range 4 {
		c.end(0, 1, engine.OutcomeFailure)
	}
	c.end(0, 1, engine.OutcomeSuccess)
	for range 4 {
		c.end(0, 1, engine.OutcomeFailure)
	}
	c.end(0, 1, engine.OutcomeCancelled) // says nothing: it neither counts nor clears
	assert.Equal(t, all, c.reached(0), "a success starts the count anew")
	c.end(0, 1, engine.OutcomeOverloaded)
	assert.Equal(t, without, c.reached(second-1))
	assert.Equal(t, all, c.reached(second))

	c.end(second, 1, engine.OutcomeFailure) // on trial: one is enough, and it lasts twice as long
	assert.Equal(t, without, c.reached(3*second-1))
	assert.Equal(t, all, c.reached(3*second))
	c.end(3*second, 1, engine.OutcomeSuccess)
	for range 5 {
		c.end(3*second, 1, engine.OutcomeFailure)
	}
	assert.Equal(t, without, c.reached(4*second-1))
	assert.Equal(t, all, c.reached(4*second), "after a success the first back-off again")
}

func TestEjectionLeavesHalfOfTheFleet(t *testing.T) {
	c := under(t, newEjection, "round_robin", 4)
	for i := range 4 {
		for range 9 {
			c.end(engine.Instant(i), i, engine.OutcomeFailure)
		}
	}
	assert.Equal(t, map[uint32]bool{2: true, 3: true}, c.reached(10))
	assert.Equal(t, map[uint32]bool{0: true, 2: true, 3: true}, c.reached(second), "the first out is the first back")
}

func TestPenaltyIsLatencyThatFades(t *testing.T) {
	c := under(t, newPenalty, bare, 30)
	const own = 80 * engine.Millisecond
	shown := func(now engine.Instant) engine.Duration {
		c.read(now, 1, own)
		es := c.entries(now)
		require.Len(t, es, 1)
		assert.EqualValues(t, 3, es[0].RIF)
		return es[0].Latency - own
	}
	assert.Zero(t, shown(0))
	c.end(0, 1, engine.OutcomeFailure)
	at0 := shown(1)
	assert.InDelta(t, float64(engine.Second), float64(at0), float64(engine.Millisecond), "a fifth of five seconds")
	assert.InDelta(t, float64(at0)/2, float64(shown(5*second)), float64(engine.Millisecond))
	assert.InDelta(t, float64(at0)/2*0.7071, float64(shown(5*second+second*5/2)), float64(2*engine.Millisecond))
	was := shown(8 * second)
	c.end(8*second, 1, engine.OutcomeSuccess)
	assert.InDelta(t, float64(was)*4/5, float64(shown(8*second)), float64(engine.Millisecond))
	assert.Zero(t, shown(600*second))
}

// An average fades by the time that passed, however often it is asked for.
func TestFadeDoesNotDependOnTheAsking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gaps := rapid.SliceOfN(rapid.Int64Range(0, int64(engine.Second)), 1, 200).Draw(t, "gaps")
		often := failing{average: failureOne}
		once := often
		var now engine.Instant
		for _, g := range gaps {
			now += engine.Instant(g)
			often.fade(now)
		}
		once.fade(now)
		want := failureOne * math.Exp2(-float64(now)/float64(failureHalf))
		for _, f := range []failing{often, once} {
			if math.Abs(float64(f.average)-want) > want/300+300 {
				t.Fatalf("%d after %d ns: want %g", f.average, now, want)
			}
		}
	})
}

// What the engine did before, to the reading.
func TestFormerFadesByReadings(t *testing.T) {
	c := under(t, newFormer, bare, 30)
	ranked := func(now engine.Instant, replica int, rif uint32) engine.Entry {
		_, err := c.m.Record(now, engine.IDOf(sim.Name(replica)), engine.Reading{RIF: rif, Latency: engine.Millisecond, Asked: now})
		require.NoError(t, err)
		for _, e := range c.entries(now) {
			if e.ID == engine.IDOf(sim.Name(replica)) {
				return e
			}
		}
		return engine.Entry{}
	}
	ranked(0, 1, 3)
	c.end(0, 1, engine.OutcomeFailure)
	require.Empty(t, c.entries(0), "a failure drops the entry")
	e := ranked(1, 1, 3) // a hundred times a fifth, less one percent
	assert.InDelta(t, 20.8, float64(e.Latency)/float64(engine.Millisecond), 0.1)
	assert.InDelta(t, 4*20.8-1, e.RIF, 1)
	assert.EqualValues(t, 19, ranked(100*second, 1, 0).RIF, "an idle one is raised too, and time forgives nothing")
	assert.EqualValues(t, 3, ranked(100*second, 2, 3).RIF, "the others are as they say")
	for range 600 {
		ranked(100*second, 1, 3)
	}
	assert.EqualValues(t, 3, ranked(100*second, 1, 3).RIF)
}

func TestRefusalLastsTenSeconds(t *testing.T) {
	c := under(t, newRefusal, bare, 30)
	c.read(0, 1, engine.Millisecond)
	c.end(1, 1, engine.OutcomeCancelled)
	require.Len(t, c.entries(1), 1)
	c.end(1, 1, engine.OutcomeFailure)
	require.Empty(t, c.entries(1))
	assert.Equal(t, engine.NotKept, c.read(10*second, 1, engine.Millisecond))
	assert.Equal(t, engine.Admitted, c.read(10*second, 2, engine.Millisecond), "the others are heard")
	assert.Equal(t, engine.Admitted, c.read(10*second+1, 1, engine.Millisecond))
}

// Where nothing fails, a rule is not there: every decision is the same.
func TestRulesCostNothingInCalm(t *testing.T) {
	sc := sim.Weather()
	sc.Replicas, sc.Clients = 20, 10
	var hashes []uint64
	for _, r := range rules() {
		w, err := sim.NewWorld(sc, r.spec, sim.Maker{Machine: r.machine})
		require.NoError(t, err)
		require.NoError(t, w.Run(3*sim.Second))
		require.Zero(t, w.Totals.Errors)
		hashes = append(hashes, w.Hash())
	}
	for i, h := range hashes {
		assert.Equal(t, hashes[0], h, rules()[i].name)
	}
}
