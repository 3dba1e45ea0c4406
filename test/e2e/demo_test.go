package e2e

import (
	"encoding/json"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// busy is the generator's p99 lag in milliseconds above which a machine is too busy to compare tails on it.
const busy = 25

// TestDemo runs the comparison, shorter than by default, and holds it to what it is for: nothing lost, every decision
// counted by regime, and on a machine that is not busy otherwise a p99 of Prequal's below round robin's and random's.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("needs some ten seconds of load")
	}
	p := start(t, "demo", "--json", "--duration", "5s", "--rounds", "1")
	require.Zero(t, p.wait(), p.text(&p.stderr))
	var doc struct {
		Lost, Errors int
		Lag          float64 `json:"generator_lag_p99_ms"`
		Verdict      string
		Scenario     struct{ Balancers, Replicas int }
		Results      []struct {
			Spec           string
			Queries, OK    int
			P99            float64 `json:"p99_ms"`
			Regimes        map[string]int
			Traps          int
			ProbesPerQuery float64 `json:"probes_per_query"`
			Fit            *struct {
				Pool  int
				Small bool `json:"small_fleet_rule"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(p.text(&p.stdout)), &doc), "stdout is one JSON document")
	require.Zero(t, doc.Lost)
	require.Zero(t, doc.Errors)
	require.Equal(t, 20, doc.Scenario.Balancers)
	require.Equal(t, 10, doc.Scenario.Replicas)
	require.Contains(t, p.text(&p.stderr), "round 1 of 1, prequal", "progress goes to stderr")
	require.Regexp(t, `none of \d+ queries was lost or failed\.`, doc.Verdict)

	p99 := map[string]float64{}
	for _, r := range doc.Results {
		require.Equal(t, doc.Results[0].Queries, r.Queries, "every policy gets the same queries")
	}
	for _, r := range doc.Results {
		require.Greater(t, r.Queries, 300, r.Spec)
		require.Equal(t, r.Queries, r.OK, r.Spec)
		decisions := 0
		for _, n := range r.Regimes {
			decisions += n
		}
		require.Equal(t, r.Queries, decisions, "%s: one decision per query, since nothing was retried", r.Spec)
		require.Zero(t, r.Traps, r.Spec)
		p99[r.Spec] = r.P99
		if r.Spec != "prequal" {
			require.Equal(t, r.Queries, r.Regimes["direct"], r.Spec)
			require.Zero(t, r.ProbesPerQuery, r.Spec)
			continue
		}
		require.NotNil(t, r.Fit)
		require.True(t, r.Fit.Small, "ten replicas are outside the formula's domain")
		require.Equal(t, 5, r.Fit.Pool)
		if doc.Lag > busy {
			continue
		}
		require.Greater(t, r.Regimes["cold"]+r.Regimes["hot"], r.Queries*8/10, "decisions come from the pool: %v", r.Regimes)
		require.InDelta(t, 3, r.ProbesPerQuery, 0.3)
	}
	if doc.Lag > busy {
		t.Logf("this machine is busy (generator lag p99 %.0f ms): the order of the policies is not checked. %s", doc.Lag, doc.Verdict)
		return
	}
	require.Less(t, p99["prequal"], p99["round_robin"], doc.Verdict)
	require.Less(t, p99["prequal"], p99["random"], doc.Verdict)
}

// TestDemoCanBeInterrupted ends a run in its first seconds: one line, exit 1, no table made from half the rounds.
func TestDemoCanBeInterrupted(t *testing.T) {
	p := start(t, "demo")
	p.find(&p.stdout, `interleaved`)
	require.Equal(t, 1, p.stop(syscall.SIGINT))
	require.Equal(t, "wasmhost: interrupted before the comparison was complete\n", p.text(&p.stderr))
	require.NotContains(t, p.text(&p.stdout), "p99.9")
}
