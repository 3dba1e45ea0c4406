package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSimulateMistakes(t *testing.T) {
	for _, x := range []struct {
		args string
		says string
	}{
		{"simulate", "give an experiment: sinkhole, variant; see showcase simulate --list"},
		{"simulate nowhere", `there is no experiment "nowhere"; see showcase simulate --list`},
		{"simulate sinkhole ramp", `"ramp" is left over: give one experiment`},
		{"simulate --list sinkhole", "--list takes no experiment"},
		{"simulate sinkhole --json --csv", "give one of them"},
		{"simulate sinkhole --seeds -1", "seeds -1 must be 1 to 1000"},
		{"simulate sinkhole --replicas 9", "replicas 9 must be 10 to 200"},
		{"simulate sinkhole --workers 0", "workers 0 must be 1 to 1024"},
		{"simulate sinkhole --only nothing", "there are calm 0.9, off, shipped"},
		{"simulate --colour", "see showcase --help"},
	} {
		out, errs, code := runShowcase(t, strings.Fields(x.args)...)
		assert.Equal(t, 2, code, x.args)
		assert.Contains(t, errs, x.says)
		assert.Equal(t, 1, strings.Count(errs, "\n"), "one line: %q", errs)
		assert.Empty(t, out)
	}
}

func TestSimulateHelpListAndCompletion(t *testing.T) {
	out, errs, code := runShowcase(t, "simulate", "--help")
	assert.Zero(t, code)
	assert.Empty(t, errs)
	assert.Contains(t, out, "Examples:\n  showcase simulate --list\n")
	out, errs, code = runShowcase(t, "simulate", "--list")
	assert.Zero(t, code)
	assert.Empty(t, errs)
	assert.Contains(t, out, "sinkhole  Replicas that fail fast look idle.")
	assert.Contains(t, out, "5 seeds, 100 replicas, 100 clients")
	out, _, _ = runShowcase(t, "__complete", "simulate", "")
	assert.Equal(t, "sinkhole\nvariant\n:4\n", out)
	out, _, _ = runShowcase(t, "__complete", "simulate", "sinkhole", "--only", "")
	assert.Contains(t, out, "\none of four\n")
	assert.Contains(t, out, "\nejection\n")
	out, _, _ = runShowcase(t, "__complete", "sim")
	assert.Contains(t, out, "simulate\t")
}

// All three outputs have the same figures, each time.
func TestSimulateOutputs(t *testing.T) {
	small := []string{"simulate", "sinkhole", "--only", "one of four", "--replicas", "10", "--clients", "5", "--seeds", "2"}
	run := func(more ...string) string {
		out, errs, code := runShowcase(t, append(small, more...)...)
		require.Zero(t, code, errs)
		assert.Empty(t, errs, "no progress where nobody watches")
		return out
	}
	var doc struct {
		Experiment string
		Size       struct{ Seeds, Replicas, Clients int }
		Keys       []string
		Columns    []struct{ Name, Unit, About string }
		Cases      []struct {
			Keys  []string
			Cells []*struct {
				Median *float64
				Seeds  []*float64
			}
		}
	}
	text := run("--json", "--workers", "1")
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	assert.Equal(t, "sinkhole", doc.Experiment)
	assert.Equal(t, 2, doc.Size.Seeds)
	require.NotEmpty(t, doc.Cases)
	assert.Equal(t, []string{"one of four", "off"}, doc.Cases[0].Keys)
	assert.Len(t, doc.Cases[0].Cells, len(doc.Columns))
	assert.Len(t, doc.Cases[0].Cells[0].Seeds, 2)
	assert.Equal(t, text, run("--json", "--workers", "2"))

	lines, err := csv.NewReader(strings.NewReader(run("--csv"))).ReadAll()
	require.NoError(t, err)
	assert.Len(t, lines, 1+2*len(doc.Cases))
	assert.Equal(t, []string{"situation", "rule", "seed", "failed %"}, lines[0][:4])

	table := strings.Split(strings.TrimRight(run(), "\n"), "\n")
	assert.Len(t, table, 1+len(doc.Cases))
	assert.Regexp(t, `^situation +rule +failed %`, table[0])
}

// A signal ends a long run soon, with one line that says so, and prints no half results.
func TestSimulateEndsOnASignal(t *testing.T) {
	c := showcaseCommand("simulate", "sinkhole", "--seeds", "1000")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	time.Sleep(time.Second) // it is at work, with an hour to go
	require.NoError(t, c.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		require.Fail(t, "it goes on")
	}
	assert.Equal(t, 1, c.ProcessState.ExitCode())
	assert.Equal(t, "showcase: interrupted before the experiment was complete\n", errs.String())
	assert.Empty(t, out.String())
}
