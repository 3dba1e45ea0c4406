package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// runCommand runs wasmhost to its end and returns all it said.
func runCommand(t *testing.T, args ...string) (string, int) {
	t.Helper()
	p := start(t, args...)
	code := p.wait()
	return p.text(&p.stdout) + p.text(&p.stderr), code
}

// A proxy under load is swapped, tried on a share, compared and rolled back, and then reloaded by a signal: no request fails,
// and what it recorded meanwhile replays bit for bit, natively and in the guest.
func TestAProxyIsChangedAndRecordedUnderLoad(t *testing.T) {
	_, a := startReplica(t, "a", "127.0.0.1:0")
	_, b := startReplica(t, "b", "127.0.0.1:0", "--slow-share", "0.3")
	dir := t.TempDir()
	config := filepath.Join(dir, "proxy.yaml")
	write := func(spec string) {
		require.NoError(t, os.WriteFile(config, []byte("spec: "+spec+"\nrecord: 1m\n"), 0o600))
	}
	write("prequal seed=7 min_pool=1")
	p, proxy, admin := startProxy(t, []string{a, b}, "--config", config)
	l := startLoad(proxy, 8)
	l.during(t, 100)

	out, code := runCommand(t, "swap", admin, "--spec", "least_loaded seed=7")
	require.Zero(t, code, out)
	require.Contains(t, out, `"spec": "least_loaded seed=7"`)
	l.during(t, 100)
	out, code = runCommand(t, "swap", admin, "--spec", "fastest")
	require.Equal(t, 2, code)
	require.Contains(t, out, "no such policy")
	out, code = runCommand(t, "swap", admin, "--spec", "prequal seed=9", "--canary", "0.5")
	require.Zero(t, code, out)
	l.during(t, 100)
	out, code = runCommand(t, "swap", admin)
	require.Zero(t, code, out)
	require.Equal(t, "policy      least_loaded seed=7\ncanary      prequal seed=9 (share 0.5)\ncomparison  none\n", out)
	out, code = runCommand(t, "swap", admin, "--promote")
	require.Zero(t, code, out)
	require.Contains(t, out, `"spec": "prequal seed=9"`)
	out, code = runCommand(t, "swap", admin, "--spec", "round_robin seed=1", "--compare")
	require.Zero(t, code, out)
	l.during(t, 100)
	out, code = runCommand(t, "swap", admin, "--compared")
	require.Zero(t, code, out)
	require.Contains(t, out, `"live_reason"`, "differences are explained")
	out, code = runCommand(t, "swap", admin, "--end-compare")
	require.Zero(t, code, out)
	require.Contains(t, out, `"decisions"`)
	out, code = runCommand(t, "swap", admin, "--end-compare")
	require.Equal(t, 1, code, out)
	out, code = runCommand(t, "swap", admin, "--rollback")
	require.Zero(t, code, out)
	l.during(t, 100)

	write("random seed=3 nonsense=1")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.find(&p.stderr, `the configuration was not taken; the old one serves on.*(nonsense)`)
	write("prequal seed=7 min_pool=1 quantile=0.5")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.find(&p.stderr, `configuration reloaded.*(policy)`)
	l.during(t, 100)
	l.end()
	require.Equal(t, map[int]int{http.StatusOK: int(l.sent.Load())}, l.statuses, l.trouble)

	recording := filepath.Join(dir, "now.rec")
	out, code = runCommand(t, "record", admin, "-o", recording)
	require.Zero(t, code, out)
	out, code = runCommand(t, "replay", "--engine", "both", recording)
	require.Zero(t, code, out)
	require.Contains(t, out, "answers are as recorded")
	out, code = runCommand(t, "replay", "--engine", "native", "--spec", "least_loaded seed=1", recording)
	require.Zero(t, code, out)
	require.Contains(t, out, "it diverges at")
}
