package test_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/policy"
)

// Published figures are those of one run, kept in bench/baseline.json as `wasmhost bench --all --json` printed it. The
// tables in the docs are made from it; -update writes them.

type benchRow struct {
	Policy, Operation string
	Candidates        int
	Draining          bool    `json:"half_draining"`
	Native            float64 `json:"native_ns"`
	Guest             float64 `json:"guest_ns"`
	Ratio             float64 `json:"guest_to_native"`
	NativeAllocs      float64 `json:"native_allocs"`
	GuestAllocs       float64 `json:"guest_allocs"`
}

type baseline struct {
	Go, Machine string
	Empty       float64 `json:"empty_call_ns"`
	Rounds      int
	Rows        []benchRow
}

var benchSizes = []int{8, 64, 512, 4096}

func (b *baseline) row(t *testing.T, policy, operation string, n int, draining bool) benchRow {
	t.Helper()
	for _, r := range b.Rows {
		if r.Policy == policy && r.Operation == operation && r.Candidates == n && r.Draining == draining {
			return r
		}
	}
	t.Fatalf("bench/baseline.json has no row for %s %s at %d: run make baseline", policy, operation, n)
	return benchRow{}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, v))
}

// nanoseconds prints three digits at most.
func nanoseconds(ns float64) string {
	switch {
	case ns >= 999.5e3:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	case ns >= 999.5:
		return fmt.Sprintf("%.3g us", math.Round(ns/10)/100)
	}
	return fmt.Sprintf("%.0f ns", ns)
}

// policyRows is the table on a policy's page.
func policyRows(t *testing.T, b *baseline, name string) string {
	var s strings.Builder
	s.WriteString("| candidates | native | guest | native, half draining | change of the set, native | guest |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, n := range benchSizes {
		all, half, change := b.row(t, name, "decide", n, false), b.row(t, name, "decide", n, true), b.row(t, name, "change", n, false)
		fmt.Fprintf(&s, "| %d | %s | %s | %s | %s | %s |\n", n, nanoseconds(all.Native), nanoseconds(all.Guest),
			nanoseconds(half.Native), nanoseconds(change.Native), nanoseconds(change.Guest))
	}
	fmt.Fprintf(&s, "\nA decision, and a change of the set with a decision after it; no allocations in a decision. One run of\n"+
		"`wasmhost bench --all`, %s, %s; an empty call of the guest took %.0f ns.\n", b.Go, b.Machine, b.Empty)
	return s.String()
}

type poise struct {
	Source string
	Decide map[string][3]float64
	Half   map[string][3]float64 `json:"half_draining"`
	Record map[string][3]float64
	Change map[string][3]float64
}

// versus is the table of docs/speed.md: ours over Poise's, and which row misses.
func versus(t *testing.T, b *baseline, p *poise) string {
	var s strings.Builder
	s.WriteString("| operation | 8: ours / Poise | 64 | 512 | |\n| --- | --- | --- | --- | --- |\n")
	missed := 0
	table := func(theirs map[string][3]float64, operation, label string, draining bool) {
		for _, name := range policy.Names() {
			figures, ok := theirs[name]
			if !ok {
				continue
			}
			fmt.Fprintf(&s, "| `%s` %s |", name, label)
			miss := false
			for i, n := range benchSizes[:3] {
				ours := b.row(t, name, operation, n, draining).Native
				fmt.Fprintf(&s, " %s / %s |", nanoseconds(ours), nanoseconds(figures[i]))
				miss = miss || ours > figures[i]
			}
			if miss {
				missed++
				s.WriteString(" slower |\n")
			} else {
				s.WriteString(" |\n")
			}
		}
	}
	table(p.Decide, "decide", "decision", false)
	table(p.Half, "decide", "decision, half draining", true)
	table(p.Record, "record", "reading", false)
	table(p.Change, "change", "change of the set", false)
	fmt.Fprintf(&s, "\nRows with a size at which ours is slower: %d.\n", missed)
	return s.String()
}

// ratios is the table of native, guest and empty call.
func ratios(t *testing.T, b *baseline) string {
	var s strings.Builder
	fmt.Fprintf(&s, "| decision | native 8 / 64 / 512 / 4096 | guest 8 / 64 / 512 / 4096 | guest over native, 512 | over an empty call (%.0f ns), 512 |\n| --- | --- | --- | --- | --- |\n", b.Empty)
	for _, name := range policy.Names() {
		var native, guest []string
		for _, n := range benchSizes {
			r := b.row(t, name, "decide", n, false)
			require.Zero(t, r.NativeAllocs+r.GuestAllocs, name)
			native, guest = append(native, nanoseconds(r.Native)), append(guest, nanoseconds(r.Guest))
		}
		r := b.row(t, name, "decide", 512, false)
		fmt.Fprintf(&s, "| `%s` | %s | %s | %.1f | %.1f |\n", name, strings.Join(native, " / "), strings.Join(guest, " / "), r.Ratio, r.Guest/b.Empty)
	}
	return s.String()
}

var benchPattern = regexp.MustCompile(`(?s)(<!-- bench ([a-z0-9_]+) -->\n).*?(<!-- /bench -->)`)

func TestFiguresInTheDocsAreTheBaselines(t *testing.T) {
	var b baseline
	readJSON(t, "../bench/baseline.json", &b)
	var p poise
	readJSON(t, "../bench/poise.json", &p)
	seen := map[string]bool{}
	for _, page := range pages(t) {
		text := benchPattern.ReplaceAllStringFunc(page.text, func(match string) string {
			parts := benchPattern.FindStringSubmatch(match)
			seen[parts[2]] = true
			switch parts[2] {
			case "versus":
				return parts[1] + versus(t, &b, &p) + parts[3]
			case "ratios":
				return parts[1] + ratios(t, &b) + parts[3]
			}
			return parts[1] + policyRows(t, &b, parts[2]) + parts[3]
		})
		if flag.Lookup("update").Value.String() == "true" && text != page.text {
			require.NoError(t, os.WriteFile("../"+page.path, []byte(text), 0o644))
			continue
		}
		require.Equal(t, text, page.text, "%s: run make baseline, or go test ./test -run Figures -update", page.path)
	}
	for _, name := range append(policy.Names(), "versus", "ratios") {
		require.True(t, seen[name], "no page shows %s", name)
	}
}
