package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// written runs a shard and gives its journal and how many runs it did.
func written(t *testing.T, s *Study, of Shard) (text []byte, runs int) {
	t.Helper()
	text = s.Header("b1").Line()
	require.NoError(t, s.Work(t.Context(), Work{Workers: 2, Shard: of, Keep: func(r Record) error {
		runs++
		text = append(text, r.Line()...)
		return nil
	}}))
	return text, runs
}

// However a study is split, torn and merged, every run is done once and the result is the same.
func TestShardsBecomeTheSameResult(t *testing.T) {
	whole := study(t, few(), odd())
	written(t, whole, Shard{})
	rs, err := whole.Results()
	require.NoError(t, err)
	want, err := json.Marshal(rs)
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(rt, "shards")
		merged := study(t, few(), odd())
		done := 0
		for i := 1; i <= n; i++ {
			text, runs := written(t, study(t, few(), odd()), Shard{i, n})
			done += runs
			cut := rapid.IntRange(0, len(text)).Draw(rt, "cut")
			kept, err := merged.Take(text[:cut], "b1", true)
			require.NoError(t, err)
			require.LessOrEqual(t, kept, cut)
			require.Equal(t, text[:kept], text[:bytes.LastIndexByte(text[:cut], '\n')+1])
		}
		require.Equal(t, 18, done, "every run is in one shard")
		_, _ = written(t, merged, Shard{}) // what was torn
		rs, err := merged.Results()
		require.NoError(t, err)
		got, err := json.Marshal(rs)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

// odd has all values that JSON cannot say.
func odd() Experiment {
	e := Experiment{Name: "odd", Keys: []string{"case"}, Columns: []Column{{Name: "v"}, {Name: "w"}}}
	for _, name := range []string{"x", "y", "z"} {
		e.Add([]string{name}, func(_ context.Context, seed uint64) ([]float64, error) {
			return []float64{[]float64{math.NaN(), math.Inf(1), 1.0 / 3}[seed-1], float64(seed) * 1e-300}, nil
		})
	}
	return e
}

// Shards are near equal, and none has a case or a seed alone.
func TestShardsAreMixed(t *testing.T) {
	e := Experiment{Name: "e", Keys: []string{"case"}, Columns: []Column{{Name: "v"}}}
	for i := range 12 {
		e.Add([]string{string(rune('a' + i))}, func(context.Context, uint64) ([]float64, error) { return []float64{0}, nil })
	}
	s, err := NewStudy([]Experiment{e}, Size{5, 10, 1}, "")
	require.NoError(t, err)
	for n := 2; n <= 12; n++ {
		for i := 1; i <= n; i++ {
			todo := s.todo(Shard{i, n})
			assert.InDelta(t, 60/n, len(todo), 1)
			cases, seeds := map[string]bool{}, map[int]bool{}
			for _, x := range todo {
				cases[x.run().keys[0]], seeds[x.seed()] = true, true
			}
			assert.Greater(t, len(cases), 1, "%d/%d", i, n)
			assert.Greater(t, len(seeds), 1, "%d/%d", i, n)
		}
		assert.Equal(t, s.todo(Shard{n, n}), s.todo(Shard{0, n}))
	}
}

func TestJournalGoesOn(t *testing.T) {
	text, runs := written(t, study(t, few()), Shard{1, 2})
	require.Equal(t, 4, runs)
	again := study(t, few())
	kept, err := again.Take(text, "b1", true)
	require.NoError(t, err)
	assert.Equal(t, len(text), kept)
	_, runs = written(t, again, Shard{})
	assert.Equal(t, 5, runs)
	// More seeds than it was written for, and fewer.
	more, err := NewStudy([]Experiment{few()}, Size{5, 10, 1}, "")
	require.NoError(t, err)
	_, err = more.Take(text, "b1", true)
	require.NoError(t, err)
	assert.Len(t, more.Missing(Shard{}), 11)
	less, err := NewStudy([]Experiment{few()}, Size{1, 10, 1}, "b")
	require.NoError(t, err)
	_, err = less.Take(text, "b1", true)
	require.NoError(t, err)
}

func TestJournalOfSomethingElseIsRefused(t *testing.T) {
	text, _ := written(t, study(t, few()), Shard{})
	lines := strings.SplitAfter(string(text), "\n")
	bigger, err := NewStudy([]Experiment{few()}, Size{3, 20, 1}, "")
	require.NoError(t, err)
	for _, x := range []struct {
		name  string
		study *Study
		text  string
		build string
		says  string
	}{
		{"build", study(t, few()), string(text), "b2", "it is of build b1, and this program is build b2"},
		{"size", bigger, string(text), "b1", "few with 10 replicas and 1 clients, and this run has 20 and 1; give --replicas 10 --clients 1"},
		{"experiment", study(t, odd()), string(text), "b1", "it is of few, and this run is of odd; start a new file"},
		{"too few experiments", study(t, few(), odd()), string(text), "b1", "it is of few, and this run is of few, odd"},
		{"format", study(t, few()), `{"journal":2,"build":"b1"}` + "\n", "b1", "its format is 2"},
		{"no journal", study(t, few()), "# Notes\n", "b1", "does not begin like one"},
		{"no journal, no line", study(t, few()), "notes", "b1", "does not begin like one"},
		{"JSON", study(t, few()), "{\"name\":\"x\"}\n", "b1", "does not begin like one"},
		{"damage", study(t, few()), lines[0] + "{\"exp\n" + lines[1], "b1", "line 2 is damaged"},
		{"other figures", study(t, few()), string(text) + strings.Replace(lines[1], `"values":[`, `"values":[9`, 1), "b1", "other figures"},
		{"columns", study(t, few()), lines[0] + strings.Replace(lines[1], `"values":[`, `"values":[9,`, 1) + lines[2], "b1", "2 values for 1 columns"},
	} {
		_, err := x.study.Take([]byte(x.text), x.build, true)
		require.ErrorIs(t, err, ErrJournal, x.name)
		assert.ErrorContains(t, err, x.says, x.name)
	}
	// A journal of all experiments serves one of them, and one of them serves a merge of all.
	both, _ := written(t, study(t, few(), odd()), Shard{})
	_, err = study(t, odd()).Take(both, "b1", true)
	require.NoError(t, err)
	_, err = study(t, few(), odd()).Take(text, "b1", false)
	require.NoError(t, err)
}

func TestTornHeaderIsNothing(t *testing.T) {
	head := study(t, few()).Header("b1").Line()
	for cut := range head {
		kept, err := study(t, few()).Take(head[:cut], "b1", true)
		require.NoError(t, err, "%d", cut)
		require.Zero(t, kept)
	}
}

// The time that is left follows from what runs of the same case cost, wherever they ran.
func TestTimeLeft(t *testing.T) {
	s := study(t, few())
	assert.EqualValues(t, -1, s.estimate(s.todo(Shard{}), 1))
	for i, cost := range []int64{100, 1000} { // seed 1 of a and b; c is unknown
		require.NoError(t, s.take(Record{"few", []string{string(rune('a' + i))}, 1, []float64{0}, cost}))
	}
	left := s.todo(Shard{})
	assert.EqualValues(t, 2*100+2*1000+3*550, s.estimate(left, 1))
	assert.EqualValues(t, (2*100+2*1000+3*550)/2, s.estimate(left, 2))
	assert.EqualValues(t, 1000, s.estimate(left, 100), "no worker is done sooner")
	var seen []int64
	now := int64(0)
	require.NoError(t, s.Work(t.Context(), Work{Workers: 1, Clock: func() int64 { now += 50; return now }, Progress: func(p Progress) {
		seen = append(seen, p.Left())
	}}))
	assert.EqualValues(t, 3850, seen[0])
	assert.EqualValues(t, 0, seen[len(seen)-1])
	assert.Less(t, seen[1], seen[0])
	assert.EqualValues(t, 50, s.parts[0].cost[8])
}

// A case that was not measured costs what its experiment's others do; an experiment that was not
// costs what the others do.
func TestTimeLeftOfSeveralExperiments(t *testing.T) {
	s := study(t, few(), odd())
	require.NoError(t, s.take(Record{"few", []string{"a"}, 1, []float64{0}, 100}))
	assert.EqualValues(t, 8*100+9*100, s.estimate(s.todo(Shard{}), 1))
	require.NoError(t, s.take(Record{"odd", []string{"x"}, 1, []float64{0, 0}, 300}))
	require.NoError(t, s.take(Record{"odd", []string{"y"}, 1, []float64{0, 0}, 500}))
	assert.EqualValues(t, 8*100+2*300+2*500+3*400, s.estimate(s.todo(Shard{}), 1))
}

// Thousands of cases are no burden to plan, resume and show.
func TestThousandsOfCases(t *testing.T) {
	e := Experiment{Name: "e", Keys: []string{"case"}, Columns: []Column{{Name: "v"}}}
	e.cases = func(Size) []run {
		var rs []run
		for i := range 3000 {
			rs = append(rs, run{[]string{strconv.Itoa(i)}, func(context.Context, uint64) ([]float64, error) { return []float64{1}, nil }})
		}
		return rs
	}
	s, err := NewStudy([]Experiment{e}, Size{5, 10, 1}, "")
	require.NoError(t, err)
	text, runs := written(t, s, Shard{})
	require.Equal(t, 15_000, runs)
	again, err := NewStudy([]Experiment{e}, Size{5, 10, 1}, "")
	require.NoError(t, err)
	_, err = again.Take(text, "b1", true)
	require.NoError(t, err)
	require.Empty(t, again.Missing(Shard{}))
}

func TestWorkRefuses(t *testing.T) {
	for _, w := range []Work{{Workers: 0}, {Workers: 1025}, {Workers: 1, Shard: Shard{3, 2}}, {Workers: 1, Shard: Shard{1, -1}}} {
		assert.ErrorIs(t, study(t, few()).Work(t.Context(), w), ErrOptions)
	}
	e := few()
	e.Columns = append(e.Columns, Column{Name: "w"})
	assert.ErrorContains(t, study(t, e).Work(t.Context(), Work{Workers: 1}), "1 values for 2 columns")
}
