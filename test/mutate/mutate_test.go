package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The toy has faults that its tests must catch, one that changes nothing, and a function that
// nobody tests.
const toy = `package toy

const limit = 3

type T struct{}

func Clamp(_ string, n int) int {
	if n > limit {
		return limit
	}
	return n
}

func (T) Count(n int) (k int) {
	for i := 0; i != n; i++ {
		k++
	}
	return k
}

func Untested(n int) int { return n * 7 }

func Text() string { return "a" + "b" }

func Afar() int { return 2 }
`

const toyTest = `package toy

import "testing"

func TestToy(t *testing.T) {
	if Clamp("", 9) != 3 || Clamp("", 2) != 2 || (T{}).Count(5) != 5 || Text() != "ab" {
		t.Fatal("wrong")
	}
}
`

// Another package's tests see what the toy's own do not.
const userTest = `package user

import (
	"testing"
	"toy"
)

func TestUser(t *testing.T) {
	if toy.Afar() != 2 {
		t.Fatal("wrong")
	}
}
`

// play runs the tool on the toy.
func play(t *testing.T, reasons string, o options) (bad int, out string) {
	t.Helper()
	o.root = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(o.root, "user"), 0o755))
	for name, text := range map[string]string{
		"go.mod": "module toy\n\ngo 1.24\n", "toy.go": toy, "toy_test.go": toyTest, "user/user_test.go": userTest, "reasons.txt": reasons,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(o.root, name), []byte(text), 0o644))
	}
	cache, err := (&bench{}).goRun(t.Context(), ".", "env", "GOCACHE")
	require.NoError(t, err)
	o.patterns, o.tests, o.reasons, o.cache = []string{"."}, "./...", "reasons.txt", strings.TrimSpace(cache)
	o.parallel, o.limit = 2, time.Second
	var b bytes.Buffer
	bad, err = run(context.Background(), o, &b)
	require.NoError(t, err)
	after, err := os.ReadFile(filepath.Join(o.root, "toy.go"))
	require.NoError(t, err)
	assert.Equal(t, toy, string(after), "the tree is never edited")
	return bad, b.String()
}

func TestWhatTestsSeeIsCaughtAndTheRestSurvives(t *testing.T) {
	bad, out := play(t, "", options{})
	var survivors []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, ": survived: ") {
			survivors = append(survivors, strings.TrimSpace(line))
		}
	}
	assert.ElementsMatch(t, []string{
		"toy.go:8: survived: > becomes >=",
		"toy.go:21: survived: * becomes /", "toy.go:21: survived: 7 becomes 8", "toy.go:21: survived: 7 becomes 6",
	}, survivors)
	assert.Equal(t, len(survivors), bad)
	assert.Contains(t, out, "1 did not compile", "text cannot be subtracted")
	assert.NotContains(t, out, " 0 of them by running too long", "a loop that never ends is caught")
	assert.Contains(t, out, "-\tif n > limit {\n+\tif n >= limit {")
}

func TestAReasonExcusesASurvivorAndMustHold(t *testing.T) {
	reasons := "toy.go Clamp\nif n > limit {\n> becomes >=\nat the limit both are the limit\n\n"
	bad, out := play(t, reasons, options{line: 8})
	assert.Zero(t, bad, out)
	assert.Contains(t, out, "1 of them with a reason")

	caughtAllTheSame := "# a comment\ntoy.go T.Count\nk++\n++ becomes --\nnobody counts\n"
	bad, out = play(t, caughtAllTheSame, options{file: "toy.go", line: 16})
	assert.Equal(t, 1, bad)
	assert.Contains(t, out, `toy.go:16: stale: "++ becomes --" was to survive, and does not (toy)`)

	ofAnOldLine := "toy.go Clamp\nif n > 99 {\n> becomes >=\nlong gone\n"
	bad, out = play(t, ofAnOldLine, options{line: 21, sample: 1})
	assert.Equal(t, 2, bad, "the reason, and one of the survivors of line 21")
	assert.Contains(t, out, "reasons.txt:1: stale: no such mutant in toy.go any more")

	bad, out = play(t, strings.ReplaceAll(ofAnOldLine, "toy.go", "gone.go"), options{line: 21, sample: 1})
	assert.Equal(t, 2, bad)
	assert.Contains(t, out, "reasons.txt:1: stale: no such mutant in gone.go any more")
}

// The tests of other packages are asked about what the package's own let through; about a reason
// only when it is in doubt.
func TestOtherPackagesAreAskedLast(t *testing.T) {
	bad, out := play(t, "", options{line: 25})
	assert.Zero(t, bad, out)
	assert.Contains(t, out, "2 mutants: 2 caught")

	reason := "toy.go Afar\nfunc Afar() int { return 2 }\n2 becomes 3\nnobody calls it\n"
	bad, out = play(t, reason, options{line: 25})
	assert.Zero(t, bad, out)
	assert.Contains(t, out, "toy.go: 2 mutants: 1 caught, 0 of them by running too long; 1 survived, 1 of them with a reason")

	bad, out = play(t, reason, options{doubt: true})
	assert.Equal(t, 1, bad)
	assert.Contains(t, out, "all: 1 mutants: 1 caught")
	assert.Contains(t, out, `toy.go:25: stale: "2 becomes 3" was to survive, and does not (toy/user)`)
}

func TestEveryKindOfSlipIsTried(t *testing.T) {
	src := `package p

import "errors"

var errNo = errors.New("no")

func f(a, b int, ok bool, s []int) (bool, error) {
	a += b
	s[0] = max(a, b)
	g()
	if ok {
		return a<<1 == b && !ok, errNo
	}
	for {
		break
	}
	return true, nil
}
`
	sites, err := find("p.go", []byte(src))
	require.NoError(t, err)
	got := map[string]string{}
	for i := range sites {
		s := &sites[i]
		got[fmt.Sprint(s.Line, " ", s.Label)] = strings.Split(s.diff([]byte(src)), "\n+")[1]
	}
	assert.Equal(t, map[string]string{
		"8 += becomes -=":           "\ta -= b",
		"8 removed":                 "\t",
		"9 removed":                 "\t",
		"9 0 becomes 1":             "\ts[1] = max(a, b)",
		"9 max becomes min":         "\ts[0] = min(a, b)",
		"10 removed":                "\t",
		"11 condition negated":      "\tif !(ok) {",
		"12 result negated":         "\t\treturn !(a<<1 == b && !ok), errNo",
		"12 error forgotten":        "\t\treturn a<<1 == b && !ok, nil",
		"12 && becomes ||":          "\t\treturn a<<1 == b || !ok, errNo",
		"12 == becomes !=":          "\t\treturn a<<1 != b && !ok, errNo",
		"12 << becomes >>":          "\t\treturn a>>1 == b && !ok, errNo",
		"12 1 becomes 2":            "\t\treturn a<<2 == b && !ok, errNo",
		"12 1 becomes 0":            "\t\treturn a<<0 == b && !ok, errNo",
		"12 ! dropped":              "\t\treturn a<<1 == b && ok, errNo",
		"15 break becomes continue": "\t\tcontinue",
		"17 true becomes false":     "\treturn false, nil",
	}, got)
}

func TestAReasonNeedsAllItsParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	for text, want := range map[string]string{
		"a.go f\nx\nremoved\n": ":1: want file and function, line, mutation and reason",
		"a.go f\nx\nremoved\nwhy\n\n\na.go f\nx\nremoved\nanother\n": ":7: the same mutant as in line 1",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := readReasons(path)
		assert.EqualError(t, err, path+want)
	}
}

// The reasons on file are for mutants that the sources have. Whether they survive takes a run.
func TestReasonsAreForMutantsOfToday(t *testing.T) {
	b := &bench{root: filepath.Join("..", ".."), pkgs: map[string]string{}}
	for _, dir := range []string{"engine", "engine/probe", "engine/policy"} {
		b.pkgs[dir] = filepath.Join(b.root, dir)
	}
	all, err := jobs(b)
	require.NoError(t, err)
	reasons, err := readReasons("reasons.txt")
	require.NoError(t, err)
	assert.Empty(t, stale(b.root, "reasons.txt", reasons, all))
}
