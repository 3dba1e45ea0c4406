package probe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

const (
	ms  = engine.Millisecond
	sec = engine.Second
)

func estimator(t testing.TB, c probe.EstimatorConfig) *probe.Estimator {
	t.Helper()
	e, err := probe.NewEstimator(c)
	require.NoError(t, err)
	return e
}

// served lets a query arrive at a RIF and finish after its latency.
func served(e *probe.Estimator, at engine.Instant, rif uint32, latency engine.Duration) {
	e.Finish(at+engine.Instant(latency), e.Arrive(at, rif))
}

func TestEstimatorUnknownAtFirst(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	require.Equal(t, engine.UnknownLatency, e.Estimate(0, 0))
	a := e.Arrive(0, 0)
	require.Equal(t, engine.UnknownLatency, e.Estimate(engine.Instant(5*sec), 1), "an open query is not yet a latency")
	e.Fail(engine.Instant(6*sec), a)
	require.Equal(t, engine.UnknownLatency, e.Estimate(engine.Instant(6*sec), 0), "nor is a failed one")
}

func TestEstimatorAnswersForTheCurrentRIF(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	for i := range engine.Instant(9) {
		served(e, i*300*engine.Instant(ms), 1, 10*ms)
		served(e, i*300*engine.Instant(ms)+10*engine.Instant(ms), 20, 200*ms)
	}
	now := engine.Instant(3 * sec)
	require.Equal(t, 10*ms, e.Estimate(now, 0))
	require.Equal(t, 10*ms, e.Estimate(now, 10), "RIF 1 is nearer")
	require.Equal(t, 200*ms, e.Estimate(now, 11), "RIF 20 is nearer")
	require.Equal(t, 200*ms, e.Estimate(now, 1<<31))
}

func TestEstimatorKeepsTheFreshest(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	for i := range engine.Instant(16) {
		served(e, i*engine.Instant(sec/2), 3, 500*ms)
	}
	for i := range engine.Instant(5) {
		now := engine.Instant(8*sec) + i*engine.Instant(20*ms)
		require.Equal(t, 500*ms, e.Estimate(now, 3), "%d of the freshest nine", i)
		served(e, now, 3, 20*ms)
	}
	require.Equal(t, 20*ms, e.Estimate(engine.Instant(9*sec), 3), "five of the freshest nine")
}

func TestEstimatorMemoryAndHold(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	served(e, 0, 0, 100*ms)
	end := engine.Instant(100 * ms)
	require.Equal(t, 100*ms, e.Estimate(end+engine.Instant(10*sec)-1, 0), "within the memory")
	require.Equal(t, 100*ms, e.Estimate(end+engine.Instant(30*sec)-1, 0), "nothing younger: still held")
	require.Equal(t, engine.UnknownLatency, e.Estimate(end+engine.Instant(30*sec), 0), "forgotten")

	served(e, end+engine.Instant(31*sec), 0, 5*ms)
	served(e, end+engine.Instant(42*sec), 9, 7*ms)
	require.Equal(t, 7*ms, e.Estimate(end+engine.Instant(42*sec+8*ms), 0), "a younger one, however far, outdoes one past the memory")
	require.Equal(t, 5*ms, e.Estimate(end+engine.Instant(53*sec), 0), "with both past it, both are held")
}

// A replica serves RIF 2 at 10 ms; then 30 queries arrive at once and only the quick finish.
func TestEstimatorSurvivorship(t *testing.T) {
	jump := func(c probe.EstimatorConfig) engine.Duration {
		e := estimator(t, c)
		for i := range engine.Instant(40) {
			served(e, i*engine.Instant(10*ms), 2, 10*ms)
		}
		now := engine.Instant(sec)
		var open []probe.Arrival
		for rif := range uint32(30) {
			open = append(open, e.Arrive(now, 2+rif))
		}
		for _, i := range []int{29, 25, 21} {
			e.Finish(now+engine.Instant(2*ms), open[i])
		}
		return e.Estimate(now+engine.Instant(400*ms), 29)
	}
	require.Less(t, jump(probe.EstimatorConfig{FinishedOnly: true}), 11*ms, "the paper's rule flatters")
	require.Equal(t, 400*ms, jump(probe.EstimatorConfig{}), "queries open for 400 ms say so")
}

func TestEstimatorHungReplica(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	for i := range engine.Instant(20) {
		served(e, i, 0, ms)
	}
	for rif := range uint32(40) {
		e.Arrive(engine.Instant(sec), rif)
	}
	for _, after := range []engine.Duration{sec, 5 * sec, 12 * sec, 28 * sec} {
		require.Equal(t, after, e.Estimate(engine.Instant(sec+after), 40), "everything is stuck for that long")
	}
	require.Equal(t, engine.UnknownLatency, e.Estimate(engine.Instant(32*sec), 40))
}

// Many connections open for hours must not hide what short queries take.
func TestEstimatorLongOpenQueries(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	for rif := range uint32(50) {
		e.Arrive(0, rif)
	}
	hour := engine.Instant(3600 * sec)
	served(e, hour, 50, 3*ms)
	served(e, hour+engine.Instant(sec), 50, 4*ms)
	require.Equal(t, 3*ms, e.Estimate(hour+engine.Instant(2*sec), 50))
}

func TestEstimatorFailureNeverLowers(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	now := engine.Instant(0)
	for range 9 {
		served(e, now, 0, 50*ms)
		now += engine.Instant(50 * ms)
	}
	for range 100 {
		now += engine.Instant(ms)
		e.Fail(now, e.Arrive(now-engine.Instant(ms), 0))
		require.Equal(t, 50*ms, e.Estimate(now, 0), "fast failures")
	}
	for range 9 {
		a := e.Arrive(now, 0)
		now += engine.Instant(sec)
		e.Fail(now, a)
	}
	require.Equal(t, sec, e.Estimate(now, 0), "slow ones count")
}

func TestEstimatorInstantsNeverGoBack(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	a := e.Arrive(100, 0)
	e.Finish(50, a)
	require.Equal(t, engine.Duration(0), e.Estimate(20, 0))
	far := estimator(t, probe.EstimatorConfig{})
	far.Finish(1<<63-1, far.Arrive(-1<<63, 0))
	require.Equal(t, engine.MaxLatency, far.Estimate(1<<63-1, 0))
}

func TestEstimatorConfigValidate(t *testing.T) {
	for key, c := range map[string]probe.EstimatorConfig{
		"samples": {Samples: 65},
		"memory":  {Memory: -1},
		"hold":    {Hold: sec},
		"ring":    {Ring: 257},
		"tags":    {Tags: 12},
	} {
		var refused *engine.ConfigError
		_, err := probe.NewEstimator(c)
		require.ErrorAs(t, err, &refused, key)
		require.Equal(t, key, refused.Key)
		require.ErrorIs(t, err, engine.ErrConfig)
	}
	for _, c := range []probe.EstimatorConfig{
		{Samples: -1}, {Ring: -1}, {Tags: -64}, {Tags: 8192}, {Memory: engine.MaxLatency + 1}, {Hold: engine.MaxLatency + 1},
	} {
		require.ErrorIs(t, c.Validate(), engine.ErrConfig, "%+v", c)
	}
	require.NoError(t, probe.EstimatorConfig{Memory: engine.MaxLatency}.Validate())
	require.EqualError(t, probe.EstimatorConfig{Ring: 300}.Validate(), "estimator: ring=300: must be from 1 to 256")
}

func TestEstimatorAllocatesNothing(t *testing.T) {
	e := estimator(t, probe.EstimatorConfig{})
	now, rif := engine.Instant(0), uint32(0)
	require.Zero(t, testing.AllocsPerRun(5000, func() {
		now += engine.Instant(ms)
		rif = rif*2654435761 + 1
		tag := rif >> (rif % 32)
		a := e.Arrive(now, tag)
		e.Arrive(now, tag/2)
		e.Finish(now+engine.Instant(ms), a)
		e.Fail(now+engine.Instant(2*ms), a)
		e.Estimate(now+engine.Instant(ms), tag)
	}))
}

func BenchmarkEstimatorQuery(b *testing.B) {
	e := estimator(b, probe.EstimatorConfig{})
	b.ReportAllocs()
	now := engine.Instant(0)
	for b.Loop() {
		now += 1000
		e.Finish(now+500, e.Arrive(now, uint32(now>>10)&31))
	}
}

func BenchmarkEstimatorEstimate(b *testing.B) {
	for name, spread := range map[string]uint32{"one_tag": 1, "many_tags": 127} {
		b.Run(name, func(b *testing.B) {
			e := estimator(b, probe.EstimatorConfig{})
			for i := range engine.Instant(1000) {
				served(e, i*1000, uint32(i)*37%spread, engine.Duration(i*7919%1000))
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Estimate(2_000_000, spread/2)
			}
		})
	}
}
