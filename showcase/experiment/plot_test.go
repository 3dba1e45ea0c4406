package experiment

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/showcase/plot"
)

// A plot has a panel for each column, a series for each value of its key, and the points that
// were measured.
func TestFiguresInRows(t *testing.T) {
	r := cited()
	r.report.Plots = []Plot{
		{Title: "A", About: "b", X: "situation", Series: "rule", Y: []string{"failed", "back"}, Lead: "on", LogY: true},
		{X: "situation", Y: []string{"back"}, Where: []string{"on"}},
		{X: "situation", Series: "rule", Y: []string{"back"}},
	}
	fs := r.Figures()
	require.Len(t, fs, 3)
	assert.Equal(t, "A", fs[0].Title)
	assert.Equal(t, "b", fs[0].About)
	assert.Equal(t, "10 replicas, 5 clients. Means of 3 seeds with 95 % intervals; medians where under some seed it did not end. Published: Fig. 7.", fs[0].Note)
	require.Len(t, fs[0].Panels, 2)
	failed, back := fs[0].Panels[0], fs[0].Panels[1]
	assert.Equal(t, "failed, %", failed.Title)
	assert.Equal(t, []string{"calm", "storm"}, failed.Rows)
	assert.True(t, failed.Y.Log)
	assert.Equal(t, "timeout", back.Y.Beyond)
	require.Len(t, failed.Series, 2)
	assert.Equal(t, []string{"off", "on"}, []string{failed.Series[0].Name, failed.Series[1].Name})
	assert.Equal(t, []bool{false, true}, []bool{failed.Series[0].Lead, failed.Series[1].Lead})
	on := failed.Series[1].Points
	require.Len(t, on, 2)
	assert.InDeltaSlice(t, []float64{0, 4.25, 2.25}, []float64{on[0].X, on[0].Y, on[0].Published}, 1e-9)
	assert.Less(t, on[0].Low, 4.25)
	assert.Greater(t, on[0].High, 4.25)
	assert.InDelta(t, 1, on[1].X, 0)
	assert.True(t, math.IsNaN(on[1].Published))
	// 3, never, 2: there is no mean, so it is the median, without an interval.
	on = back.Series[1].Points
	assert.InDelta(t, 3, on[0].Y, 0)
	assert.True(t, math.IsNaN(on[0].Low) && math.IsNaN(on[0].High))
	assert.True(t, math.IsInf(on[0].Published, 1) && math.IsInf(on[1].Y, 1))

	require.Len(t, fs[1].Panels[0].Series, 1)
	assert.Equal(t, "sample", fs[1].Panels[0].Series[0].Name)
	assert.Len(t, fs[1].Panels[0].Series[0].Points, 2)
	// What does not apply is left out, with its row.
	require.Len(t, fs[2].Panels[0].Series, 1)
	assert.Equal(t, "on", fs[2].Panels[0].Series[0].Name)
}

func TestFiguresAlongNumbers(t *testing.T) {
	r := &Result{
		Size: Size{Seeds: 2}, Keys: []string{"load"}, Columns: []Column{{Name: "back", Within: 10}},
		Cases:  []Case{{Keys: []string{"70 %"}, Cells: []Cell{{2, 9}}}, {Keys: []string{"0.5"}, Cells: []Cell{{1, 1}}}},
		report: Report{Plots: []Plot{{X: "load", XLabel: "load, %", Y: []string{"back"}, LogX: true}}},
	}
	p := r.Figures()[0].Panels[0]
	assert.Nil(t, p.Rows)
	assert.Equal(t, plot.Axis{Label: "load, %", Log: true}, p.X)
	assert.Equal(t, ">10", p.Y.Beyond)
	pts := p.Series[0].Points
	assert.InDeltaSlice(t, []float64{0.5, 70}, []float64{pts[0].X, pts[1].X}, 0, "in their order along the axis")
	assert.InDelta(t, 10, pts[1].High, 0, "no mean is beyond what was looked at")
	r.report.Plots[0].X, r.Cases[0].Keys[0] = "load", "low"
	assert.Equal(t, []string{"low", "0.5"}, r.Figures()[0].Panels[0].Rows)
}
