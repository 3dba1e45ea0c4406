package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func (b budget) mean() float64 { return float64(b.num) / float64(b.den) }

// The paper's values and those computed from its equation 1.
func TestReuseBudgetFollowsTheEquation(t *testing.T) {
	for n, want := range map[int]float64{25: 25, 28: 7, 32: 4, 40: 2.5, 50: 1.9230769, 64: 1.6, 100: 1.3157894, 200: 1.1363636, 1000: 1.0245901} {
		c := DefaultPrequal(0)
		b, ok := c.derive(n)
		require.True(t, ok, n)
		b.settle()
		assert.InDelta(t, want, b.mean(), 1e-6, n)
		assert.False(t, b.shrunk)
	}
	for rate, want := range map[uint64]float64{40000: 1, 28284: 1, 20000: 1.3986, 14142: 2.1324, 10000: 3.3898, 7071: 5.8146, 5000: 11.7647} { // experiment E4
		c := DefaultPrequal(0)
		c.ProbeRate, c.RemoveRate = rate, 2500
		b, ok := c.derive(100)
		require.True(t, ok)
		b.settle()
		assert.InDelta(t, want, b.mean(), 1e-3, rate)
	}
	for n := range 25 {
		c := DefaultPrequal(0)
		_, ok := c.derive(n)
		assert.False(t, ok, "n of 24 or less is outside the domain: %d", n)
	}
}

func TestTheSmallFleetRuleStaysInBounds(t *testing.T) {
	for n := 1; n <= 32; n++ {
		for _, probes := range []uint64{0, 2500, 10000, 30000, 160000} {
			c := DefaultPrequal(0)
			c.ProbeRate = probes
			b := c.fit(n)
			b.settle()
			assert.LessOrEqual(t, b.pool, uint64(16))
			assert.GreaterOrEqual(t, b.pool, uint64(3))
			assert.LessOrEqual(t, b.removeRate, c.RemoveRate)
			assert.GreaterOrEqual(t, b.mean(), 1.0)
			assert.LessOrEqual(t, b.mean(), 10.0)
			assert.GreaterOrEqual(t, int(b.pool)*10000-int(b.removeRate), 2*10000, "min_pool entries are left")
			if n >= 6 && probes == 30000 {
				inflow := float64(n-int(b.pool)) / float64(n) * 3
				assert.GreaterOrEqual(t, inflow-float64(b.removeRate)/10000, 0.4999, "n=%d", n)
				assert.InDelta(t, n/2, b.pool, 0, "n=%d", n)
			}
		}
	}
}

func fleet(n int) []engine.Candidate {
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i].ID = engine.ID(i)
	}
	return cs
}

func TestStrictFitRefusesAndThenHolds(t *testing.T) {
	p, err := Parse("prequal fit=strict")
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	err = e.SetCandidates(0, fleet(24))
	require.ErrorIs(t, err, engine.ErrConfig)
	assert.EqualError(t, err, "prequal: fit=strict: a pool of 16 cannot sustain itself with 24 eligible replicas: needs more replicas than pool entries, (1 - pool/n)*probe_rate = 1 above remove_rate = 1, and pool - remove_rate at least min_pool = 2; use fit=auto, a smaller pool or remove_rate, or reuse=N")
	var d engine.Decision
	assert.ErrorIs(t, e.Decide(&engine.Query{}, &d), engine.ErrNoCandidates, "nothing was taken")
	require.NoError(t, e.SetCandidates(0, fleet(100)))
	require.NoError(t, e.SetCandidates(0, fleet(10)), "a live fleet that shrinks keeps serving")
	var c engine.Counters
	var f engine.Fit
	require.NoError(t, e.Inspect(&c, &f))
	assert.True(t, f.Held)
	assert.Equal(t, uint64(13157), f.ReuseBudget)
	assert.Equal(t, uint64(1), c.HeldFit)
	assert.NoError(t, e.Decide(&engine.Query{}, &d))
}

func TestFitReportsWhatIsInForce(t *testing.T) {
	p, _ := Parse("prequal")
	e := engine.New(p, engine.Config{})
	var c engine.Counters
	var f engine.Fit
	require.NoError(t, e.SetCandidates(0, fleet(10)))
	require.NoError(t, e.Inspect(&c, &f))
	assert.Equal(t, engine.Fit{Pool: 5, RemoveRate: 10000, ReuseBudget: 40000, Threshold: engine.NoThreshold, Shrunk: true}, f)
	require.NoError(t, e.SetCandidates(0, fleet(100)))
	require.NoError(t, e.Inspect(&c, &f))
	assert.Equal(t, engine.Fit{Pool: 16, RemoveRate: 10000, ReuseBudget: 13157, Threshold: engine.NoThreshold}, f)
}

// Long-run counts equal the configured rates within one, whatever fraction they are, and the
// mean of the rounded budget is the budget.
func TestRatesAreExactInTheLongRun(t *testing.T) {
	for _, spec := range []string{"prequal probe_rate=1.4142 remove_rate=0.333", "prequal probe_rate=3 remove_rate=1", "prequal probe_rate=0.25 remove_rate=0.1"} {
		p, err := Parse(spec + " seed=5 idle=0")
		require.NoError(t, err)
		q := p.(*Prequal)
		e := engine.New(p, engine.Config{})
		require.NoError(t, e.SetCandidates(0, fleet(200)))
		var d engine.Decision
		const queries = 20000
		for i := range queries {
			now := engine.Instant(i * 100)
			for j := range 4 {
				_, err := e.Record(now, engine.ID((i*4+j)*71%200), engine.Reading{RIF: uint32(j), Latency: engine.Duration(i + j), Asked: now})
				require.NoError(t, err)
			}
			require.NoError(t, e.Decide(&engine.Query{Now: now}, &d))
			_, _ = e.Probes(now, nil)
		}
		var c engine.Counters
		var f engine.Fit
		require.NoError(t, e.Inspect(&c, &f))
		assert.InDelta(t, float64(queries)*float64(q.c.ProbeRate)/10000, c.ProbesDue, 1, spec)
		assert.InDelta(t, float64(queries)*float64(q.b.removeRate)/10000, c.RemovedWorst+c.RemovedOldest, 1, spec)
		assert.LessOrEqual(t, max(c.RemovedWorst, c.RemovedOldest)-min(c.RemovedWorst, c.RemovedOldest), uint64(1), "they alternate")
	}
}

func TestRoundedBudgetKeepsItsMean(t *testing.T) {
	p, err := Parse("prequal seed=3")
	require.NoError(t, err)
	q := p.(*Prequal)
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, fleet(100)))
	const n = 400000
	sum := 0.0
	for range n {
		sum += float64(q.uses())
	}
	// A Bernoulli of 0.3158: four standard errors of the mean are 0.003.
	assert.InDelta(t, q.b.mean(), sum/n, 0.003)
}

// With a reading of every replica before each query, no fleet of two or more is ever blind.
func TestNoFleetFallsBackWhenProbesAreAnswered(t *testing.T) {
	for n := 2; n <= 40; n++ {
		p, err := Parse("prequal seed=7")
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		require.NoError(t, e.SetCandidates(0, fleet(n)))
		var d engine.Decision
		for i := range 500 {
			now := engine.Instant(i * 1000)
			for r := range n {
				_, err := e.Record(now, engine.ID(r), engine.Reading{RIF: uint32(r % 3), Latency: engine.Duration(r*37%n + 1), Asked: now})
				require.NoError(t, err)
			}
			require.NoError(t, e.Decide(&engine.Query{Now: now}, &d))
			assert.NotEqual(t, engine.RegimeFallback, d.Regime, "n=%d, query %d: %d offered", n, i, d.Offered)
		}
	}
}

func TestStrictFitTakesAnEmptyFleet(t *testing.T) {
	p, err := Parse("prequal fit=strict")
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	var d engine.Decision
	require.NoError(t, e.SetCandidates(0, nil))
	assert.ErrorIs(t, e.Decide(&engine.Query{}, &d), engine.ErrNoCandidates)
	drained := fleet(3)
	for i := range drained {
		drained[i].Status = engine.StatusDraining
	}
	require.NoError(t, e.SetCandidates(0, drained))
	assert.ErrorIs(t, e.Decide(&engine.Query{}, &d), engine.ErrNoneEligible)
}
