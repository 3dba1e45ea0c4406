package test_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host/hosttest"
)

var (
	filePattern  = regexp.MustCompile("(?s)<!-- file (\\S+) -->\n```go\n(.*?)```")
	shellPattern = regexp.MustCompile("(?s)```sh\n(.*?)```")
	claimPattern = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.+) \\|$")
)

// The page on writing a policy is followed to the letter: its files, its commands, in its order. What it says of other
// languages needs their compilers; the rest runs without.
func TestThePageOnCustomPoliciesWorks(t *testing.T) {
	b, err := os.ReadFile("../docs/custom-policy.md")
	require.NoError(t, err)
	page, missing := string(b), ""
	for _, name := range []string{"clang", "wasm-ld", "/usr/bin/rustc", "make"} {
		if _, err := exec.LookPath(name); err != nil && missing == "" {
			require.Empty(t, os.Getenv("CI"), "%s is not installed; .ci/run installs it", name)
			missing = name
		}
	}
	if missing != "" {
		var found bool
		page, _, found = strings.Cut(page, "\n## In other languages\n")
		require.True(t, found)
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()

	commands := shellPattern.FindAllStringSubmatch(page, -1)
	require.Greater(t, len(commands), 4)
	files := filePattern.FindAllStringSubmatch(page, -1)
	require.Len(t, files, 3)
	script := "set -euo pipefail\n"
	for i, c := range commands {
		if i == 1 { // the files stand between the first commands and the second
			for _, f := range files {
				script += "cat > ../" + f[1] + " <<'FILE'\n" + f[2] + "FILE\n"
			}
		}
		for line := range strings.Lines(c[1]) {
			if fails, ok := strings.CutPrefix(line, "! "); ok { // which `set -e` would not see
				line = "if " + strings.TrimSpace(fails) + "; then echo 'passed, and should fail'; exit 1; fi\n"
			}
			script += line
		}
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HEADROOM="+root, "GOWORK=off", "GOFLAGS=", "GOPROXY=off", "GOSUMDB=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "FAIL  the busiest replica is left alone while another is open")
	assert.Contains(t, string(out), `"endpoint":"b"`, "the replay")
	assert.Contains(t, string(out), "0 broken")
	assert.Contains(t, string(out), "example.com/my-policy\t", "its go test")
	if missing != "" {
		t.Skipf("SKIPPED in part: %s is not installed: apt-get install clang lld rustc libstd-rust-dev-wasm32 make", missing)
	}
}

// The page names every claim, in the words of the command.
func TestThePageOnCustomPoliciesNamesEveryClaim(t *testing.T) {
	b, err := os.ReadFile("../docs/custom-policy.md")
	require.NoError(t, err)
	var names []string
	for _, m := range claimPattern.FindAllStringSubmatch(string(b), -1) {
		names = append(names, m[1])
	}
	var want []string
	for _, c := range hosttest.Claims() {
		want = append(want, c.Name)
		assert.Contains(t, string(b), "| `"+c.Name+"` | "+c.Doc, "the page tells of a claim otherwise than the command")
	}
	assert.Equal(t, want, names)
}
