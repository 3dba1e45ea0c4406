package test_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/headroom-lb/headroom"

// pure is the standard library that a decision may use: no clock, no locks, no sockets, no
// formatting, no randomness. It is also what keeps the guest near the size of the Go runtime.
var pure = []string{"errors", "math/bits", "slices", "cmp", "strconv"}

const (
	wazero    = "github.com/tetratelabs/wazero"
	templ     = "github.com/a-h/templ"
	websocket = "github.com/coder/websocket"
)

// rule says what one package, or with "/..." one subtree, may import. The longest match wins.
type rule struct {
	pkg     string
	ours    []string // packages of this module
	foreign []string // paths of other modules, subpackages included
	std     []string // nil: all that noStd does not name
	noStd   []string // subpackages included
}

// importTable is the layering of the house, from the bottom up. An edge that is not in it is an error.
var importTable = []rule{
	{pkg: "engine/internal/...", ours: []string{"engine/internal/..."}, std: pure},
	{pkg: "engine", ours: []string{"engine/internal/..."}, std: pure},
	{pkg: "engine/probe", ours: []string{"engine", "engine/internal/..."}, std: pure},
	{pkg: "engine/policy", ours: []string{"engine", "engine/probe", "engine/internal/..."}, std: pure},
	{pkg: "engine/enginetest", ours: []string{"engine"}},

	{pkg: "wasm/abi", ours: []string{"engine"}, std: with(pure, "encoding/binary")},
	{pkg: "wasm/guest", ours: []string{"engine", "wasm/abi"}, std: with(pure, "unsafe")},
	{pkg: "wasm", ours: []string{"engine", "engine/policy", "wasm/abi", "wasm/guest"}, std: pure},
	{pkg: "wasm/dist"},

	{pkg: "host/internal/fuel", std: []string{"bytes", "errors", "fmt", "slices"}},
	{pkg: "host/trace", ours: []string{"engine", "wasm/abi"}, noStd: []string{"net"}},
	{pkg: "host", ours: []string{"engine", "wasm/abi", "wasm/dist", "host/internal/fuel", "host/trace"}, foreign: []string{wazero}, noStd: []string{"net"}},
	{pkg: "host/health", ours: []string{"engine"}, noStd: []string{"net"}},
	{pkg: "host/hosttest", ours: []string{"engine", "engine/enginetest", "host", "wasm/abi"}, noStd: []string{"net"}},
	{pkg: "host/replica", ours: []string{"engine", "engine/probe"}},
	{pkg: "host/lbhttp", ours: []string{"engine", "engine/probe", "host", "host/replica"}},
	{pkg: "host/discovery", ours: []string{"engine", "host"}, noStd: []string{"net"}},
	{pkg: "host/observe", ours: []string{"engine", "host"}, noStd: []string{"net"}},
	{pkg: "host/observe/prometheus", ours: []string{"engine", "host", "host/observe"}, foreign: []string{"github.com/prometheus/client_golang"}},

	{pkg: "showcase/sim", ours: []string{"engine", "engine/probe", "engine/policy"}, std: with(pure, "math", "container/heap")},
	{pkg: "showcase/plot", std: []string{"bytes", "fmt", "math", "slices", "strconv", "strings"}},
	{pkg: "showcase/experiment", ours: []string{"engine", "engine/probe", "showcase/sim", "showcase/plot"}, noStd: []string{"net", "os", "time", "math/rand"}},
	{pkg: "showcase/recorded", ours: []string{"engine", "host/trace", "showcase/sim"}, noStd: []string{"net", "os", "time"}},
	{pkg: "showcase/...", ours: []string{"engine/...", "host", "showcase/...", "web"}, foreign: []string{templ, websocket}},
	{pkg: "web"},

	{pkg: "cmd/...", ours: []string{"engine/...", "wasm/...", "host/...", "showcase/...", "web", "cmd/..."}, foreign: []string{
		"github.com/spf13/cobra", "github.com/prometheus/client_golang", "github.com/HdrHistogram/hdrhistogram-go", "go.yaml.in/yaml/v3",
	}},
	{pkg: "test/...", ours: []string{"..."}},
}

// testForeign is what a _test.go file may import beyond its package's own row. Test files may also use any
// package of ours except commands, and all of the standard library: they are not part of what anybody links.
var testForeign = []string{"github.com/HdrHistogram/hdrhistogram-go", "github.com/stretchr/testify", "pgregory.net/rapid", "github.com/chromedp", wazero}

// mayImportTesting are packages whose work is measuring or testing for others; nothing else that ships may.
var mayImportTesting = []string{"engine/enginetest", "host/hosttest", "cmd/wasmhost/internal/bench"}

func with(list []string, more ...string) []string { return append(slices.Clone(list), more...) }

// source is one Go file as the checker sees it: the folder under the root, and what it imports.
type source struct {
	pkg, file string
	imports   []string
}

func (s source) isTest() bool { return strings.HasSuffix(s.file, "_test.go") }

// TestImportOrder holds every edge of the tree against the table.
func TestImportOrder(t *testing.T) {
	sources := readSources(t, "..")
	var bad []string
	used := map[string]bool{}
	edges := 0
	for _, s := range sources {
		if r, ok := ruleFor(s.pkg); ok {
			used[r.pkg] = true
		}
		edges += len(s.imports)
		bad = append(bad, violations(s)...)
	}
	require.Empty(t, bad, "imports that the table does not allow")
	for _, r := range importTable {
		require.True(t, used[r.pkg], "the table's row %s matches no package: remove it or mend it", r.pkg)
	}
	require.Greater(t, edges, 100, "too few imports were read to believe the result")
}

// TestImportOrderRejects plants edges that must be refused, so that the checker is known to be able to fail.
func TestImportOrderRejects(t *testing.T) {
	cases := map[string]struct {
		pkg, file, imp string
		want           string // empty: must be allowed
	}{
		"engine with a clock":            {"engine", "x.go", "time", "engine may not import time"},
		"engine formatting":              {"engine/policy", "x.go", "fmt", "engine/policy may not import fmt"},
		"engine upwards":                 {"engine", "x.go", module + "/engine/probe", "engine may not import engine/probe"},
		"probe upwards":                  {"engine/probe", "x.go", module + "/engine/policy", "engine/probe may not import engine/policy"},
		"engine to the host":             {"engine/policy", "x.go", module + "/host", "engine/policy may not import host"},
		"host with HTTP":                 {"host", "x.go", "net/http", "host may not import net/http"},
		"host with sockets":              {"host", "x.go", "net", "host may not import net"},
		"host to the page":               {"host", "x.go", module + "/showcase", "host may not import showcase"},
		"health with HTTP":               {"host/health", "x.go", "net/http", "host/health may not import net/http"},
		"health with the balancer":       {"host/health", "x.go", module + "/host", "host/health may not import host"},
		"replica side with the runtime":  {"host/replica", "x.go", wazero, "host/replica may not import " + wazero},
		"replica side with the balancer": {"host/replica", "x.go", module + "/host", "host/replica may not import host"},
		"adapter with the runtime":       {"host/lbhttp", "x.go", wazero + "/api", "host/lbhttp may not import " + wazero + "/api"},
		"simulator with randomness":      {"showcase/sim", "x.go", "math/rand/v2", "showcase/sim may not import math/rand/v2"},
		"an experiment with a clock":     {"showcase/experiment", "x.go", "time", "showcase/experiment may not import time"},
		"metrics with a library":         {"host/observe", "x.go", "github.com/prometheus/client_golang/prometheus", "host/observe may not import github.com/prometheus/client_golang/prometheus"},
		"host with its observers":        {"host", "x.go", module + "/host/observe", "host may not import host/observe"},
		"a kit in production":            {"host/lbhttp", "x.go", "testing", "host/lbhttp may not import testing"},
		"a library under host":           {"host", "x.go", "github.com/spf13/cobra", "host may not import github.com/spf13/cobra"},
		"a library with a like name":     {"host", "x.go", wazero + "evil", "host may not import " + wazero + "evil"},
		"a test with a command":          {"host", "x_test.go", module + "/cmd/wasmhost", "host (test) may not import cmd/wasmhost"},
		"a test with an odd library":     {"engine", "x_test.go", "github.com/spf13/cobra", "engine (test) may not import github.com/spf13/cobra"},
		"a package without a row":        {"util", "x.go", "errors", "util has no row in the import table"},
		"pure code":                      {"engine", "x.go", "math/bits", ""},
		"a test with a clock":            {"engine", "x_test.go", "time", ""},
		"host with the runtime":          {"host", "x.go", wazero + "/api", ""},
		"a command with everything":      {"cmd/wasmhost/internal/demo", "x.go", module + "/host/lbhttp", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := violations(source{pkg: c.pkg, file: c.file, imports: []string{c.imp}})
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], c.want)
		})
	}

	t.Run("on a tree", func(t *testing.T) {
		root := t.TempDir()
		dir := filepath.Join(root, "engine", "policy")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		src := "//go:build ignore_me\n\npackage policy\n\nimport (\n\t\"errors\"\n\tclock \"time\"\n)\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte(src), 0o644))
		sources := readSources(t, root)
		require.Len(t, sources, 1)
		require.Equal(t, []string{"engine/policy/x.go: engine/policy may not import time"}, violations(sources[0]))
	})
}

// readSources parses the imports of every Go file under root, whatever its build tags. Nested modules are not
// ours to check here: each is a consumer of this one.
func readSources(t *testing.T, root string) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != root {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		s := source{pkg: path.Dir(rel), file: path.Base(rel)}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imp)
		}
		out = append(out, s)
		return nil
	})
	require.NoError(t, err)
	return out
}

// violations lists the imports of one file that its row does not allow.
func violations(s source) []string {
	r, ok := ruleFor(s.pkg)
	if !ok {
		return []string{fmt.Sprintf("%s/%s: %s has no row in the import table", s.pkg, s.file, s.pkg)}
	}
	var bad []string
	for _, imp := range s.imports {
		if !allowed(r, s, imp) {
			who := s.pkg
			if s.isTest() {
				who += " (test)"
			}
			bad = append(bad, fmt.Sprintf("%s/%s: %s may not import %s", s.pkg, s.file, who, strings.TrimPrefix(imp, module+"/")))
		}
	}
	return bad
}

func allowed(r rule, s source, imp string) bool {
	if ours, ok := strings.CutPrefix(imp, module+"/"); ok {
		if s.isTest() && !matches("cmd/...", ours) {
			return true
		}
		return slices.ContainsFunc(r.ours, func(p string) bool { return matches(p, ours) })
	}
	if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") {
		foreign := r.foreign
		if s.isTest() {
			foreign = with(foreign, testForeign...)
		}
		return slices.ContainsFunc(foreign, func(m string) bool { return matches(m+"/...", imp) })
	}
	if s.isTest() || r.pkg == "test/..." {
		return true
	}
	if matches("testing/...", imp) && !slices.Contains(mayImportTesting, s.pkg) {
		return false
	}
	if slices.ContainsFunc(r.noStd, func(n string) bool { return matches(n+"/...", imp) }) {
		return false
	}
	return r.std == nil || slices.Contains(r.std, imp)
}

// ruleFor finds the most specific row for a package.
func ruleFor(pkg string) (rule, bool) {
	best, found := rule{}, false
	for _, r := range importTable {
		if matches(r.pkg, pkg) && (!found || len(r.pkg) > len(best.pkg) || r.pkg == pkg) && best.pkg != pkg {
			best, found = r, true
		}
	}
	return best, found
}

// matches reports whether a pattern covers a path: itself, or with "/..." itself and all below it.
func matches(pattern, p string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return p == base || strings.HasPrefix(p, base+"/")
	}
	return p == pattern
}
