package experiment

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judged is the sample with lines; see there for the figures.
func judged(lines ...Line) *Result {
	r := sample()
	r.report.Lines = lines
	r.judge()
	return r
}

func failedOn(bound float64) func(Seen) []Claim {
	return func(s Seen) []Claim { return AtMost(s.At("failed", "calm", "on"), bound) }
}

func TestLines(t *testing.T) {
	r := judged(
		Line{ID: "A1", Says: "few fail", Check: failedOn(9)},
		Line{ID: "A2", Says: "fewer fail", Check: failedOn(2)},
		Line{ID: "A3", Says: "fewer fail", Check: failedOn(2.5)},
		Line{ID: "A4", Says: "fewer fail", Check: failedOn(2), Known: "a shorter run"},
		Line{ID: "A5", Says: "few fail", Check: failedOn(9), Known: "a shorter run"},
		Line{ID: "B1", Says: "few fail", Check: failedOn(4.25), Mean: true},
		Line{ID: "B2", Says: "few fail", Check: failedOn(4.2), Mean: true},
		Line{ID: "C1", Says: "it comes back", Check: func(s Seen) []Claim {
			return AllOf(AtLeast(s.At("failed", "storm"), 1), AtMost(s.At("back", "calm", "on"), 40))
		}},
		Line{ID: "D1", Says: "elsewhere", Check: func(s Seen) []Claim { return AtLeast(s.At("failed", "hail", "on"), 1) }},
		Line{ID: "D2", Says: "vague", Check: func(s Seen) []Claim { return AtLeast(s.At("failed", "on"), 1) }},
		Line{ID: "E1", Says: "nothing", Check: func(Seen) []Claim { return nil }},
		Line{ID: "F1", Says: "a ratio", Check: func(s Seen) []Claim {
			return AtLeast(s.At("back", "storm").Over(s.At("back", "calm", "on")), 1)
		}},
	)
	var b bytes.Buffer
	require.NoError(t, r.WriteLines(&b))
	assert.Equal(t, `A1  holds 3/3               few fail
A2  FAILS in seeds 1, 3     fewer fail: 2.5 > 2, failed of calm, on
A3  FAILS in seed 3         fewer fail: 9 > 2.5, failed of calm, on
A4  FAILS in seeds 1, 3     fewer fail: 2.5 > 2, failed of calm, on (known: a shorter run)
A5  holds 3/3               few fail: it was known to fail: a shorter run
B1  holds in the mean       few fail
B2  FAILS in the mean       few fail: 4.25 > 4.2, failed of calm, on
C1  FAILS in seed 2         it comes back: never > 40, back of calm, on
D1  not judged              elsewhere: failed of hail, on was not run
D2  not judged              vague: which of 2 cases that are on was not run
E1  FAILS in seeds 1, 2, 3  nothing
F1  FAILS in seed 2         a ratio: no value is not >= 1, back of storm, on / back of calm, on
`, b.String())
	var fails []string
	for _, o := range r.Lines {
		if o.Fails() {
			fails = append(fails, o.ID)
		}
	}
	assert.Equal(t, []string{"A2", "A3", "B2", "C1", "E1", "F1"}, fails)
	j, err := json.Marshal(r.Lines[2])
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"A3","says":"fewer fail","holds":false,"verdicts":[
		{"seed":1,"holds":true,"claims":[{"what":"failed of calm, on","value":2.5,"relation":"<=","bound":2.5,"holds":true}]},
		{"seed":2,"holds":true,"claims":[{"what":"failed of calm, on","value":1.25,"relation":"<=","bound":2.5,"holds":true}]},
		{"seed":3,"holds":false,"claims":[{"what":"failed of calm, on","value":9,"relation":"<=","bound":2.5,"holds":false}]}]}`, string(j))
	j, err = json.Marshal(r.Lines[8])
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"D1","says":"elsewhere","missing":["failed of hail, on"],"holds":false,"verdicts":null}`, string(j))
}

func TestNotRising(t *testing.T) {
	at := func(vs ...float64) bool {
		var in []Value
		for _, v := range vs {
			in = append(in, Value{V: v})
		}
		for _, c := range NotRising(in, 0.05) {
			if !c.Holds {
				return false
			}
		}
		return true
	}
	assert.True(t, at(3, 2, 2.1, 2))
	assert.False(t, at(3, 2, 2.11, 2))
	assert.True(t, at(0, 0))
	assert.False(t, at(0, 1))
}

func TestEachKeepsTheOrder(t *testing.T) {
	judged(Line{Check: func(s Seen) []Claim {
		on := s.Each("failed", "on")
		require.Len(t, on, 2)
		assert.Equal(t, "failed of calm, on", on[0].What)
		assert.Equal(t, "failed of storm, on", on[1].What)
		assert.Len(t, EachAtMost(on, 1), 2)
		return EachAtLeast(s.Each("failed"), 0)
	}})
}

// checkReport holds that what an experiment says of its figures is about cases that it has.
func checkReport(t *testing.T, e Experiment) {
	t.Helper()
	r := &Result{Size: Size{Seeds: 2}, Keys: e.Keys, Columns: e.Columns, report: e.Report}
	for _, one := range e.cases(e.Size) {
		c := Case{Keys: one.keys}
		for range e.Columns {
			c.Cells = append(c.Cells, Cell{1, 2})
		}
		r.Cases = append(r.Cases, c)
	}
	r.cite()
	placed := 0
	for _, c := range r.Cases {
		placed += len(c.Published)
	}
	assert.Equal(t, len(e.Published), placed, "%s: every published figure is of one case and column", e.Name)
	for _, p := range e.Plots {
		assert.NotEmpty(t, p.Title)
		assert.Contains(t, e.Keys, p.X)
		if p.Series != "" {
			assert.Contains(t, e.Keys, p.Series)
		}
		for _, y := range p.Y {
			assert.True(t, slices.ContainsFunc(e.Columns, func(c Column) bool { return c.Name == y }), "%s plots %s", e.Name, y)
		}
		if p.Lead != "" || p.Where != nil {
			assert.Subset(t, e.Values(), append(slices.Clone(p.Where), p.Lead))
		}
	}
	if !t.Failed() {
		for _, f := range r.Figures() {
			for _, p := range f.Panels {
				assert.NotEmpty(t, p.Series, "%s: %s shows nothing", e.Name, f.Title)
			}
		}
	}
	checkText(t, e.Name, r)
	r.judge()
	ids := map[string]bool{}
	for _, o := range r.Lines {
		assert.Empty(t, o.Missing, "%s, line %s", e.Name, o.ID)
		assert.NotEmpty(t, o.Says)
		assert.False(t, ids[o.ID], "%s has two lines %s", e.Name, o.ID)
		ids[o.ID] = true
		for _, v := range o.Verdicts {
			assert.NotEmpty(t, v.Claims, "%s, line %s claims nothing", e.Name, o.ID)
		}
	}
}

// checkText holds that a text asks for figures that there are.
func checkText(t *testing.T, name string, r *Result) {
	t.Helper()
	figure := func(column string, keys ...string) (string, error) {
		_, err := r.Cell(column, keys...)
		return "1", err
	}
	text, err := template.New(name).Funcs(template.FuncMap{
		"median": figure, "least": figure, "most": figure, "mean": figure, "paper": r.Paper,
	}).Parse(r.Text())
	if !assert.NoError(t, err) {
		return
	}
	assert.NoError(t, text.Execute(io.Discard, nil))
	if differs := text.Lookup("differs"); differs != nil {
		assert.NoError(t, differs.Execute(io.Discard, nil))
	}
}

func TestCheckReportCanFail(t *testing.T) {
	e := few()
	e.Published = Cite("Fig. 1", "case || v\nnowhere || 1")
	e.Lines = []Line{{ID: "A", Says: "so", Check: func(s Seen) []Claim { return AtMost(s.At("v", "nowhere"), 1) }}}
	var probe testing.T
	checkReport(&probe, e)
	assert.True(t, probe.Failed())
	checkReport(t, few())
	e = few()
	e.Text = `{{define "differs"}}{{mean "v" "nowhere"}}{{end}}`
	probe = testing.T{}
	checkReport(&probe, e)
	assert.True(t, probe.Failed())
}
