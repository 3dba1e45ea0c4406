package trace_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host/trace"
)

var update = flag.Bool("update", false, "write the golden files; review the difference as behaviour")

// Each trace says in its first lines what is to happen; the golden file beside it was read
// against the rule when it was made.
func TestTracesGiveTheirGoldenDecisions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.trace.jsonl")
	require.NoError(t, err)
	require.Greater(t, len(files), 30)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".trace.jsonl"), func(t *testing.T) {
			got := play(t, file)
			golden := strings.TrimSuffix(file, ".trace.jsonl") + ".golden.jsonl"
			if *update {
				require.NoError(t, os.WriteFile(golden, got, 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
		})
	}
}

// The page on formats shows a trace and what it gives.
func TestTheDocumentedTraceGivesTheDocumentedOutput(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "```")
	var trace, output string
	for _, block := range blocks {
		if strings.HasPrefix(block, "\n{\"op\":\"spec\"") {
			trace = block
		}
		if strings.HasPrefix(block, "\n{\"placement\":") {
			output = block
		}
	}
	require.NotEmpty(t, trace)
	assert.Equal(t, strings.TrimSpace(output), strings.TrimSpace(string(playText(t, "formats.md", []byte(trace)))))
}

// Every setting that the parser knows stands in the page's table, and no other.
func TestTheDocumentedSettingsAreTheParsers(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	require.NoError(t, err)
	async, sync, ok := strings.Cut(string(page), "| key with `mode=sync` |")
	require.True(t, ok)
	for _, c := range []struct{ spec, text, first string }{
		{"prequal none=1", async, "seed, "}, {"prequal mode=sync none=1", sync, "seed, mode, "},
	} {
		var documented []string
		for line := range strings.Lines(c.text) {
			cells := strings.Split(line, "|")
			if len(cells) == 6 && strings.HasPrefix(cells[1], " `") {
				documented = append(documented, strings.Trim(cells[1], " `"))
			}
		}
		_, err = policy.Parse(c.spec)
		require.Error(t, err)
		_, list, _ := strings.Cut(err.Error(), "want one of "+c.first)
		assert.Equal(t, strings.Split(list, ", "), documented)
	}
}

func play(t *testing.T, file string) []byte {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return playText(t, file, text)
}

func playText(t *testing.T, file string, text []byte) []byte {
	ops, err := trace.Read(file, bytes.NewReader(text))
	require.NoError(t, err)
	p, err := policy.Parse(ops[0].Spec)
	require.NoError(t, err)
	player := trace.NewPlayer(file, engine.New(p, engine.Config{Salt: ops[0].Salt}))
	var out []byte
	for i := range ops[1:] {
		r, err := player.Play(&ops[i+1])
		require.NoError(t, err)
		if r != nil {
			line, err := json.Marshal(r)
			require.NoError(t, err)
			out = append(append(out, line...), '\n')
		}
	}
	return out
}

func TestMalformedTracesSayWhere(t *testing.T) {
	const spec = `{"op":"spec","spec":"random"}` + "\n"
	for text, want := range map[string]string{
		spec + `{"op":"load","at":1,"endpoint":"a","qps":1,"utilization":0.75}`:      `f:2: not a trace line: "utilization" is number 0.75, want a whole number from 0 to 4294967295`,
		spec + `{"op":"endpoints","at":0,"endpoints":[{"name":"a","priority":300}]}`: `f:2: not a trace line: "endpoints.priority" is number 300, want a whole number from 0 to 255`,
		spec + `{"op":"decide","at":1,"key":7}`:                                      `f:2: not a trace line: "key" is number, want text in quotes`,
		"":                                                                           "f:1: empty; a trace starts with a spec line",
		"\n# only a comment\n":                                                       "f:3: empty; a trace starts with a spec line",
		`{"op":"decide","at":1}`:                                                     `f:1: the first line must be {"op":"spec","spec":"..."}`,
		spec + spec:                                                                  "f:2: a second spec line",
		spec + "\n{":                                                                 "f:3: not a trace line: unexpected EOF",
		spec + `{"op":"decide","at":"one"}`:                                          "f:2: not a trace line: \"at\" is string, want a whole number",
		spec + `{"op":"decide","when":1}`:                                            `f:2: not a trace line: json: unknown field "when"`,
		spec + `{"op":"decide"}`:                                                     `f:2: "decide" without at`,
		spec + `{"op":"jump","at":1}`:                                                `f:2: no op "jump"; want spec, endpoints, status, reading, load, forget, decide, done, probes, state or in_flight`,
		spec + `{"op":"reading","at":1}`:                                             "f:2: reading without endpoint",
		spec + `{"op":"decide","at":1} {}`:                                           `f:2: not a trace line: "{}" after its end`,
		spec + `{"op":"decide","at":1}]`:                                             `f:2: not a trace line: "]" after its end`,
		spec + `{"op":"decide","at":1}}`:                                             `f:2: not a trace line: "}" after its end`,
		spec + `{"op":"decide","at":1,"rif":3}`:                                      `f:2: decide has no "rif"`,
		spec + `{"op":"decide","at":1,"at":2}`:                                       `f:2: "at" stands twice`,
		spec + `{"OP":"decide","at":1}`:                                              `f:2: decide has no "OP"`,
		spec + `{"op":"status","at":1,"endpoint":"a"}`:                               "f:2: status without status",
		`{"op":"spec","spec":"random","at":1}`:                                       `f:1: spec has no "at"`,
		spec + `[1]`:                                                                 "f:2: not a trace line: want an object, not array",
		spec + `{"op":"done","at":1}`:                                                "f:2: done with placement or with endpoint: want one of them",
		`{"op":"spec"}`:                                                              "f:1: spec without spec",
		spec + `{"op":"status","at":1,"endpoint":"a","status":"sleepy"}`:             `f:2: no status "sleepy"; want ready, draining or unavailable`,
		spec + `{"op":"reading","at":1,"endpoint":"a","rif":1,"latency_ns":-5}`:    "f:2: latency_ns below 0; leave it out where it is unknown",
		spec + `{"op":"reading","at":1,"endpoint":"a"}`:                            "f:2: reading without rif",
		spec + `{"op":"done","at":1,"placement":0,"outcome":"meh"}`:                `f:2: no outcome "meh"; want success, failure, overloaded or cancelled`,
		spec + `{"op":"endpoints","at":1,"endpoints":[{"name":""}]}`:               "f:2: an endpoint without a name",
		spec + `{"op":"endpoints","at":1,"endpoints":[{"name":"a","status":"x"}]}`: `f:2: endpoint "a": no status "x"; want ready, draining or unavailable`,
	} {
		_, err := trace.Read("f", strings.NewReader(text))
		var line *trace.LineError
		require.ErrorAs(t, err, &line, text)
		assert.Equal(t, want, err.Error())
	}
	_, err := trace.Read("f", strings.NewReader(spec+strings.Repeat("x", trace.MaxLine+1)))
	assert.EqualError(t, err, "f:2: longer than 4194304 bytes")
}

func TestPlayRefusesWhatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		`{"op":"endpoints","at":1,"endpoints":[{"name":"a"},{"name":"a"}]}`:                                                 `f:2: duplicate endpoint: "a"`,
		`{"op":"endpoints","at":1,"endpoints":[{"name":"a","locality":"zone-17672"},{"name":"b","locality":"zone-51913"}]}`: `f:2: inconsistent topology: localities "zone-17672" and "zone-51913" hash alike`,
		`{"op":"status","at":1,"endpoint":"a","status":"ready"}`:                                                            `f:2: unknown endpoint: "a"`,
		`{"op":"done","at":1,"placement":0}`:                                                                                "f:2: placement 0: so far there are 0, counted from 0",
		`{"op":"decide","at":1}` + "\n" + `{"op":"done","at":1,"placement":0}`:                                              "f:3: placement 0 was not placed, or is done already",
	} {
		ops, err := trace.Read("f", strings.NewReader(`{"op":"spec","spec":"random"}`+"\n"+text))
		require.NoError(t, err)
		player := trace.NewPlayer("f", engine.New(policy.NewRandom(1), engine.Config{}))
		for i := range ops[1:] {
			_, err = player.Play(&ops[i+1])
		}
		assert.EqualError(t, err, want)
	}
}

// A reading of a replica that has left was on its way: it is no error.
func TestLateReadingsOfLeftReplicasAreOrdinary(t *testing.T) {
	ops, err := trace.Read("f", strings.NewReader(`{"op":"spec","spec":"prequal"}
{"op":"reading","at":1,"endpoint":"gone","rif":1}
{"op":"forget","at":1,"endpoint":"gone"}`))
	require.NoError(t, err)
	p, err := policy.Parse("prequal")
	require.NoError(t, err)
	player := trace.NewPlayer("f", engine.New(p, engine.Config{}))
	for i := range ops[1:] {
		_, err := player.Play(&ops[i+1])
		require.NoError(t, err)
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.trace.jsonl")
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ops, err := trace.Read("f", bytes.NewReader(text))
		if err != nil {
			return
		}
		p, err := policy.Parse(ops[0].Spec)
		if err != nil {
			return
		}
		player := trace.NewPlayer("f", engine.New(p, engine.Config{MaxCandidates: 1000}))
		for i := range ops[1:] {
			r, err := player.Play(&ops[i+1])
			if err != nil {
				return
			}
			if r != nil {
				_, err := json.Marshal(r)
				require.NoError(t, err)
			}
		}
	})
}
