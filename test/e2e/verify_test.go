package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host/hosttest"
)

// verified is what `wasmhost verify --json` prints, as far as tests ask.
type verified struct {
	Kept     int               `json:"kept"`
	Broken   int               `json:"broken"`
	Unjudged int               `json:"not_judged"`
	Laws     []hosttest.Result `json:"laws"`
}

func verify(t *testing.T, args ...string) (v verified, code int, stderr string) {
	t.Helper()
	cmd := exec.Command(wasmhost, append([]string{"verify", "--json"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	if len(out) > 0 {
		require.NoError(t, json.Unmarshal(out, &v), "%s", out)
	}
	return v, cmd.ProcessState.ExitCode(), errs.String()
}

// tool is a compiler that CI has, and a person may not.
func tool(t *testing.T, name, how string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed: %s", name, how)
		}
		t.Skipf("SKIPPED: %s is not installed: %s", name, how)
	}
}

// buildC compiles the guest in C, with its text changed first.
func buildC(t *testing.T, changes ...string) string {
	t.Helper()
	tool(t, "clang", "apt-get install clang lld")
	return buildGuest(t, "guest-c", "policy.c", changes...)
}

func buildRust(t *testing.T, changes ...string) string {
	t.Helper()
	tool(t, "/usr/bin/rustc", "apt-get install rustc libstd-rust-dev-wasm32 lld")
	return buildGuest(t, "guest-rust", "policy.rs", changes...)
}

func buildGuest(t *testing.T, example, file string, changes ...string) string {
	t.Helper()
	tool(t, "wasm-ld", "apt-get install lld")
	tool(t, "make", "apt-get install make")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/"+example)))
	source := filepath.Join(dir, file)
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	for i := 0; i < len(changes); i += 2 {
		require.Equal(t, 1, strings.Count(string(text), changes[i]), "%q is not there once", changes[i])
		text = []byte(strings.Replace(string(text), changes[i], changes[i+1], 1))
	}
	require.NoError(t, os.WriteFile(source, text, 0o644))
	cmd := exec.Command("make", "-s", "-C", dir, "OUT=policy.wasm")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out), "the compiler warns")
	return filepath.Join(dir, "policy.wasm")
}

func TestAGuestInCKeepsTheLaws(t *testing.T) {
	v, code, stderr := verify(t, "--laws", "load,even", buildC(t))
	assert.Zero(t, code, stderr)
	assert.Zero(t, v.Broken)
	assert.Equal(t, 27, v.Kept)
	assert.Empty(t, stderr, "progress is for terminals")
	for _, l := range v.Laws {
		assert.NotEqual(t, hosttest.Fail, l.Verdict, "%s: %s", l.Law, l.Reason)
	}
}

func TestAGuestInRustKeepsTheLaws(t *testing.T) {
	v, code, stderr := verify(t, "--laws", "proportional,even", buildRust(t))
	assert.Zero(t, code, stderr)
	assert.Equal(t, 27, v.Kept)
}

func TestFaultsInAGuestInRustAreNamed(t *testing.T) {
	for name, f := range map[string]struct{ from, to, law string }{
		"no bound":              {"count < 0 || count as usize > MOST", "count < 0", "counts out of range are refused"},
		"restores nothing":      {"self.block.random = self.u64_at(32);", "", "snapshot and restore is the identity"},
		"by number, not weight": {"ticket -= weight;", "ticket = ticket.saturating_sub(2 * weight);", "shares are in proportion to weights"},
	} {
		t.Run(name, func(t *testing.T) {
			v, code, _ := verify(t, "--laws", "proportional,even", "--runs", "20", buildRust(t, f.from, f.to))
			assert.Equal(t, 1, code)
			i := slices.IndexFunc(v.Laws, func(l hosttest.Result) bool { return l.Law == f.law })
			require.GreaterOrEqual(t, i, 0)
			assert.Equal(t, hosttest.Fail, v.Laws[i].Verdict, f.law)
			t.Log(v.Laws[i].Reason, v.Laws[i].Calls)
		})
	}
}

// A fault is planted in the source, and the law that it breaks is named, with the calls that show it.
func TestFaultsInAGuestInCAreNamed(t *testing.T) {
	for name, f := range map[string]struct{ from, to, law string }{
		"ignores draining":  {"if (status_of(i) == LB_STATUS_READY)", "", "a decision is for an eligible replica"},
		"ignores tried":     {"for (int32_t t = 0; t < tried; t++)", "for (int32_t t = 0; t < tried - 32; t++)", "a decision avoids the replicas tried"},
		"out of range":      {"return chosen;", "return here->block.count;", "a decision names a candidate and a regime"},
		"leaks":             {"if (in_flight(slot))", "static uint32_t n;\n\tif (!(++n % 200))\n\t\t__builtin_wasm_memory_grow(0, 1);\n\tif (in_flight(slot))", "memory and state do not grow with the calls"},
		"state outside":     {"here->block.random += 0x9e3779b97f4a7c15;\n\treturn (mix(here->block.random)", "static uint64_t r;\n\treturn (mix(r += 0x9e3779b97f4a7c15)", "snapshot and restore is the identity"},
		"forgets in flight": {"(old < 0 ? 0 : in_flight(old))", "(old < 0)", "the busiest replica is left alone while another is open"},
		"deaf to takeovers": {"|= in[i].queries;", "|= in[i].queries & 0;", "the busiest replica is left alone while another is open"},
		"half a refusal":    {"next->block.set = 0;", "next->block.set = 0;\n\there->block.random++;", "a refused fleet or status changes nothing"},
		"code of its own":   {"say(LB_E_UNKNOWN_ENDPOINT,", "say(-77,", "a refusal has a code of the interface and a text"},
		"merged errors":     {"say(LB_E_NONE_ELIGIBLE,", "say(LB_E_NO_CANDIDATES,", "a query is refused only for want of an open candidate, and by the precise error"},
		"divides by zero":   {"open > 1 ? draw(open - 1) : a;", "draw(open - 1) / (open - 1);", "no call traps"},
		"loops":             {"if (open) {", "for (volatile uint64_t k = key; k == 7;)\n\t\t;\n\tif (open) {", "no call traps"},
		"reads the key":     {"here->block.random += 0x9e3779b97f4a7c15", "here->block.random += 0", "every eligible replica gets its even share"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := buildC(t, f.from, f.to)
			v, code, stderr := verify(t, "--laws", "load,even", "--runs", "20", module)
			assert.Equal(t, 1, code)
			assert.Contains(t, stderr, fmt.Sprintf("breaks %d of 27 laws", v.Broken))
			i := slices.IndexFunc(v.Laws, func(l hosttest.Result) bool { return l.Law == f.law })
			require.GreaterOrEqual(t, i, 0)
			l := v.Laws[i]
			require.Equal(t, hosttest.Fail, l.Verdict, f.law)
			assert.NotEmpty(t, l.Reason)
			assert.NotEmpty(t, l.Calls)
			assert.Zero(t, v.Unjudged, "a guest that loops runs out of fuel in time for every law")
			assert.LessOrEqual(t, len(l.Calls), 13)
			t.Log(l.Reason, l.Calls)
		})
	}
}

func TestVerifySaysWhatItCannotJudge(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.wasm")
	require.NoError(t, os.WriteFile(text, []byte("hello, module"), 0o644))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no module":     {[]string{text}, "not a WebAssembly module"},
		"no file":       {[]string{"no-such.wasm"}, "no-such.wasm"},
		"no such group": {[]string{"--laws", "fairness"}, "affinity, minimal_disruption, even"},
		"refused spec":  {[]string{"--spec", "random sed=1"}, "sed"},
		"no runs":       {[]string{"--runs", "0"}, "--runs 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, code, stderr := verify(t, c.args...)
			assert.Equal(t, 2, code)
			assert.Contains(t, stderr, c.want)
			assert.Equal(t, 1, strings.Count(stderr, "\n"), "an error is one line")
		})
	}
}
