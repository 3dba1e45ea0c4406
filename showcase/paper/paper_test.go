package paper

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/showcase/experiment"
)

// result of an experiment with one column, a case that ends and one that does not, and a text.
func result(t *testing.T, text string) *experiment.Result {
	t.Helper()
	e := experiment.Experiment{
		Name: "few", About: "Shows | little.", Keys: []string{"case"},
		Columns: []experiment.Column{{Name: "v", Unit: "s", About: "of it", Within: 40}},
		Size:    experiment.Size{Seeds: 3, Replicas: 10, Clients: 1},
		Report:  experiment.Report{Text: text, Published: experiment.Cite("Fig. 1", "case || v\na || 7\nb || TO")},
	}
	e.Add([]string{"a"}, func(_ context.Context, seed uint64) ([]float64, error) { return []float64{float64(seed * seed)}, nil })
	e.Add([]string{"b"}, func(context.Context, uint64) ([]float64, error) { return []float64{math.Inf(1)}, nil })
	e.Add([]string{"c|d"}, func(context.Context, uint64) ([]float64, error) { return []float64{math.NaN()}, nil })
	r, err := experiment.Run(t.Context(), e, experiment.Options{Workers: 1})
	require.NoError(t, err)
	return r
}

func TestNumbersOfATextComeFromTheRun(t *testing.T) {
	files, err := Write([]*experiment.Result{result(t,
		`{{median "v" "a"}} {{least "v" "a"}} {{most "v" "a"}} {{mean "v" "a"}} {{paper "v" "a"}} {{median "v" "b"}} {{paper "v" "b"}}`)})
	require.NoError(t, err)
	require.Len(t, files, 1)
	assert.Equal(t, "paper.md", files[0].Path)
	page := string(files[0].Text)
	assert.Contains(t, page, "\n4 1 9 5 7 >40 >40\n")
	assert.Contains(t, page, "\n| c\\|d | - | - |\n")
	assert.NotContains(t, page, "What does not reproduce")
}

func TestATextMayNotSayWhatWasNotMeasured(t *testing.T) {
	for text, says := range map[string]string{
		`{{median "w" "a"}}`:                          "w of a",
		`{{median "v" "x"}}`:                          "there are 0 such cases",
		`{{median "v"}}`:                              "there are 3 such cases",
		`{{median "v" "c|d"}}`:                        "does not apply",
		`{{paper "v" "c|d"}}`:                         "is not published",
		`{{define "differs"}}{{mean "v" "x"}}{{end}}`: "there are 0 such cases",
		`{{median`:                                    "unclosed action",
	} {
		_, err := Write([]*experiment.Result{result(t, text)})
		require.ErrorContains(t, err, "text of few: ", text)
		assert.ErrorContains(t, err, says, text)
	}
}

func TestPlotName(t *testing.T) {
	assert.Equal(t, "a/b.svg", PlotName("a/b.svg", 0))
	assert.Equal(t, "a/b-2.svg", PlotName("a/b.svg", 1))
}
