package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplayMistakes(t *testing.T) {
	for args, says := range map[string]string{
		"":                          "give the recording with --trace FILE",
		"now.rec":                   `"now.rec" is left over: give the recording with --trace FILE`,
		"--trace x --fleet t9":      "--fleet t9: there are t1, t2, t3, antagonists and calm",
		"--trace x --load 4":        "--load 4 must be 0.01 to 3",
		"--trace x --replicas -1":   "--replicas -1 must be 1 to 20000",
		"--trace x --json --csv":    "give one of them",
		"--trace x --rule nonsense": `--rule "nonsense": `,
	} {
		out, errs, code := runShowcase(t, append([]string{"simulate", "replay"}, strings.Fields(args)...)...)
		assert.Equal(t, 2, code, args)
		assert.Contains(t, errs, says)
		assert.Empty(t, out)
	}
	_, errs, code := runShowcase(t, "simulate", "replay", "--trace", filepath.Join(t.TempDir(), "none"))
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "give a file of wasmhost record with --trace")
}

func TestReplayOfATable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queries.csv")
	var table strings.Builder
	table.WriteString("arrival_ns,work_ns,client\n")
	for i := range 300 {
		table.WriteString(strings.Join([]string{strconv.Itoa(10_000_000 * i), strconv.Itoa(1_000_000 * (20 + i%50)), strconv.Itoa(i % 3)}, ",") + "\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(table.String()), 0o600))
	args := []string{"simulate", "replay", "--trace", path, "--replicas", "4", "--seeds", "2", "--rule", "prequal", "--rule", "omniscient"}
	out, errs, code := runShowcase(t, args...)
	assert.Zero(t, code, errs)
	assert.Contains(t, errs, "300 queries at 3 balancers in 3.0 s\n")
	assert.Regexp(t, `(?m)^rule +failed % +p50 ms`, out)
	assert.Regexp(t, `(?m)^omniscient +0\.00 `, out)
	again, _, _ := runShowcase(t, append(args, "--workers", "1")...)
	assert.Equal(t, out, again)
}
