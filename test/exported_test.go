package test_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRuntimeIsNotExported holds that no type of the WebAssembly runtime stands in an exported signature of host, so
// that the runtime can change without breaking an embedder.
func TestRuntimeIsNotExported(t *testing.T) {
	bad, files := exportedUses(t, "../host", wazero)
	require.Empty(t, bad)
	require.Positive(t, files, "no file of host imports the runtime: the check looks at nothing")
}

// TestRuntimeIsNotExportedRejects plants every way to export a foreign type.
func TestRuntimeIsNotExportedRejects(t *testing.T) {
	dir := t.TempDir()
	src := `package host

import (
	wz "` + wazero + `"
	"` + wazero + `/api"
)

type Fine struct{ hidden wz.Runtime }
type fine interface{ M(api.Module) }
func (f *Fine) hide(wz.Runtime) {}
func (f fine2) Method(wz.Runtime) {}
var cached wz.Runtime

type Field struct{ Runtime wz.Runtime }
type Alias = api.Function
type Port interface{ Call(api.Module) }
func Param(m *api.Module) {}
func Result() []wz.Runtime { return nil }
func (f *Fine) Method(m map[string]api.Module) {}
var Global wz.Runtime
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte(src), 0o600))
	bad, files := exportedUses(t, dir, wazero)
	require.Equal(t, 1, files)
	var names []string
	for _, b := range bad {
		names = append(names, strings.Fields(b)[1])
	}
	require.Equal(t, []string{"Field", "Alias", "Port", "Param", "Result", "Method", "Global"}, names)
}

// exportedUses lists the exported declarations of a package whose signature names a type of the module. It counts
// the files that import the module at all.
func exportedUses(t *testing.T, dir, foreign string) (bad []string, files int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		names := map[string]bool{}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if !matches(foreign+"/...", imp) {
				continue
			}
			name := filepath.Base(imp)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names[name] = true
		}
		if len(names) == 0 {
			continue
		}
		files++
		report := func(id *ast.Ident, signature ast.Node) {
			if id.IsExported() && uses(signature, names) {
				bad = append(bad, fmt.Sprintf("%s: %s names a type of %s", filepath.Base(path), id.Name, foreign))
			}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || exportedReceiver(d.Recv) {
					report(d.Name, d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						report(s.Name, s.Type)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							report(id, s.Type)
						}
					}
				}
			}
		}
	}
	return bad, files
}

// uses reports whether a signature names a package of the set. Unexported fields of structs are not part of it.
func uses(n ast.Node, names map[string]bool) bool {
	if n == nil {
		return false
	}
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				embedded := len(field.Names) == 0
				if embedded || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
					found = found || uses(field.Type, names)
				}
			}
			return false
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && names[pkg.Name] {
				found = true
			}
		}
		return true
	})
	return found
}

func exportedReceiver(recv *ast.FieldList) bool {
	typ := recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}
