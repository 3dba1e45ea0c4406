package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesAndStrict(t *testing.T) {
	out, errs, code := toy(t, "simulate", "toy", "--strict")
	assert.Zero(t, code, errs)
	assert.Contains(t, out, "\n\nT1  holds 3/3               steady stays under 200 ms\nT2  FAILS in seeds 1, 2, 3  ")
	out, errs, code = toy(t, "simulate", "bad", "--strict")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "X1  FAILS in seed 2  v is small: 2 > 1, v of it\n", "the figures are printed all the same")
	assert.Equal(t, "showcase: lines that fail: X1; look at the figures, or leave out --strict\n", errs)
	_, _, code = toy(t, "simulate", "bad")
	assert.Zero(t, code, "the run is complete")
	out, _, code = toy(t, "simulate", "toy", "--only", "shaky", "--strict")
	assert.Zero(t, code)
	assert.Contains(t, out, "T1  not judged ")
	out, _, _ = toy(t, "simulate", "--list")
	assert.Contains(t, out, "T1: steady stays under 200 ms")
}

func TestSimulateAll(t *testing.T) {
	out, errs, code := toy(t, "simulate", "all")
	require.Zero(t, code, errs)
	assert.Contains(t, out, "toy: Shows that a toy can be measured.\n\nload  rule ")
	assert.Contains(t, out, "\n\nbad: Shows a line that fails.\n\ncase  v %\n")
	out, _, code = toy(t, "simulate", "all", "--json")
	require.Zero(t, code)
	var docs []struct {
		Experiment string
		Lines      []struct {
			ID    string
			Holds bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &docs))
	require.Len(t, docs, 2)
	assert.Equal(t, "toy", docs[0].Experiment)
	assert.True(t, docs[0].Lines[0].Holds)
	assert.False(t, docs[1].Lines[0].Holds)
	out, _, code = toy(t, "simulate", "all", "--only", "steady", "--journal", filepath.Join(t.TempDir(), "j"))
	assert.Zero(t, code)
	assert.NotContains(t, out, "bad:")
}

func TestPlots(t *testing.T) {
	dir := t.TempDir()
	_, errs, code := toy(t, "simulate", "toy", "--plot", filepath.Join(dir, "p.svg"))
	require.Zero(t, code, errs)
	for _, name := range []string{"p.svg", "p-2.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Contains(t, string(svg), "Published: Fig. 7.")
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
		}
	}
	for args, says := range map[string]string{
		"simulate bad --plot p.svg":                     "bad has no plot: leave out --plot",
		"simulate all --plot p.svg":                     "--plot draws one experiment: give one, or --docs",
		"simulate toy --plot p.png":                     "give a file that ends in .svg",
		"simulate toy --docs d":                         "--docs writes a page of all experiments",
		"simulate all --only shaky --docs d":            "without --only",
		"simulate all --shard 1/2 --journal j --docs d": "--shard only fills its journal",
	} {
		_, errs, code := toy(t, strings.Fields(args)...)
		assert.Equal(t, 2, code, args)
		assert.Contains(t, errs, says)
	}
}

// The page has every experiment, its pictures are there, and it is the same each time.
func TestDocsPage(t *testing.T) {
	var first string
	for range 2 {
		dir := t.TempDir()
		_, errs, code := toy(t, "simulate", "all", "--docs", dir)
		require.Zero(t, code, errs)
		b, err := os.ReadFile(filepath.Join(dir, "paper.md"))
		require.NoError(t, err)
		page := string(b)
		for _, want := range []string{
			"| [toy](#toy) | 3 seeds, 10 replicas, 5 clients | 1 of 2 | T2 (known) |", "| [bad](#bad) |", "\n## toy\n\nShows that a toy",
			"\nSteady has 102 ms, and 101 in the paper.\n", "\n| 70 % | steady | 102 (101..103) | 101 | 0 |\n", "\nPublished: Fig. 7.\n",
			"| T1 | steady stays under 200 ms | holds 3/3 |", "\nWhat does not reproduce:\n\nShaky is shaky: timeout.\n\n- T2 fails: it is shaky.\n",
			"\nWhat does not reproduce:\n\n- X1 fails: nobody knows why yet.\n",
		} {
			assert.Contains(t, page, want)
		}
		assert.NotContains(t, page, "\n\n\n")
		links := regexp.MustCompile(`!\[[^\]]+\]\(([^)]+)\)`).FindAllStringSubmatch(page, -1)
		require.Len(t, links, 2)
		for _, l := range links {
			svg, err := os.ReadFile(filepath.Join(dir, l[1]))
			require.NoError(t, err)
			page += string(svg)
		}
		if first == "" {
			first = page
		}
		assert.Equal(t, first, page)
	}
}
