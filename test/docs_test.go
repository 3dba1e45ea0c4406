package test_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/policy"
)

// Prose drifts from code unless a test holds it. Every check below also fails when its pattern matches nothing: a
// pattern that no longer matches is drift too.

var (
	linkPattern    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	codePattern    = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	pathPattern    = regexp.MustCompile(`(?:^|[\s(=>])(?:\./)?((?:engine|wasm|host|showcase|web|cmd|test|docs|deploy|\.ci)(?:/[\w.-]+)+/?|[\w.-]+\.(?:md|yml|mod))(?:$|[\s):,])`)
	commandPattern = regexp.MustCompile(`(?:^|[\s/(])wasmhost ([a-z]+)`)
	makePattern    = regexp.MustCompile(`(?:^|[\s(])make ([a-z][a-z-]*)`)
	flagPattern    = regexp.MustCompile(`(?:^|[\s(\[])--([a-z][a-z0-9-]*)`)
	metricPattern  = regexp.MustCompile(`headroom_[a-z_]+`)
	rowPattern     = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|")
	mirrorPattern  = regexp.MustCompile("(?s)<!-- mirrors (\\S+) (Example\\w*) -->\n+```go\n(.*?)```")
)

// page is one Markdown file, by its path from the root.
type page struct{ path, text string }

// code is the text inside backticks and code blocks.
func (p page) code() string { return strings.Join(codePattern.FindAllString(p.text, -1), "\n") }

func pages(t *testing.T) []page {
	t.Helper()
	var out []page
	add := func(path string) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		rel, err := filepath.Rel("..", path)
		require.NoError(t, err)
		out = append(out, page{filepath.ToSlash(rel), string(b)})
	}
	add("../README.md")
	add("../CHANGELOG.md")
	require.NoError(t, filepath.WalkDir("../docs", func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".md") {
			add(p)
		}
		return err
	}))
	require.Greater(t, len(out), 10)
	return out
}

func readme(t *testing.T) page { t.Helper(); return pages(t)[0] }

// found lists the first group of every match in the code of all pages.
func found(t *testing.T, re *regexp.Regexp) []string {
	t.Helper()
	var out []string
	for _, p := range pages(t) {
		for _, span := range codePattern.FindAllString(p.text, -1) {
			for line := range strings.Lines(strings.Trim(span, "`")) {
				for _, m := range re.FindAllStringSubmatch(line, -1) {
					out = append(out, m[len(m)-1])
				}
			}
		}
	}
	require.NotEmpty(t, out, "nothing matches %s any more", re)
	slices.Sort(out)
	return slices.Compact(out)
}

func TestDocsLinksResolve(t *testing.T) {
	links := 0
	for _, p := range pages(t) {
		for _, m := range linkPattern.FindAllStringSubmatch(p.text, -1) {
			link := m[1]
			if strings.HasPrefix(link, "http://") || strings.HasPrefix(link, "https://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link, "#")
			target := filepath.Join("..", filepath.Dir(p.path), file)
			if file == "" {
				target = filepath.Join("..", p.path)
			}
			b, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
				err = nil
			}
			require.NoError(t, err, "%s links to %s", p.path, link)
			if anchor != "" {
				require.Contains(t, anchors(string(b)), anchor, "%s links to %s", p.path, link)
			}
		}
	}
	require.Greater(t, links, 10)
}

// anchors are the headings of a page as links name them.
func anchors(text string) []string {
	var out []string
	for _, m := range headingPattern.FindAllStringSubmatch(text, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
				return r
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.ToLower(m[1]))
		out = append(out, slug)
	}
	return out
}

func TestDocsPathsExist(t *testing.T) {
	for _, path := range found(t, pathPattern) {
		path = strings.TrimSuffix(path, "...") // a pattern of packages
		_, err := os.Stat(filepath.Join("..", path))
		require.NoError(t, err, "the docs name %s", path)
	}
}

func TestDocsCommandsExist(t *testing.T) {
	have := commands(t)
	named := found(t, commandPattern)
	for _, c := range named {
		require.Contains(t, append(have, "completion"), c, "the docs name wasmhost %s", c) // the library brings completion
	}
	for _, c := range have {
		require.Contains(t, readme(t).code(), "wasmhost "+c, "the README does not name a command")
	}
}

// commands reads the names of wasmhost's subcommands from their sources.
func commands(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../cmd/wasmhost/*.go")
	require.NoError(t, err)
	var out []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, _ := kv.Key.(*ast.Ident)
			lit, _ := kv.Value.(*ast.BasicLit)
			if key == nil || lit == nil || key.Name != "Use" {
				return true
			}
			use, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			if name, _, _ := strings.Cut(use, " "); name != "wasmhost" {
				out = append(out, name)
			}
			return true
		})
	}
	require.NotEmpty(t, out)
	return out
}

func TestDocsNameTheRightPolicies(t *testing.T) {
	var rows []string
	for _, m := range rowPattern.FindAllStringSubmatch(section(t, readme(t).text, "Policies"), -1) {
		rows = append(rows, m[1])
	}
	slices.Sort(rows)
	require.Equal(t, policy.Names(), rows, "the README's table of policies")
}

// section is the text under a heading, up to the next one.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n## "+heading+"\n")
	require.True(t, ok, "no section %q", heading)
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

func TestDocsMakeTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	for _, target := range found(t, makePattern) {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(target)+`:`, string(makefile), "the docs name make %s", target)
	}
}

func TestDocsFlagsExist(t *testing.T) {
	var source strings.Builder
	require.NoError(t, filepath.WalkDir("../cmd", func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go") {
			b, readErr := os.ReadFile(p)
			source.Write(b)
			return readErr
		}
		return err
	}))
	for _, flag := range found(t, flagPattern) {
		if flag == "help" || flag == "version" { // the library's own
			continue
		}
		require.Contains(t, source.String(), `"`+flag+`"`, "the docs name --%s", flag)
	}
}

// TestReadmeMirrorsExamples compares marked code blocks with the body of the example they name, which the tests run.
func TestReadmeMirrorsExamples(t *testing.T) {
	blocks := mirrorPattern.FindAllStringSubmatch(readme(t).text, -1)
	require.NotEmpty(t, blocks, "no code block is marked as the mirror of an example")
	for _, b := range blocks {
		src, err := os.ReadFile(filepath.Join("..", b[1]))
		require.NoError(t, err)
		require.Equal(t, exampleBody(t, string(src), b[2]), strings.TrimSpace(b[3]), "the README's mirror of %s", b[2])
	}
}

// exampleBody is what stands between the braces of an example, without its indentation and its output comment.
func exampleBody(t *testing.T, src, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(src, "func "+name+"() {\n")
	require.True(t, ok, "no example %s", name)
	body, _, ok := strings.Cut(rest, "\n}\n")
	require.True(t, ok)
	body, _, _ = strings.Cut(body, "\n\t// Output:")
	body, _, _ = strings.Cut(body, "\n\t// Unordered output:")
	var out []string
	for _, line := range strings.Split(body, "\n") {
		out = append(out, strings.TrimPrefix(line, "\t"))
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// TestDecisionsAreWhole holds every decision page to its four parts and the numbers to a row without gaps.
func TestDecisionsAreWhole(t *testing.T) {
	files, err := filepath.Glob("../docs/decisions/0*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(filepath.Base(file), "00"+pad(i+1)+"-"), "%s: the numbers have a gap", file)
		require.True(t, strings.HasPrefix(string(b), "# "+strconv.Itoa(i+1)+". "), file)
		for _, part := range []string{"**Question.**", "**Choice.**", "**Rejected.**", "**Would change our mind.**"} {
			require.Contains(t, string(b), part, file)
		}
	}
}

func pad(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}
