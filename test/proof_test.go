package test_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/enginetest"
)

var testNamePattern = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")

// TestProofIsThere holds docs/proof.md to the sources: the tests that it names, and
// every law.
func TestProofIsThere(t *testing.T) {
	b, err := os.ReadFile("../docs/proof.md")
	require.NoError(t, err)
	doc := string(b)
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(p string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, "_test.go") {
			src, readErr := os.ReadFile(p)
			tests.Write(src)
			return readErr
		}
		return err
	}))
	names := testNamePattern.FindAllStringSubmatch(doc, -1)
	require.Greater(t, len(names), 20)
	for _, m := range names {
		require.True(t, strings.Contains(tests.String(), "func "+m[1]+"("), "the page names %s", m[1])
	}
	for _, law := range enginetest.Laws() {
		require.Contains(t, doc, "| "+law.Name+" |")
	}
	for _, law := range append(enginetest.PoolLaws(), enginetest.KeenLaws()...) {
		require.Contains(t, doc, "| "+law.Name+" |")
	}
}
