package test_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/policy"
)

var (
	partPattern    = regexp.MustCompile(`(?m)^## (.+)$`)
	keyPattern     = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ")
	examplePattern = regexp.MustCompile("(?m)^`([a-z_]+[^`]*)`")
)

// Every policy has a page with the same parts, an example that is a spec, and a place in the table that helps to choose.
func TestEveryPolicyHasAPage(t *testing.T) {
	index, err := os.ReadFile("../docs/policies/README.md")
	require.NoError(t, err)
	parts := []string{"Rule", "When to use it", "Cost", "Ties", "Failure", "Parameters", "Example", "Measured"}
	for _, name := range policy.Names() {
		text, err := os.ReadFile("../docs/policies/" + name + ".md")
		if !assert.NoError(t, err) {
			continue
		}
		page := string(text)
		assert.True(t, strings.HasPrefix(page, "# "+name+"\n"), name)
		var have []string
		for _, m := range partPattern.FindAllStringSubmatch(page, -1) {
			have = append(have, m[1])
		}
		assert.Equal(t, parts, have, name)
		assert.Contains(t, string(index), "]("+name+".md)", "the table that helps to choose")

		parameters := page[strings.Index(page, "## Parameters"):strings.Index(page, "## Example")]
		keys := keyPattern.FindAllStringSubmatch(parameters, -1)
		assert.NotEmpty(t, keys, name)
		for _, m := range keys { // a key that does not exist is refused by name
			if _, err := policy.Parse(name + " " + m[1] + "=?"); err != nil {
				assert.NotContains(t, err.Error(), "no such setting", "%s: %s", name, m[1])
			}
		}
		m := examplePattern.FindStringSubmatch(page[strings.Index(page, "## Example"):])
		if assert.NotNil(t, m, "%s has no example", name) {
			_, err := policy.Parse(m[1])
			assert.NoError(t, err)
		}
		example, err := os.ReadFile("../engine/policy/example_" + name + "_test.go")
		if assert.NoError(t, err) {
			assert.Regexp(t, "(?m)^func Example", string(example))
			assert.Contains(t, string(example), "// Output:", name)
		}
	}
}
