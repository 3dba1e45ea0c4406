package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// toy runs the command with experiments that take no time.
func toy(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv("SHOWCASE_TOYS", "1")
	return runShowcase(t, args...)
}

// job is what the manifest says.
type job struct {
	shards int
	args   []string
}

func manifest(t *testing.T) job {
	t.Helper()
	f, err := os.Open("../../deploy/simulate/job.yaml")
	require.NoError(t, err)
	defer f.Close()
	for d := yaml.NewDecoder(f); ; {
		var doc struct {
			Kind string
			Spec struct {
				CompletionMode           string `yaml:"completionMode"`
				Completions, Parallelism int
				Template                 struct {
					Spec struct {
						RestartPolicy string `yaml:"restartPolicy"`
						Containers    []struct{ Args []string }
					}
				}
			}
		}
		err := d.Decode(&doc)
		require.False(t, errors.Is(err, io.EOF), "no Job in the manifest")
		require.NoError(t, err)
		if doc.Kind != "Job" {
			continue
		}
		require.Equal(t, "Indexed", doc.Spec.CompletionMode)
		require.Equal(t, "Never", doc.Spec.Template.Spec.RestartPolicy, "a limit for each index needs it")
		require.Equal(t, doc.Spec.Completions, doc.Spec.Parallelism)
		require.Len(t, doc.Spec.Template.Spec.Containers, 1)
		return job{doc.Spec.Completions, doc.Spec.Template.Spec.Containers[0].Args}
	}
}

// The manifest's own command, as one process for each index: together they are one run.
func TestManifestShardsMergeToTheSameBytes(t *testing.T) {
	t.Setenv("SHOWCASE_TOYS", "1")
	j := manifest(t)
	require.Contains(t, strings.Join(j.args, " "), "/"+strconv.Itoa(j.shards), "the number of shards is that of completions")
	dir := t.TempDir()
	var running []*exec.Cmd
	for i := range j.shards {
		var args []string
		for _, a := range j.args {
			a = strings.ReplaceAll(a, "$(JOB_COMPLETION_INDEX)", strconv.Itoa(i))
			args = append(args, strings.ReplaceAll(a, "/journals", dir))
		}
		c := showcaseCommand(args...)
		require.NoError(t, c.Start())
		running = append(running, c)
	}
	for _, c := range running {
		require.NoError(t, c.Wait())
	}
	for _, format := range []string{"--strict=false", "--json"} {
		want, _, code := runShowcase(t, "simulate", "all", format)
		require.Zero(t, code)
		got, errs, code := runShowcase(t, "simulate", "all", format, "--merge-only", filepath.Join(dir, "*.jsonl"))
		require.Zero(t, code, errs)
		assert.Equal(t, want, got)
	}
	// The first shard's journal becomes complete, and then serves one experiment.
	first := filepath.Join(dir, "0.jsonl")
	_, errs, code := runShowcase(t, "simulate", "all", "--journal", first)
	require.Zero(t, code, errs)
	want, _, _ := runShowcase(t, "simulate", "toy", "--csv")
	got, errs, code := runShowcase(t, "simulate", "toy", "--csv", "--merge-only", "--journal", first)
	require.Zero(t, code, errs)
	assert.Equal(t, want, got)
}

func TestShardsOfTheSimulatorMerge(t *testing.T) {
	dir := t.TempDir()
	small := []string{"simulate", "sinkhole", "--only", "one of four", "--replicas", "10", "--clients", "5", "--seeds", "2"}
	with := func(more ...string) []string { return append(append([]string{}, small...), more...) }
	var journals []string
	for _, i := range []string{"1", "2", "3"} {
		path := filepath.Join(dir, i)
		out, errs, code := runShowcase(t, with("--shard", i+"/3", "--journal", path)...)
		require.Zero(t, code, errs)
		assert.Equal(t, "sinkhole: shard "+i+"/3 is complete in "+path+"\n", out)
		journals = append(journals, path)
	}
	want, _, code := runShowcase(t, small...)
	require.Zero(t, code)
	got, errs, code := runShowcase(t, with(append([]string{"--merge-only"}, journals...)...)...)
	require.Zero(t, code, errs)
	assert.Equal(t, want, got)
	// Without the second shard, what it had is named, and then run.
	_, errs, code = runShowcase(t, with("--merge-only", journals[0], journals[2])...)
	assert.Equal(t, 1, code)
	assert.Equal(t, 4, strings.Count(errs, "missing: sinkhole, one of four, "), errs)
	assert.Contains(t, errs, "showcase: runs are missing: 4 of 12, the first is sinkhole, one of four, ")
	assert.Contains(t, errs, "leave out --merge-only to run them")
	got, errs, code = runShowcase(t, with("--journal", journals[0], "--journal", journals[2])...)
	require.Zero(t, code, errs)
	assert.Equal(t, want, got)
}

// Killed in the middle, with a torn last line: the next run goes on, and ends in the same bytes.
func TestJournalSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	args := []string{"simulate", "sinkhole", "--only", "one of four", "--replicas", "10", "--clients", "5", "--journal", path}
	c := showcaseCommand(append(args, "--seeds", "1000")...)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	lines := func() int {
		text, _ := os.ReadFile(path)
		return bytes.Count(text, []byte("\n"))
	}
	require.Eventually(t, func() bool { return lines() > 4 }, 15*time.Second, 10*time.Millisecond)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"experiment":"sinkhole","case":["one of f`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	had := lines()
	got, errs, code := runShowcase(t, append(args, "--seeds", "2", "--json")...)
	require.Zero(t, code, errs)
	want, _, code := runShowcase(t, append(args[:len(args)-2:len(args)-2], "--seeds", "2", "--json")...)
	require.Zero(t, code)
	assert.Equal(t, want, got)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, lines(), had)
	for line := range bytes.Lines(text) {
		assert.True(t, json.Valid(line), "a torn line is left")
	}
}

// A header that was torn is written again.
func TestJournalWithATornHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(path, []byte(`{"journal":1,"bu`), 0o600))
	want, errs, code := toy(t, "simulate", "toy", "--journal", path)
	require.Zero(t, code, errs)
	got, errs, code := toy(t, "simulate", "toy", "--merge-only", path)
	require.Zero(t, code, errs)
	assert.Equal(t, want, got)
}

func TestJournalMistakes(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("not to be lost"), 0o600))
	other := filepath.Join(dir, "other")
	_, _, code := toy(t, "simulate", "bad", "--journal", other)
	require.Zero(t, code)
	foreign := filepath.Join(dir, "foreign")
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(foreign, bytes.Replace(text, []byte(`"build":"`), []byte(`"build":"0`), 1), 0o600))
	for _, x := range []struct{ args, says string }{
		{"simulate toy --journal " + notes, "does not begin like one; give the name of a journal, or of a new file"},
		{"simulate toy --journal " + other, "it is of bad, and this run is of toy; start a new file"},
		{"simulate all --journal " + other, "it is of bad, and this run is of toy, bad; start a new file"},
		{"simulate bad --journal " + foreign, "use the program that wrote it, or start a new file"},
		{"simulate bad --clients 6 --journal " + other, "give --replicas 10 --clients 5, or start a new file"},
		{"simulate toy --journal " + filepath.Join(dir, "no", "j"), "give a file in a directory that exists with --journal"},
		{"simulate toy --merge-only " + filepath.Join(dir, "gone"), "only the first --journal may be a new file"},
		{"simulate toy --plot " + filepath.Join(dir, "no", "p.svg"), "give a file in a directory that exists"},
	} {
		out, errs, code := toy(t, strings.Fields(x.args)...)
		assert.Equal(t, 1, code, x.args)
		assert.Contains(t, errs, x.says)
		assert.Equal(t, 1, strings.Count(errs, "\n"), "one line: %q", errs)
		assert.Empty(t, out)
	}
	left, err := os.ReadFile(notes)
	require.NoError(t, err)
	assert.Equal(t, "not to be lost", string(left))
}
