package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/test/guestbuild"
)

// series reads one line of the metrics.
func series(t *testing.T, admin, name string) int {
	t.Helper()
	_, metrics, _ := get(admin + "/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\d+)$`).FindStringSubmatch(metrics)
	require.NotNil(t, m, name)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// TestAProxySurvivesItsGuest serves by a module that loops, recurses, eats memory, lies, panics or dawdles when a
// request says so: that request and those beside it are answered all the same, metrics and log tell what happened,
// and the module serves again.
func TestAProxySurvivesItsGuest(t *testing.T) {
	wasm, err := guestbuild.Build("../..", "./test/testdata/guests/bad")
	require.NoError(t, err)
	module := filepath.Join(t.TempDir(), "bad.wasm")
	require.NoError(t, os.WriteFile(module, wasm, 0o600))
	_, a := startReplica(t, "a", "127.0.0.1:0")
	_, b := startReplica(t, "b", "127.0.0.1:0")

	for _, c := range []struct {
		fault string
		times int // requests in a row that carry it
		log   string
	}{
		{"panic", 1, `guest trapped: .*unreachable`},
		{"loop", 1, `guest trapped: ran out of fuel: \d+ loop iterations in one call of lb_decide`},
		{"recurse", 1, `guest trapped: (ran out of fuel|.*stack overflow)`},
		{"eat memory", 1, `guest trapped: .*(unreachable|out of memory)`},
		{"out of range", 1, `guest gave a wrong answer`},
		{"slow", 12, `guest is too slow`},
	} {
		t.Run(c.fault, func(t *testing.T) {
			p, proxy, admin := startProxy(t, []string{a, b}, "--module", module, "--spec", "bad", "--key", "X-Fault", "--fuel", "2000000000")
			l := startLoad(proxy, 4)
			l.during(t, 20)
			for range c.times {
				status, body, _ := get(proxy, "X-Fault", c.fault)
				require.Equal(t, http.StatusOK, status, body)
			}
			p.find(&p.stderr, `(?m)^(.*`+c.log+`.*)$`)
			l.during(t, 20)
			require.Eventually(t, func() bool { return series(t, admin, "headroom_rebuilds_total") > 0 }, patience, 10*time.Millisecond)
			before := series(t, admin, `headroom_decisions_total{regime="direct"}`)
			l.during(t, 20)
			l.end()
			require.Equal(t, map[int]int{http.StatusOK: int(l.sent.Load())}, l.statuses, l.trouble)
			require.Positive(t, series(t, admin, "headroom_traps_total"))
			require.Greater(t, series(t, admin, `headroom_decisions_total{regime="direct"}`), before, "the module serves again")
			if c.fault == "slow" {
				require.GreaterOrEqual(t, series(t, admin, "headroom_slow_decisions_total"), 8)
			} else {
				require.Positive(t, series(t, admin, `headroom_fallbacks_total{cause="trap"}`))
			}
			require.Zero(t, series(t, admin, "headroom_in_flight"))
		})
	}
}
