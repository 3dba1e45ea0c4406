package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoutesAreReloadedUnderLoad has two routes with policies of their own. One is swapped, moved and reloaded under load,
// others come and go, and a file is wrong; the other keeps its pool. No request fails.
func TestRoutesAreReloadedUnderLoad(t *testing.T) {
	urls := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		_, urls[name] = startReplica(t, name, "127.0.0.1:0")
	}
	list := func(names string) string {
		var out []string
		for _, name := range strings.Fields(names) {
			out = append(out, fmt.Sprintf("{url: %q, name: %s}", urls[name], name))
		}
		return "  endpoints: [" + strings.Join(out, ", ") + "]\n"
	}
	config := filepath.Join(t.TempDir(), "proxy.yaml")
	write := func(text string) {
		require.NoError(t, os.WriteFile(config, []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nspec: prequal seed=7\nroutes:\n"+text), 0o600))
	}
	kept := "- name: kept\n  match: {path: /kept}\n" + list("a b")
	write(kept + "- name: moved\n" + list("c") + "  spec: round_robin seed=1\n")
	p := start(t, "serve", "--config", config)
	proxy, admin := p.find(&p.stdout, `proxy listens on (http://\S+) with kept for /kept/ with prequal seed=7, moved for everything with round_robin seed=1`), p.find(&p.stdout, `admin listens on (http://\S+)`)
	ofKept, ofMoved := startLoad(proxy+"/kept/", 4), startLoad(proxy+"/", 4)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, atLeast(ofKept.during(t, 100), 1))
	require.Equal(t, map[string]int{"c": 1}, atLeast(ofMoved.during(t, 50), 1))
	reload := func(want string) {
		t.Helper()
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		p.find(&p.stderr, want)
	}

	out, code := runCommand(t, "swap", admin, "--spec", "least_loaded")
	require.Equal(t, 2, code)
	require.Contains(t, out, "there are several routes: name one with ?route= or --route: kept, moved")
	out, code = runCommand(t, "swap", admin, "--route", "moved", "--spec", "least_loaded seed=3")
	require.Zero(t, code, out)
	ofMoved.during(t, 50)

	write(kept + "- name: moved\n" + list("c d") + "  spec: random seed=1\n- name: third\n  match: {host: third.example}\n" + list("e"))
	reload(`configuration reloaded.*endpoints of moved, policy of moved, route third (added)`)
	ofMoved.during(t, 20)
	require.Equal(t, map[string]int{"c": 1, "d": 1}, atLeast(ofMoved.during(t, 100), 1))
	write(kept + "- name: moved\n" + list("c d") + "  spec: fastest\n")
	reload(`the configuration was not taken.*proxy.yaml:10: route .*moved.*no such (policy)`)
	write(kept + "- name: moved\n" + list("d") + "  spec: random seed=1\n")
	reload(`configuration reloaded.*endpoints of moved, route third (removed)`)
	ofMoved.during(t, 20)
	require.Equal(t, map[string]int{"d": 1}, atLeast(ofMoved.during(t, 50), 1))
	require.Equal(t, map[string]int{"a": 1, "b": 1}, atLeast(ofKept.during(t, 50), 1))
	ofKept.end()
	ofMoved.end()
	require.Equal(t, map[int]int{http.StatusOK: int(ofKept.sent.Load())}, ofKept.statuses, ofKept.trouble)
	require.Equal(t, map[int]int{http.StatusOK: int(ofMoved.sent.Load())}, ofMoved.statuses, ofMoved.trouble)

	_, metrics, _ := get(admin + "/metrics")
	require.Contains(t, metrics, `headroom_generation{route="kept"} 1`+"\n", "its policy was left alone")
	require.Contains(t, metrics, `headroom_swaps_total{route="kept"} 0`+"\n")
	require.Contains(t, metrics, fmt.Sprintf(`headroom_outcomes_total{outcome="success",route="kept"} %d`, ofKept.sent.Load()), "nothing was forgotten")
	require.NotContains(t, metrics, `route="third"`)
	_, routes, _ := get(admin + "/routes")
	require.Contains(t, routes, `"path": "/kept"`)
	require.Zero(t, p.stop(syscall.SIGTERM))
	require.NotContains(t, p.text(&p.stderr), "did not end in peace")
}
