package recorded

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/trace"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// writes is a machine that is recorded, as a balancer records its shards.
type writes struct {
	engine.Machine
	w *trace.SegmentWriter
}

func (m *writes) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	m.w.Endpoints(now, cs, func(i int) (string, string) { return sim.Name(i), "" })
	return m.Machine.SetCandidates(now, cs)
}

func (m *writes) Decide(q *engine.Query, d *engine.Decision) error {
	err := m.Machine.Decide(q, d)
	m.w.Decided(q, d, err)
	return err
}

func (m *writes) Report(now engine.Instant, r engine.Report) error {
	m.w.Done(now, r)
	return m.Machine.Report(now, r)
}

// record lets the simulator serve traffic and records it. Half of the segments come in two parts.
func record(t *testing.T, sc sim.Scenario, span int64) (file []byte, arrivals uint64) {
	t.Helper()
	var segments []*trace.SegmentWriter
	w, err := sim.NewWorld(sc, "prequal", sim.Maker{Machine: func(spec string, salt uint64) (engine.Machine, error) {
		m, err := sim.Native(spec, salt)
		s := &trace.SegmentWriter{}
		s.Begin(trace.Head{Shard: uint64(len(segments)), Machine: uint64(len(segments)), Spec: spec, Salt: salt, Began: 5 * sim.Second})
		segments = append(segments, s)
		return &writes{m, s}, err
	}})
	require.NoError(t, err)
	require.NoError(t, w.Run(span))
	file = []byte(trace.Magic)
	for _, s := range segments {
		file = append(file, s.Finish()...)
	}
	return file, w.Totals.Arrivals
}

func quiet() sim.Scenario {
	sc := sim.Calm()
	sc.Replicas, sc.Clients, sc.Load, sc.Demand = 10, 4, 3000, sim.DemandExponential
	return sc
}

// What was recorded of a fleet in which nobody waits is what had arrived there, and its work.
func TestARecordingIsItsTraffic(t *testing.T) {
	sc := quiet()
	file, arrivals := record(t, sc, 20*sim.Second)
	got, err := Read("r", bytes.NewReader(file))
	require.NoError(t, err)
	assert.Equal(t, arrivals, uint64(len(got.Arrivals)))
	assert.Equal(t, 4, got.Clients)
	assert.Equal(t, 10, got.Replicas)
	open := len(got.Arrivals) - got.Known
	assert.Less(t, open, 100, "only what had not ended is guessed")
	assert.Positive(t, open)

	again := sc
	require.NoError(t, again.Replay(got.Arrivals, 3000))
	assert.InEpsilon(t, sc.Cores, again.Cores, 0.05, "its fleet is found again by its load")
	file2, arrivals2 := record(t, again, 20*sim.Second)
	assert.Equal(t, arrivals, arrivals2)
	twice, err := Read("r2", bytes.NewReader(file2))
	require.NoError(t, err)
	late := 0
	for i, a := range got.Arrivals {
		b := twice.Arrivals[i]
		require.Equal(t, a.At, b.At, "query %d", i)
		require.Equal(t, a.Client, b.Client, "query %d", i)
		if b.Work != a.Work+2*sc.Network {
			late++ // it was open at the end, or in the hardly busy fleet it did wait
		}
	}
	assert.Less(t, late, len(got.Arrivals)/20)
}

// Failures have the work of another, and second attempts are no queries.
func TestFailuresAndSecondAttempts(t *testing.T) {
	var w trace.SegmentWriter
	a, b := engine.IDOf("a"), engine.IDOf("b")
	begin := func(shard uint64) {
		w.Begin(trace.Head{Shard: shard, Spec: "prequal", Began: 100})
		w.Endpoints(0, []engine.Candidate{{ID: a}, {ID: b}}, func(i int) (string, string) { return [...]string{"a", "b"}[i], "" })
	}
	decide := func(at engine.Instant, to engine.ID, tried ...engine.ID) {
		d := engine.Decision{ID: to, Regime: engine.RegimeCold}
		if to == b {
			d.Index = 1
		}
		w.Decided(&engine.Query{Now: at, Tried: tried}, &d, nil)
	}
	done := func(at engine.Instant, id engine.ID, took engine.Duration, o engine.Outcome) {
		w.Done(at, engine.Report{ID: id, Latency: took, Outcome: o})
	}
	begin(7)
	decide(10, a)
	decide(20, a)
	decide(30, b)
	done(35, b, 5, engine.OutcomeFailure)
	decide(36, a, b)                       // it is tried again
	done(60, a, 50, engine.OutcomeSuccess) // the first
	done(61, a, 41, engine.OutcomeSuccess) // the second
	w.Decided(&engine.Query{Now: 70}, &engine.Decision{}, engine.ErrNoneEligible)
	file := append([]byte(trace.Magic), w.Finish()...)
	begin(8)
	decide(15, b) // for ever
	file = append(file, w.Finish()...)

	got, err := Read("r", bytes.NewReader(file))
	require.NoError(t, err)
	assert.Equal(t, &Traffic{Clients: 2, Replicas: 2, Known: 2, Arrivals: []sim.Arrival{
		{At: 1, Work: 50}, {At: 6, Client: 1, Work: 50}, {At: 11, Work: 41}, {At: 21, Work: 41}, {At: 61, Work: 41},
	}}, got)

	got, err = Read("r", bytes.NewReader(file[:len(file)-1]))
	require.NoError(t, err)
	assert.True(t, got.Cut)
	assert.Len(t, got.Arrivals, 4)
}

func TestTables(t *testing.T) {
	got, err := Read("t", strings.NewReader("arrival_ns,work_ns\n2000,5\n1000,7\n"))
	require.NoError(t, err)
	assert.Equal(t, &Traffic{Clients: 1, Known: 2, Arrivals: []sim.Arrival{{At: 1, Work: 7}, {At: 1001, Work: 5}}}, got)
	got, err = Read("t", strings.NewReader("arrival_ns,work_ns,client\n1,5,3\n2,7,0\n"))
	require.NoError(t, err)
	assert.Equal(t, 4, got.Clients)
	for text, says := range map[string]string{
		"":                                    "t: neither a recording nor a table",
		"a,b\n1,2\n":                          "t: neither a recording nor a table",
		"arrival_ns,work_ns\n1,2\n":           "t: needs two queries and one that succeeded; record for longer",
		"arrival_ns,work_ns\n1,2\n2,-1\n":     `t:3: work_ns "-1" must be a whole number from 0 to 1000000000000`,
		"arrival_ns,work_ns\n1,2\n2\n":        "t: record on line 3: wrong number of fields",
		"arrival_ns,work_ns,client\n1,2,5000": `t:2: client "5000" must be a whole number from 0 to 4999`,
	} {
		_, err := Read("t", strings.NewReader(text))
		assert.ErrorContains(t, err, says, text)
	}
}
