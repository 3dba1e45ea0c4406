package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// spy is a machine that a test listens in on.
type spy struct {
	engine.Machine
	load     func(id engine.ID, l engine.LoadReport)
	decide   func(q *engine.Query)
	recorded int
	forgot   int
	probes   int
}

func (s *spy) RecordLoad(now engine.Instant, id engine.ID, l engine.LoadReport) error {
	if s.load != nil {
		s.load(id, l)
	}
	return s.Machine.RecordLoad(now, id, l)
}

func (s *spy) Decide(q *engine.Query, d *engine.Decision) error {
	if s.decide != nil {
		s.decide(q)
	}
	return s.Machine.Decide(q, d)
}

func (s *spy) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	s.recorded++
	return s.Machine.Record(now, id, rd)
}

func (s *spy) Forget(now engine.Instant, id engine.ID, asked engine.Instant) error {
	s.forgot++
	return s.Machine.Forget(now, id, asked)
}

func (s *spy) Probes(now engine.Instant, dst []engine.ID) ([]engine.ID, error) {
	had := len(dst)
	dst, err := s.Machine.Probes(now, dst)
	s.probes += len(dst) - had
	return dst, err
}

// spied is a world of which every client is the same kind of spy.
func spied(t *testing.T, sc Scenario, spec string, each func(*spy)) (*World, *[]*spy) {
	t.Helper()
	var spies []*spy
	w, err := NewWorld(sc, spec, Maker{Machine: func(spec string, salt uint64) (engine.Machine, error) {
		m, err := Native(spec, salt)
		s := &spy{Machine: m}
		if each != nil {
			each(s)
		}
		spies = append(spies, s)
		return s, err
	}})
	require.NoError(t, err)
	return w, &spies
}

// Each replica reports once a second what it did over the last ten: its share of the queries, and
// the work of these over its allocation. Those who do not weigh reports hear none.
func TestLoadReportsAreTenSecondMeans(t *testing.T) {
	sc := small(T2())
	sc.Weather, sc.Load = 0, 7000
	heard := map[engine.ID][]engine.LoadReport{}
	w, _ := spied(t, sc, "weighted_round_robin", func(s *spy) {
		s.load = func(id engine.ID, l engine.LoadReport) { heard[id] = append(heard[id], l) }
	})
	var finished, used [30][41]uint64
	for second := range 41 {
		require.NoError(t, w.Run(int64(second)*Second))
		for i := range w.replicas {
			r := &w.replicas[i]
			finished[i][second] = r.finished
			_, u := r.account(w.now)
			used[i][second] = uint64(u)
		}
	}
	for i, id := range w.ids {
		got := heard[id]
		require.Len(t, got, 39*len(w.clients), "one report of each second, to every client, but for the first")
		last := got[len(got)-1]
		// Reports have a phase of their own within the second: a tenth of the span.
		assert.InEpsilon(t, float64(finished[i][40]-finished[i][30])*100, float64(last.QPS), 0.12, "%s", Name(i))
		assert.InEpsilon(t, float64(used[i][40]-used[i][30])/1e10/8*whole, float64(last.Utilization), 0.12, "%s", Name(i))
		assert.Zero(t, last.EPS)
	}
	// Weights work: replicas on machines half as fast have the same load as the others.
	var fast, slow float64
	for i := range w.replicas {
		if u := float64(used[i][40] - used[i][30]); w.replicas[i].cost > whole {
			slow += u
		} else {
			fast += u
		}
	}
	assert.InEpsilon(t, fast, slow, 0.03)

	quiet, _ := spied(t, sc, "prequal", func(s *spy) {
		s.load = func(engine.ID, engine.LoadReport) { t.Error("nobody asked for reports") }
	})
	require.NoError(t, quiet.Run(3*Second))
	sc.ReportEvery = 0
	never, _ := spied(t, sc, "weighted_round_robin", func(s *spy) {
		s.load = func(engine.ID, engine.LoadReport) { t.Error("reports are off") }
	})
	require.NoError(t, never.Run(3*Second))
}

func TestLoadReportsTellFailures(t *testing.T) {
	sc := small(Calm())
	var last engine.LoadReport
	w, _ := spied(t, sc, "weighted_round_robin", func(s *spy) {
		s.load = func(id engine.ID, l engine.LoadReport) {
			if id == engine.IDOf(Name(4)) {
				last = l
			}
		}
	})
	w.SetFailing(4, 5000)
	require.NoError(t, w.Run(20*Second))
	assert.InEpsilon(t, float64(last.QPS)/2, float64(last.EPS), 0.15)
}

// A query of the synchronous mode is decided on the first answers to its own probes; what comes
// later is a reading, and a query whose probes are all lost is placed blind when they time out.
func TestQueriesProbeForThemselves(t *testing.T) {
	sc := small(Calm())
	answers := [4]int{}
	w, spies := spied(t, sc, "prequal mode=sync probes=3 wait=2", func(s *spy) {
		s.decide = func(q *engine.Query) {
			answers[len(q.Answers)]++
			for _, a := range q.Answers {
				assert.Less(t, int64(q.Now)-int64(a.Reading.Asked), sc.ProbeTimeout)
			}
		}
	})
	m, err := w.Measure(0, 3*Second)
	require.NoError(t, err)
	require.NoError(t, w.Run(3*Second))
	assert.Zero(t, answers[0]+answers[1]+answers[3])
	assert.InDelta(t, w.Totals.Arrivals, answers[2], 20, "all but those whose probes are on their way")
	assert.InDelta(t, 3*w.Totals.Arrivals, w.Totals.ProbesSent, 3)
	late := 0
	for _, s := range *spies {
		late += s.recorded
	}
	assert.InDelta(t, w.Totals.Arrivals, late, 20, "the third answer")
	// An answer takes two legs of 150 us; the second of three is the median.
	assert.Greater(t, m.Latency.Quantile(1), 2*sc.Network+300*Microsecond-100*Microsecond)

	sc.ProbeLoss = whole
	w, _ = spied(t, sc, "prequal mode=sync", nil)
	m, err = w.Measure(0, 3*Second)
	require.NoError(t, err)
	require.NoError(t, w.Run(3*Second))
	var decided uint64
	for _, n := range w.Totals.ByRegime {
		decided += n
	}
	assert.Equal(t, decided, w.Totals.ByRegime[engine.RegimeFallback])
	assert.Positive(t, decided)
	assert.GreaterOrEqual(t, m.Latency.Quantile(1), sc.ProbeTimeout)
	assert.Zero(t, w.Totals.Errors)
}

// Losses take their share of the probes, and change neither traffic nor network.
func TestProbesAreLostByShare(t *testing.T) {
	sc := small(Calm())
	sc.ProbeLoss = 2000
	w, spies := spied(t, sc, "prequal", nil)
	require.NoError(t, w.Run(5*Second))
	// About 21,000 probes: a deviation of 0.28 points.
	assert.InDelta(t, 0.2, float64(w.Totals.ProbesLost)/float64(w.Totals.ProbesSent), 0.012)
	forgot := 0
	for _, s := range *spies {
		forgot += s.forgot
	}
	assert.EqualValues(t, w.Totals.ProbesLost, forgot)
	sc.ProbeLoss = 0
	none := world(t, sc, "prequal")
	require.NoError(t, none.Run(5*Second))
	assert.Equal(t, none.TrafficHash(), w.TrafficHash())
	assert.Zero(t, none.Totals.ProbesLost)
}

// Polls need no queries: with ticks every replica is asked twice a second, however few come.
func TestTicksSendWhatIsDue(t *testing.T) {
	sc := small(Calm())
	sc.Load = 10 // four queries a second
	polls := func() float64 {
		w := world(t, sc, "yarp_power_of_two poll=500ms")
		require.NoError(t, w.Run(20*Second))
		return float64(w.Totals.ProbesSent) / 20 / float64(sc.Replicas*sc.Clients)
	}
	assert.Less(t, polls(), 1.0)
	sc.Tick = 50 * Millisecond
	assert.InEpsilon(t, 2, polls(), 0.05)
}

// The bound knows what no policy can: nothing is late at a load at which the rest are.
func TestOmniscientIsABound(t *testing.T) {
	sc := small(T1())
	best := world(t, sc, Omniscient)
	require.NoError(t, best.Run(5*Second))
	q := best.Summary()
	for _, spec := range []string{"prequal", "c3", "least_loaded"} {
		w := world(t, sc, spec)
		require.NoError(t, w.Run(5*Second))
		assert.Greater(t, w.Summary().P99, q.P99*21/20, spec)
		assert.Equal(t, q.Traffic, w.Summary().Traffic)
	}
	_, err := Canonical(Omniscient)
	require.Error(t, err, "it is no policy")
	assert.NotContains(t, Policies(), Omniscient)

	for i := range sc.Replicas {
		best.SetState(i, StateDead)
	}
	was := best.Totals.Unplaced
	require.NoError(t, best.Run(6*Second))
	assert.Greater(t, best.Totals.Unplaced, was)
}

// Measures of consecutive spans add up to what one of the whole says, and to the world's totals.
func TestMeasuresAddUp(t *testing.T) {
	sc := small(Weather())
	whole, parts := world(t, sc, "prequal"), world(t, sc, "prequal")
	for _, w := range []*World{whole, parts} {
		w.SetFailing(3, 2000)
	}
	one, err := whole.Measure(0, 6*Second)
	require.NoError(t, err)
	var steps []*Measure
	for i := range int64(3) {
		m, err := parts.Measure(2*i*Second, 2*(i+1)*Second)
		require.NoError(t, err)
		steps = append(steps, m)
	}
	require.NoError(t, whole.Run(6*Second))
	require.NoError(t, parts.Run(7*Second))
	assert.Equal(t, whole.Totals, one.Totals)
	for _, m := range steps[1:] {
		steps[0].Merge(m)
	}
	assert.Equal(t, one.Totals, steps[0].Totals)
	assert.Equal(t, one.Latency, steps[0].Latency)
	assert.Equal(t, one.CPU, steps[0].CPU)
	assert.Equal(t, one.ByReplica, steps[0].ByReplica)
	assert.Equal(t, one.ByClient, steps[0].ByClient)
	assert.InDelta(t, one.Used, steps[0].Used, 1e-6*float64(one.Used))
	assert.EqualValues(t, 6*30, one.CPU.Count())
	assert.EqualValues(t, 30*(6*Second/RIFEvery-1), one.RIF.Count())
	assert.InEpsilon(t, float64(one.Used)/6e9/30/8*10_000, float64(one.CPU.Mean()), 0.001)
	var sum uint64
	for _, n := range one.ByClient {
		sum += n
	}
	assert.Equal(t, one.Totals.Arrivals, sum)
	all, failed := one.Ended()
	assert.Equal(t, one.Totals.Completed+one.Totals.Failed, all)
	assert.Equal(t, one.Totals.Failed, failed)
	assert.InDelta(t, 10_000, one.Share(engine.RegimeCold)+one.Share(engine.RegimeFallback), 1, "shares are rounded down")

	for _, span := range [][2]int64{{6 * Second, 9 * Second}, {8 * Second, 8 * Second}, {5 * Second, 9 * Second}} {
		_, err := parts.Measure(span[0], span[1])
		assert.ErrorIs(t, err, ErrMeasure)
	}
}

// A measure watches and does not touch.
func TestMeasuresChangeNothing(t *testing.T) {
	plain, watched := world(t, small(T1()), "prequal"), world(t, small(T1()), "prequal")
	_, err := watched.Measure(Second, 2*Second)
	require.NoError(t, err)
	require.NoError(t, plain.Run(3*Second))
	require.NoError(t, watched.Run(3*Second))
	assert.Equal(t, plain.Hash(), watched.Hash())
}

func TestHistogramBoundsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, 100*Second)), 1, 200).Draw(t, "values")
		var h, part Histogram
		var sum int64
		for i, x := range xs {
			if sum += x; i%2 == 0 {
				part.Add(x)
				continue
			}
			h.Add(x)
		}
		h.Merge(&part)
		if h.Sum() != sum || h.Count() != uint64(len(xs)) || h.Mean() != sum/int64(len(xs)) {
			t.Fatalf("sum %d, count %d", h.Sum(), h.Count())
		}
		for _, rank := range []uint64{1, 5000, 9900, 9990, whole} {
			want := max(1, (rank*uint64(len(xs))+whole-1)/whole)
			got := h.Quantile(rank)
			var atMost, below uint64
			for _, x := range xs {
				if x <= got {
					atMost++
				}
				if float64(x) < float64(got)/(1+1.0/128) {
					below++
				}
			}
			if atMost < want || below >= want && got > 255 || got <= 255 && h.AtMost(got) != atMost {
				t.Fatalf("rank %d: %d", rank, got)
			}
		}
	})
}

// With subsets each client keeps to so many replicas, all replicas are known to about as many
// clients, and nothing else changes: not the traffic, and no run without them.
func TestSubsets(t *testing.T) {
	sc := small(Calm())
	sc.Subset = 10
	w := world(t, sc, "round_robin seed=1")
	m, err := w.Measure(0, 5*Second)
	require.NoError(t, err)
	known := map[engine.ID]int{}
	for c := range w.clients {
		cs := w.candidates(c)
		require.Len(t, cs, 10)
		for _, x := range cs {
			known[x.ID]++
		}
	}
	require.Len(t, known, 30)
	for id, n := range known {
		assert.Equal(t, 10, n, "replica %d", w.Replica(id))
	}
	w.SetState(4, StateDead)
	require.NoError(t, w.Run(5*Second))
	for i, n := range m.ByReplica {
		if i != 4 {
			assert.InEpsilon(t, m.Totals.Arrivals/30, n, 0.3, Name(i))
		}
	}
	c, err := w.Clone()
	require.NoError(t, err)
	for _, x := range []*World{w, c} {
		require.NoError(t, x.Reload("least_loaded", 0, 15))
		x.SetState(5, StateAbsent)
		require.NoError(t, x.Run(7*Second))
	}
	assert.Equal(t, w.Hash(), c.Hash())
	assert.Zero(t, w.Totals.Unplaced)
	sc.Subset = 30
	all := world(t, sc, "prequal")
	sc.Subset = 0
	none := world(t, sc, "prequal")
	require.NoError(t, all.Run(2*Second))
	require.NoError(t, none.Run(2*Second))
	assert.Equal(t, none.Hash(), all.Hash())
	assert.Equal(t, 30, len(all.candidates(0)))
}
