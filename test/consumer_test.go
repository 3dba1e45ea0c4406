package test_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConsumer builds, from the module cache alone, a module that imports one package of ours and lists all that
// comes with it. Embedding the host costs wazero and nothing more; the replica side costs nothing at all.
func TestConsumer(t *testing.T) {
	runtime := []string{wazero, "golang.org/x/sys"}
	for _, c := range []struct {
		pkg    string
		allow  []string
		expect bool // every module allowed must be there, so that an empty list cannot pass
	}{
		{pkg: "host", allow: runtime, expect: true},
		{pkg: "host/lbhttp", allow: runtime, expect: true},
		{pkg: "host/discovery", allow: runtime, expect: true},
		{pkg: "host/replica"},
		{pkg: "engine/policy"},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			deps := consumerDeps(t, module+"/"+c.pkg)
			require.Empty(t, foreignDeps(deps, c.allow))
			if c.expect {
				require.True(t, slices.ContainsFunc(deps, func(d dep) bool { return d.module() == wazero }), "wazero is missing")
			}
		})
	}
}

// TestConsumerRejects plants dependencies that must be found.
func TestConsumerRejects(t *testing.T) {
	for name, c := range map[string]struct{ planted, want string }{
		"another library":         {"github.com/stretchr/testify/assert", "github.com/stretchr/testify"},
		"a system call of theirs": {"golang.org/x/sys/unix", "golang.org/x/sys/unix is imported by consumer"},
	} {
		t.Run(name, func(t *testing.T) {
			deps := consumerDeps(t, module+"/host", c.planted)
			require.Contains(t, strings.Join(foreignDeps(deps, []string{wazero, "golang.org/x/sys"}), "\n"), c.want)
		})
	}
}

// dep is a package as `go list -deps -json` tells it.
type dep struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

func (d dep) module() string {
	if d.Module == nil {
		return ""
	}
	return d.Module.Path
}

// foreignDeps lists what is neither standard, ours, the consumer's own nor allowed. A module of golang.org/x is
// allowed only as a dependency of the other allowed ones.
func foreignDeps(deps []dep, allow []string) []string {
	var bad []string
	ours := []string{"consumer", module}
	for _, d := range deps {
		m := d.module()
		if d.Standard || slices.Contains(ours, m) {
			if slices.Contains(ours, m) {
				for _, imp := range d.Imports {
					if strings.HasPrefix(imp, "golang.org/x/") {
						bad = append(bad, imp+" is imported by "+d.ImportPath)
					}
				}
			}
			continue
		}
		if !slices.Contains(allow, m) && !slices.Contains(bad, m) {
			bad = append(bad, m)
		}
	}
	return bad
}

// consumerDeps makes a throwaway module that imports the given packages and lists its whole build.
func consumerDeps(t *testing.T, imports ...string) []dep {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)

	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("go.mod", "module consumer\n\ngo 1.26.0\n\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n")
	write("go.sum", string(sums))
	write("main.go", "package main\n\nimport (\n\t_ \""+strings.Join(imports, "\"\n\t_ \"")+"\"\n)\n\nfunc main() {}\n")

	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	var deps []dep
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var d dep
		if err := dec.Decode(&d); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		deps = append(deps, d)
	}
	require.Greater(t, len(deps), 10, "the list is too short to believe")
	return deps
}
