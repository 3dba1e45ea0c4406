package main

import (
	"context"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// checker tells mutants that compile from those that do not.
type checker struct {
	fset  *token.FileSet
	files map[string]*ast.File // of the package, by path
	types types.Config
	pkg   string
}

func (b *bench) checker(ctx context.Context, pkg string) (*checker, error) {
	out, err := b.goRun(ctx, b.root, "list", "-export", "-deps", "-f", "{{.ImportPath}}|{{.Export}}", pkg)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		path, file, _ := strings.Cut(line, "|")
		exports[path] = file
	}
	c := &checker{fset: token.NewFileSet(), files: map[string]*ast.File{}, pkg: pkg}
	c.types.Importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	names, err := filepath.Glob(filepath.Join(b.pkgs[pkg], "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if c.files[name], err = parser.ParseFile(c.fset, name, nil, 0); err != nil {
			return nil, err
		}
	}
	return c, c.check(nil, "")
}

// viable reports whether the package compiles with the mutant.
func (c *checker) viable(path string, s *site, src []byte) bool {
	f, err := parser.ParseFile(c.fset, path, s.mutated(src), 0)
	return err == nil && c.check(f, path) == nil
}

func (c *checker) check(instead *ast.File, path string) error {
	files := make([]*ast.File, 0, len(c.files))
	for name, f := range c.files {
		if name == path {
			f = instead
		}
		files = append(files, f)
	}
	_, err := c.types.Check(c.pkg, c.fset, files, nil)
	return err
}
