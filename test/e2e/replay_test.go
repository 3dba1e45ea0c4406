package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/wasm/dist"
)

// TestReplay plays one trace natively, in the guest, and both in step: the same output three times, which is then
// accepted as what is expected, and refused once a line of it is changed.
func TestReplay(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(trace, []byte(`{"op":"spec","spec":"prequal seed=7 reuse=1 remove_rate=0"}
{"op":"endpoints","at":0,"endpoints":[{"name":"a"},{"name":"b"},{"name":"c"}]}
{"op":"decide","at":1}
{"op":"reading","at":10,"endpoint":"a","rif":3,"latency_ns":2000000}
{"op":"reading","at":11,"endpoint":"b","rif":3,"latency_ns":1000000}
{"op":"reading","at":12,"endpoint":"c","rif":5}
{"op":"decide","at":20}
{"op":"decide","at":21,"tried":["a","b","c"]}
{"op":"done","at":30,"placement":1,"outcome":"success","latency_ns":1200000}
{"op":"probes","at":31}
`), 0o600))
	run := func(args ...string) (int, string, string) {
		p := start(t, append([]string{"replay", trace}, args...)...)
		code := p.wait()
		return code, p.text(&p.stdout), p.text(&p.stderr)
	}
	code, want, stderr := run()
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(want), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], `"cause":"empty"`)
	require.Contains(t, lines[1], `"endpoint":"b"`, "cold, the fastest known, and less loaded than c, which ranks as fast")
	require.Contains(t, lines[1], `"regime":"cold"`)
	require.Contains(t, lines[2], `"error":"none_eligible"`)
	require.Contains(t, lines[3], `"probe":[`)

	for _, engine := range []string{"native", "both"} {
		code, got, stderr := run("--engine", engine)
		require.Zero(t, code, stderr)
		require.Equal(t, want, got, engine)
	}
	for _, engine := range []string{"wasm", "native", "both"} {
		code, got, stderr := run("--engine", engine, "--explain", "1")
		require.Zero(t, code, stderr)
		require.Contains(t, got, "b answers fastest (1 ms) of the 3 cold entries on offer")
		require.Contains(t, got, "next would be")
		require.Equal(t, 1, strings.Count(got, "chosen"), got)
	}
	golden := filepath.Join(t.TempDir(), "golden.jsonl")
	require.NoError(t, os.WriteFile(golden, []byte(want), 0o600))
	code, _, stderr = run("--expect", golden)
	require.Zero(t, code, stderr)
	require.NoError(t, os.WriteFile(golden, []byte(strings.Replace(want, `"cold":3`, `"cold":2`, 1)), 0o600))
	code, _, stderr = run("--expect", golden)
	require.Equal(t, 1, code)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

// TestInspectAndBench read the module inside the binary and time it.
func TestInspectAndBench(t *testing.T) {
	p := start(t, "inspect", "--json")
	require.Zero(t, p.wait(), p.text(&p.stderr))
	var module struct {
		Digest   string `json:"sha256"`
		Guard    string
		Policies []string
		Exports  []string
	}
	require.NoError(t, json.Unmarshal([]byte(p.text(&p.stdout)), &module))
	require.Len(t, module.Digest, 64)
	require.Contains(t, module.Policies, "prequal")
	require.NotEmpty(t, module.Exports)
	require.Equal(t, "none", module.Guard)

	stranger := filepath.Join(t.TempDir(), "stranger.wasm") // the same, but for its digest
	require.NoError(t, os.WriteFile(stranger, append(slices.Clone(dist.Engine), 0, 3, 1, 'x', 0), 0o600))
	p = start(t, "inspect", stranger)
	require.Zero(t, p.wait(), p.text(&p.stderr))
	require.Contains(t, p.text(&p.stdout), "guard      fuel, 50000000 loop iterations a call\n")

	p = start(t, "bench", "--json", "--rounds", "10", "--candidates", "8", "--spec", "prequal seed=7")
	require.Zero(t, p.wait(), p.text(&p.stderr))
	require.True(t, json.Valid([]byte(p.text(&p.stdout))))
	require.Contains(t, p.text(&p.stderr), "of 1 fleets", "progress is shown where there is no terminal, too")
}
