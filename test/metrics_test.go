package test_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host/observe"
)

// The metrics are one table in host/observe. Its own tests hold the exporters to it; these hold the page, the
// dashboard and the rest of the docs. -update writes the tables of the page.

const metricsPage = "../docs/metrics.md"

// metricNames are the names that may stand in a query or a page: a histogram has several.
func metricNames(m observe.Metric) []string {
	if m.Kind == observe.Histogram {
		return []string{m.Name, m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}
	}
	return []string{m.Name}
}

func allMetricNames() (out []string) {
	for _, m := range observe.Metrics() {
		out = append(out, metricNames(m)...)
	}
	return out
}

// metricsTable is the part of the page that a group's rows make.
func metricsTable(g observe.Group) string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning | when it rises |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range observe.Metrics() {
		if m.Group == g {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(m.LabelNames(), ", "), m.Help, m.Rises)
		}
	}
	return b.String()
}

// TestMetricsPageIsTheTable compares every generated part of the page, and that each group has one.
func TestMetricsPageIsTheTable(t *testing.T) {
	b, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	text := string(b)
	var groups []observe.Group
	for _, m := range observe.Metrics() {
		if !slices.Contains(groups, m.Group) {
			groups = append(groups, m.Group)
		}
	}
	require.Len(t, groups, 4)
	want := text
	for _, g := range groups {
		begin, end := "<!-- metrics: "+string(g)+" -->\n", "<!-- end -->\n"
		head, rest, ok := strings.Cut(want, begin)
		require.True(t, ok, "the page has no place for group %s", g)
		_, tail, ok := strings.Cut(rest, end)
		require.True(t, ok, "the place for group %s does not end", g)
		want = head + begin + metricsTable(g) + end + tail
	}
	for _, l := range metricLabels() {
		require.Contains(t, want, "| `"+l.Name+"` |", "the page does not explain a label")
	}
	if flag.Lookup("update").Value.String() == "true" && want != text {
		require.NoError(t, os.WriteFile(metricsPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, text, "run go test ./test -run MetricsPage -update")
}

func metricLabels() (out []observe.Label) {
	for _, m := range observe.Metrics() {
		for _, l := range m.Labels {
			if !slices.ContainsFunc(out, func(o observe.Label) bool { return o.Name == l.Name }) {
				out = append(out, l)
			}
		}
	}
	return out
}

// TestMetricsPageListsLabelValues holds the values of each label, in the order of the code.
func TestMetricsPageListsLabelValues(t *testing.T) {
	b, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	for _, l := range metricLabels() {
		if l.Values != nil {
			assert.Contains(t, string(b), "| `"+l.Name+"` | `"+strings.Join(l.Values, "` `")+"` |")
		}
	}
}

// TestDocsNameMetricsThatExist looks at every page.
func TestDocsNameMetricsThatExist(t *testing.T) {
	have, named := append(allMetricNames(), proxyMetricNames(t)...), 0
	for _, p := range pages(t) {
		for _, name := range metricPattern.FindAllString(p.text, -1) {
			if strings.HasSuffix(name, "_") {
				continue // a prefix
			}
			assert.Contains(t, have, name, p.path)
			named++
		}
	}
	require.Greater(t, named, len(observe.Metrics()))
}

// panel is what we hold of a Grafana panel; rows may carry panels of their own.
type panel struct {
	ID          int
	Type, Title string
	Description string
	Panels      []panel
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr, RefID string }
}

type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Panels        []panel
	Templating    struct{ List []struct{ Name, Type string } }
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	b, err := os.ReadFile("../deploy/grafana/headroom.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(b, &d))
	require.NotEmpty(t, d.Title)
	require.NotEmpty(t, d.UID)
	require.Positive(t, d.SchemaVersion)
	return d
}

var variablePattern = regexp.MustCompile(`\$\{?([a-z_]+)`)

// TestDashboardQueriesExist holds names, labels and values in the dashboard's queries to the table.
func TestDashboardQueriesExist(t *testing.T) {
	d := readDashboard(t)
	values := map[string][]string{}
	for _, l := range metricLabels() {
		values[l.Name] = l.Values
	}
	vars := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		vars = append(vars, v.Name)
	}
	matcher := regexp.MustCompile(`([a-z_]+)=~?"([^"]*)"`)
	by := regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	used := map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			found := metricPattern.FindAllString(target.Expr, -1)
			require.NotEmpty(t, found, p.Title)
			for _, name := range found {
				assert.Contains(t, allMetricNames(), name, p.Title)
				used[name] = true
			}
			for _, m := range variablePattern.FindAllStringSubmatch(target.Expr, -1) {
				assert.Contains(t, vars, m[1], p.Title)
			}
			for _, m := range matcher.FindAllStringSubmatch(target.Expr, -1) {
				if m[1] == "instance" || m[1] == "job" || values[m[1]] == nil {
					continue
				}
				for _, v := range strings.Split(m[2], "|") {
					assert.Contains(t, values[m[1]], v, p.Title)
				}
			}
			for _, m := range by.FindAllStringSubmatch(target.Expr, -1) {
				for _, l := range strings.Split(m[1], ", ") {
					_, ok := values[l]
					assert.True(t, ok || l == "le" || l == "instance", "%s: label %s", p.Title, l)
				}
			}
		}
	}
	for _, m := range observe.Metrics() {
		seen := slices.ContainsFunc(metricNames(m), func(n string) bool { return used[n] })
		assert.True(t, seen, "%s is on no panel", m.Name)
	}
}

func TestDashboardIsInOrder(t *testing.T) {
	d := readDashboard(t)
	var rows []string
	ids := map[int]bool{}
	type cell struct{ x, y int }
	taken := map[cell]string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "id %d twice", p.ID)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Empty(t, taken[cell{x, y}], "%s lies over another", p.Title)
				taken[cell{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		assert.NotEmpty(t, p.Targets, p.Title)
		assert.NotEmpty(t, p.Description, p.Title)
	}
	assert.Equal(t, []string{
		"Traffic and regimes", "Fallback by cause", "Pool health", "Probes", "Guest failures and swaps", "Latency",
	}, rows)
}

// proxyMetricNames are the proxy's own, beside those that every embedder has.
func proxyMetricNames(t *testing.T) (names []string) {
	t.Helper()
	b, err := os.ReadFile("../cmd/wasmhost/internal/serve/metrics.go")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`desc\("([a-z_]+)"`).FindAllStringSubmatch(string(b), -1) {
		names = append(names, "headroom_"+m[1])
	}
	require.NotEmpty(t, names)
	return names
}
