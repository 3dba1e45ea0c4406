package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// instructions are those of a container file, with their arguments.
func instructions(t *testing.T, path string) (out [][2]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, arguments, _ := strings.Cut(line, " ")
		out = append(out, [2]string{name, strings.TrimSpace(arguments)})
	}
	return out
}

// TestContainerFile reads the file as an engine would. No image is made of it: that needs an engine, and a base image from
// elsewhere.
func TestContainerFile(t *testing.T) {
	const root = "../.."
	all := instructions(t, root+"/deploy/container/Containerfile")
	known := []string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
	last, build := map[string]string{}, ""
	for _, i := range all {
		name, arguments := i[0], i[1]
		require.Contains(t, known, name)
		switch name {
		case "FROM":
			last = map[string]string{}
			if image, ok := strings.CutPrefix(arguments, "golang:"); ok {
				version, _, _ := strings.Cut(image, " ")
				mod, err := os.ReadFile(root + "/go.mod")
				require.NoError(t, err)
				require.Regexp(t, `(?m)^go `+regexp.QuoteMeta(version)+`\.`, string(mod), "the image is not of the toolchain")
			}
		case "RUN":
			if strings.Contains(arguments, "go build") {
				build = arguments
			}
		case "COPY":
			if words := strings.Fields(arguments); !strings.HasPrefix(words[0], "--from=") {
				for _, source := range words[:len(words)-1] {
					_, err := os.Stat(filepath.Join(root, source))
					require.NoError(t, err)
				}
			}
		}
		last[name] = arguments
	}
	require.Equal(t, "scratch", last["FROM"])
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, last["USER"], "a number, since there is no file of users, and not root")
	require.Equal(t, "SIGTERM", last["STOPSIGNAL"])
	var entry, command []string
	require.NoError(t, json.Unmarshal([]byte(last["ENTRYPOINT"]), &entry), "there is no shell")
	require.NoError(t, json.Unmarshal([]byte(last["CMD"]), &command))
	require.Equal(t, []string{"/wasmhost", "serve", "--config", "/etc/headroom/proxy.yaml"}, slices.Concat(entry, command))

	out, code := runCommand(t, "check", root+"/deploy/container/proxy.yaml")
	require.Zero(t, code, out)
	require.Contains(t, out, "http://0.0.0.0:8000")
	require.Regexp(t, `^CGO_ENABLED=0 go build .*-o /wasmhost \./cmd/wasmhost$`, build, "nothing in an empty image would load libraries")
	list := exec.Command("go", "list", "-deps", "./cmd/wasmhost")
	list.Dir, list.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	output, err := list.CombinedOutput()
	require.NoError(t, err, "it needs cgo: %s", output)
	t.Log("no image was built: that needs a container engine and a base image from elsewhere")
}

// TestSystemdUnit has systemd judge the unit, where it is installed, and reads it in any case.
func TestSystemdUnit(t *testing.T) {
	const dir = "../../deploy/systemd"
	b, err := os.ReadFile(dir + "/wasmhost.service")
	require.NoError(t, err)
	unit := string(b)
	for _, line := range []string{
		"ExecStart=/usr/local/bin/wasmhost serve --config /etc/headroom/proxy.yaml $WASMHOST_FLAGS", "ExecReload=/bin/kill -HUP $MAINPID",
		"EnvironmentFile=-/etc/headroom/wasmhost.env", "User=headroom", "NoNewPrivileges=yes", "ProtectSystem=strict",
	} {
		require.Contains(t, unit, line+"\n")
	}
	env, err := os.ReadFile(dir + "/wasmhost.env")
	require.NoError(t, err)
	require.Contains(t, string(env), "\nWASMHOST_FLAGS=", "the unit names it")
	users, err := os.ReadFile(dir + "/headroom.conf")
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(users, []byte("u headroom ")))
	out, code := runCommand(t, "check", dir+"/proxy.yaml")
	require.Zero(t, code, out)

	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: the unit was read by this test only")
	}
	here := filepath.Join(t.TempDir(), "wasmhost.service")
	require.NoError(t, os.WriteFile(here, []byte(strings.ReplaceAll(unit, "/usr/local/bin/wasmhost", wasmhost)), 0o600))
	verdict, err := exec.Command(analyze, "verify", "--man=no", here).CombinedOutput()
	require.NoError(t, err, string(verdict))
	require.NotContains(t, string(verdict), "wasmhost.service", "a warning about the unit")
	verdict, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", "--no-pager", here).CombinedOutput()
	require.NoError(t, err, "exposed more than 2.0 of 10:\n%s", verdict)
}
