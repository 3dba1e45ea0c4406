package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// sample is a result with everything that can stand in a cell.
func sample() *Result {
	never := math.Inf(1)
	return &Result{
		Experiment: "sample", Size: Size{Seeds: 3, Replicas: 10, Clients: 5}, Keys: []string{"situation", "rule"},
		Columns: []Column{{Name: "failed", Unit: "%", digits: 1}, {Name: "back", Unit: "s", Within: 40}},
		Cases: []Case{
			{Keys: []string{"calm", "off"}, Cells: []Cell{{0, 0.01, 0.02}, nil}},
			{Keys: []string{"calm", "on"}, Cells: []Cell{{2.5, 1.25, 9}, {3, never, 2}}},
			{Keys: []string{"storm", "on"}, Cells: []Cell{{1, 2, 3}, {never, never, never}}},
		},
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WriteTable(&b))
	assert.Equal(t, "situation  rule  failed %        back s\n"+
		"calm       off   0.0             -\n"+
		"           on    2.5 (1.2..9.0)  3 (2..>40)\n"+
		"storm      on    2.0 (1.0..3.0)  >40\n", b.String())
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	r := sample()
	r.Cases = r.Cases[:2]
	require.NoError(t, r.WriteCSV(&b))
	assert.Equal(t, "situation,rule,seed,failed %,back s\ncalm,off,1,0,\ncalm,off,2,0.01,\ncalm,off,3,0.02,\n"+
		"calm,on,1,2.5,3\ncalm,on,2,1.25,never\ncalm,on,3,9,2\n", b.String())
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(sample().Cases[:2])
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"keys":["calm","off"],"cells":[{"median":0.01,"least":0,"most":0.02,"seeds":[0,0.01,0.02]},null]},
		{"keys":["calm","on"],"cells":[{"median":2.5,"least":1.25,"most":9,"seeds":[2.5,1.25,9]},
			{"median":3,"least":2,"most":null,"seeds":[3,null,2]}]}]`, string(b))
}

// few is an experiment that takes no time: a case's value is its number and the seed.
func few() Experiment {
	return Experiment{Name: "few", Keys: []string{"case"}, Columns: []Column{{Name: "v"}}, cases: func(Size) []run {
		var out []run
		for i, name := range []string{"a", "b", "c"} {
			out = append(out, run{[]string{name}, func(_ context.Context, seed uint64) ([]float64, error) {
				return []float64{float64(10*i) + float64(seed)}, nil
			}})
		}
		return out
	}}
}

func TestRunFillsEveryCell(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		var steps []int
		r, err := Run(t.Context(), few(), Options{Size: Size{3, 10, 1}, Workers: workers, Progress: func(done, total int) {
			assert.Equal(t, 9, total)
			steps = append(steps, done)
		}})
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, steps)
		assert.Equal(t, []Case{
			{[]string{"a"}, []Cell{{1, 2, 3}}}, {[]string{"b"}, []Cell{{11, 12, 13}}}, {[]string{"c"}, []Cell{{21, 22, 23}}},
		}, r.Cases)
	}
	r, err := Run(t.Context(), few(), Options{Size: Size{1, 10, 1}, Workers: 1, Only: "b"})
	require.NoError(t, err)
	assert.Equal(t, []Case{{[]string{"b"}, []Cell{{11}}}}, r.Cases)
}

func TestRunRefuses(t *testing.T) {
	for _, o := range []Options{
		{Size: Size{0, 10, 1}, Workers: 1}, {Size: Size{1, 9, 1}, Workers: 1}, {Size: Size{1, 10, 0}, Workers: 1},
		{Size: Size{1, 10, 1}, Workers: 0}, {Size: Size{1, 10, 201}, Workers: 1}, {Size: Size{1, 10, 1}, Workers: 1, Only: "d"},
	} {
		_, err := Run(t.Context(), few(), o)
		assert.ErrorIs(t, err, ErrOptions, "%+v", o)
	}
}

func TestRunStopsAtAnErrorAndWhenTold(t *testing.T) {
	broken := few()
	cause := errors.New("broken")
	broken.cases = func(s Size) []run {
		rs := few().cases(s)
		rs[1].measure = func(context.Context, uint64) ([]float64, error) { return nil, cause }
		return rs
	}
	_, err := Run(t.Context(), broken, Options{Size: Size{3, 10, 1}, Workers: 2})
	assert.ErrorIs(t, err, cause)
	assert.ErrorContains(t, err, "b: broken")

	ctx, stop := context.WithCancelCause(t.Context())
	told := errors.New("told")
	started := 0
	_, err = Run(ctx, sinkhole(), Options{Size: Size{5, 10, 5}, Workers: 1, Progress: func(done, _ int) {
		started = done
		stop(told)
	}})
	assert.ErrorIs(t, err, told)
	assert.Equal(t, 1, started)
}

// The same figures each time, whoever does the work.
func TestSinkholeDoesNotDependOnWorkers(t *testing.T) {
	var first []byte
	for _, workers := range []int{1, 3, 1} {
		r, err := Run(t.Context(), sinkhole(), Options{Size: Size{2, 10, 5}, Workers: workers, Only: "one of four"})
		require.NoError(t, err)
		b, err := json.Marshal(r)
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		assert.Equal(t, string(first), string(b))
	}
}

// cell is the median of a case's measurement.
func cell(t *testing.T, r *Result, rule, column string) float64 {
	t.Helper()
	for _, c := range r.Cases {
		if c.Keys[1] != rule {
			continue
		}
		for i, col := range r.Columns {
			if col.Name == column {
				require.NotEmpty(t, c.Cells[i], column)
				median, _, _ := c.Cells[i].Spread()
				return median
			}
		}
	}
	require.Fail(t, "no such cell", "%s, %s", rule, column)
	return 0
}

// Without aversion a replica that fails everything attracts queries; with it few are lost, at
// once, and the replica comes back.
func TestAversionAvoidsASinkhole(t *testing.T) {
	r, err := Run(t.Context(), sinkhole(), Options{Size: Size{3, 20, 20}, Workers: 2, Only: "one at 0.9"})
	require.NoError(t, err)
	assert.Greater(t, cell(t, r, "off", "failed"), 5*cell(t, r, "shipped", "failed"))
	assert.Greater(t, cell(t, r, "off", "share"), 90.0)
	assert.Less(t, cell(t, r, "shipped", "share"), 20.0)
	assert.LessOrEqual(t, cell(t, r, "shipped", "half"), 2.0)
	assert.False(t, math.IsInf(cell(t, r, "shipped", "back"), 1), "it must come back")
	assert.Less(t, cell(t, r, "shipped", "p99"), 1.5*cell(t, r, "off", "p99"))
}

// The keen variant shortens the tail, and its probes forget nobody.
func TestTheKeenVariantShortensTheTail(t *testing.T) {
	if testing.Short() {
		t.Skip("four worlds of a minute")
	}
	r, err := Run(t.Context(), variant(), Options{Size: Size{2, 20, 20}, Workers: 2, Only: "at 1.1"})
	require.NoError(t, err)
	assert.Less(t, cell(t, r, "keen", "p99"), 0.95*cell(t, r, "paper", "p99"))
	assert.Zero(t, cell(t, r, "keen", "failed"))
	assert.Greater(t, cell(t, r, "keen", "least probed"), 3.0)
	assert.Less(t, cell(t, r, "keen", "least probed"), 80.0, "probes are aimed")
	assert.Greater(t, cell(t, r, "paper", "least probed"), 80.0)
}

// The meter counts every query that the world knows of, once.
func TestMeterAndWorldAgree(t *testing.T) {
	sc := sim.Weather()
	sc.Replicas, sc.Clients, sc.Load, sc.Deadline = 10, 5, 20_000, 300*sim.Millisecond
	const span = 4 * sim.Second
	m := newMeter(span, []int{2, 3}, phase{from: 0, until: span + 1})
	w, err := sim.NewWorld(sc, "random seed=1", sim.Maker{Machine: m.watching(rule{around: newEjection}.machine)})
	require.NoError(t, err)
	w.SetFailing(2, 10_000)
	w.SetFailing(3, 5000)
	require.NoError(t, w.Run(span))
	s, got := w.Totals, m.over(0, span+sliceSpan)
	assert.Equal(t, s.Arrivals, got.placed+s.Unplaced)
	assert.Equal(t, s.Completed+s.Errors, got.ended)
	assert.Equal(t, s.Errors, got.failed)
	assert.Equal(t, s.Completed, m.phases[0].good.Count())
	assert.Positive(t, s.Timeouts)
	assert.GreaterOrEqual(t, got.failedMarked, s.Failed)
	assert.Equal(t, got, m.over(0, sim.Second).plus(m.over(sim.Second, span+sliceSpan)))
}

func (t tally) plus(o tally) tally {
	return tally{t.placed + o.placed, t.marked + o.marked, t.ended + o.ended, t.failed + o.failed, t.failedMarked + o.failedMarked}
}

func TestEveryExperimentIsDescribed(t *testing.T) {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
		assert.NotEmpty(t, e.About)
		require.NoError(t, (&Options{Size: e.Size, Workers: 1}).validate())
		for _, r := range e.cases(e.Size) {
			assert.Len(t, r.keys, len(e.Keys))
		}
		for _, c := range e.Columns {
			assert.NotEmpty(t, c.About, c.Name)
		}
		got, ok := Named(e.Name)
		assert.True(t, ok)
		assert.Equal(t, e.About, got.About)
	}
	slices.Sort(names)
	assert.Equal(t, len(names), len(slices.Compact(names)))
	_, ok := Named("nowhere")
	assert.False(t, ok)
}
