package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

const millis = engine.Millisecond

// filled is a machine whose pool holds one reading of each of the first replicas.
func filled(t *testing.T, spec string, n int, readings ...engine.Reading) (*engine.Engine, []engine.Candidate) {
	t.Helper()
	e, cs := machine(t, spec, n)
	for i, rd := range readings {
		_, err := e.Record(0, cs[i].ID, rd)
		require.NoError(t, err)
	}
	return e, cs
}

func TestLinearTheLeastSumDecides(t *testing.T) {
	readings := []engine.Reading{
		{RIF: 1, Latency: 300 * millis}, // sums at a half and 75 ms: 187.5
		{RIF: 3, Latency: 100 * millis}, // 162.5
		{RIF: 5, Latency: 10 * millis},  // 192.5
		{RIF: 0, Latency: 340 * millis}, // 170
	}
	for spec, want := range map[string]int{
		"linear remove_rate=0":                          1,
		"linear remove_rate=0 lambda=0":                 2,
		"linear remove_rate=0 lambda=1":                 3,
		"linear remove_rate=0 alpha=200ms":              3,
		"linear remove_rate=0 alpha=1ms":                2,
		"linear remove_rate=0 lambda=0.2":               2,
		"linear remove_rate=1 lambda=1":                 3, // the worst, with the greatest RIF, leaves first
		"linear remove_rate=1":                          1,
		"linear remove_rate=0 pool=40":                  1, // scanned
		"linear remove_rate=0 pool=40 lambda=1 reuse=3": 3,
	} {
		e, _ := filled(t, spec, 100, readings...)
		x := e.Explain(&engine.Query{Now: 5})
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Now: 5}, &d))
		assert.Equal(t, want, int(d.Index), spec)
		assert.Equal(t, x.Decision, d)
		assert.Equal(t, engine.RegimeDirect, d.Regime)
		assert.Equal(t, readings[want].RIF, d.RIF)
		assert.Equal(t, readings[want].Latency, d.Latency)
		assert.Equal(t, engine.Duration(5), d.Age)
		assert.Equal(t, engine.NoThreshold, d.Threshold)
		assert.Contains(t, x.Because, "has the least sum")
	}
}

func TestLinearCountsItsOwnQueries(t *testing.T) {
	e, cs := filled(t, "linear remove_rate=0 reuse=100", 100, engine.Reading{RIF: 1, Latency: 10 * millis}, engine.Reading{RIF: 3, Latency: 10 * millis})
	counts := map[engine.ID]int{}
	for range 20 {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		counts[d.ID]++
	}
	assert.Equal(t, map[engine.ID]int{cs[0].ID: 11, cs[1].ID: 9}, counts, "each query counts as one more in flight")
}

func TestScoredRulesFallBackOnAThinPool(t *testing.T) {
	for _, spec := range []string{"linear seed=3", "c3 seed=3"} {
		e, cs := filled(t, spec, 100)
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		assert.Equal(t, engine.RegimeFallback, d.Regime, spec)
		assert.Equal(t, engine.CauseEmpty, d.Cause)
		_, _ = e.Record(0, cs[1].ID, engine.Reading{})
		_, _ = e.Record(0, cs[2].ID, engine.Reading{})
		require.NoError(t, e.Decide(&engine.Query{Tried: []engine.ID{cs[1].ID, cs[2].ID}}, &d))
		assert.Equal(t, engine.RegimeFallback, d.Regime, spec)
		x := e.Explain(&engine.Query{Tried: []engine.ID{cs[1].ID}})
		assert.Contains(t, x.Because, "fewer than min_pool=2")
	}
	e, _ := filled(t, "c3 seed=3", 10)
	even(t, shares(t, e, 100000, 10, true), 33.7)
}

func TestScoredRulesRefuseAFleetOutsideTheBudget(t *testing.T) {
	for _, name := range []string{"linear", "c3"} {
		p, err := policy.Parse(name + " fit=strict")
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		cs := make([]engine.Candidate, 20)
		for i := range cs {
			cs[i].ID = engine.ID(i)
		}
		err = e.SetCandidates(0, cs)
		require.ErrorIs(t, err, engine.ErrConfig)
		assert.Contains(t, err.Error(), name+": fit=strict: a pool of 16 cannot sustain itself with 20")
	}
}

// With no weight on RIF the rule is Prequal's with everything cold, in every decision.
func TestLinearWithoutRIFIsPrequalWithEverythingCold(t *testing.T) {
	for _, rest := range []string{"", " pool=40", " max_age=20us idle=0", " remove_rate=0.3 pool=6", " aversion=off"} {
		mk := func(spec string) *engine.Engine {
			p, err := policy.Parse(spec)
			require.NoError(t, err)
			return engine.New(p, engine.Config{})
		}
		a, b := mk("linear seed=5 lambda=0"+rest), mk("prequal seed=5 quantile=1"+rest)
		v, w := enginetest.NewWalker(3), enginetest.NewWalker(3)
		require.NoError(t, v.Begin(a))
		require.NoError(t, w.Begin(b))
		placed := 0
		for i := range 20000 {
			x, y := v.Step(a), w.Step(b)
			if x.Decision != nil && y.Decision != nil {
				d := *y.Decision
				if d.Regime == engine.RegimeCold {
					d.Regime = engine.RegimeDirect
					placed++
				}
				require.Equal(t, d, *x.Decision, "step %d of %q", i, rest)
				continue
			}
			require.Equal(t, y.Text(), x.Text())
		}
		require.Greater(t, placed, 1000)
	}
}

// What is claimed to allocate nothing does: decisions by every branch, retries, reports,
// readings, probes.
func TestD5LoadRulesAllocateNothing(t *testing.T) {
	for _, spec := range []string{
		"least_request", "least_request bias=0", "least_request slow_start=1s", "peak_ewma", "yarp_power_of_two poll=1ms",
		"linear", "linear pool=40", "c3", "c3 pool=40 clients=9", "linear max_age=300us", "c3 max_age=300us",
	} {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		cs := make([]engine.Candidate, 100)
		for i := range cs {
			cs[i] = engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(i%4 + 1)}
		}
		require.NoError(t, e.SetCandidates(0, cs))
		require.NoError(t, e.SetStatus(0, cs[7].ID, engine.StatusDraining))
		probes := make([]engine.ID, 0, policy.MaxProbes)
		retry := engine.Query{Tried: []engine.ID{3, 7, 50, 51, 52, 53}}
		var d engine.Decision
		i := 0
		allocs := testing.AllocsPerRun(3000, func() {
			i++
			now := engine.Instant(i) * 50_000
			_, _ = e.Record(now, cs[i*37%100].ID, engine.Reading{RIF: uint32(i % 9), Latency: engine.Duration(i*7919%50000 - 1), Asked: now})
			_ = e.Decide(&engine.Query{Now: now}, &d)
			retry.Now = now
			_ = e.Decide(&retry, &d)
			_ = e.Report(now, engine.Report{ID: d.ID, Outcome: engine.Outcome(i % 4), Latency: engine.Duration(i % 1000)})
			probes, _ = e.Probes(now, probes[:0])
			_ = e.Forget(now, cs[i%100].ID, now)
		})
		assert.Zero(t, allocs, spec)
	}
}

// A block carries the whole state, and whatever its words, a machine refuses it or serves on.
func TestLoadRulesKeepTheirStateInTheBlock(t *testing.T) {
	for _, spec := range []string{
		"least_request seed=7", "least_request seed=7 slow_start=50us bias=0", "peak_ewma seed=7", "yarp_power_of_two seed=7 poll=1ms",
		"linear seed=7", "c3 seed=7 pool=40",
	} {
		t.Run(spec, func(t *testing.T) {
			theTablesFollowTheFleet(t, spec)
			servesOrRefuses(t, spec)
		})
	}
}

func TestLoadRulesKeepTheLawsWithOddSettings(t *testing.T) {
	for _, spec := range []string{
		"linear seed=7 pool=4 max_age=20us lambda=1", "linear seed=7 pool=40 alpha=1us", "c3 seed=7 pool=4 max_age=20us clients=100", "c3 seed=7 pool=40 alpha=0.01",
		"peak_ewma seed=7 tau=1ms", "yarp_power_of_two seed=7 poll=1ms",
	} {
		t.Run(spec, func(t *testing.T) { enginetest.TestPolicy(t, enginetest.Native(policy.Parse, spec)) })
	}
}
