package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/headroom-lb/headroom/showcase/plot"
)

// Plot describes a picture of an experiment's figures.
type Plot struct {
	Title  string
	About  string   // what to see in it
	X      string   // the key along x: an axis if its values begin with numbers, else rows
	XLabel string   // of the axis; empty is the key
	Series string   // the key that tells series apart; empty for one series
	Y      []string // columns, a panel for each
	Where  []string // only cases that have these keys; empty for all
	Lead   string   // the series to look at
	LogX   bool
	LogY   bool
}

// Figures draws the experiment's plots.
func (r *Result) Figures() []plot.Figure {
	var out []plot.Figure
	for _, p := range r.report.Plots {
		out = append(out, r.figure(p))
	}
	return out
}

func (r *Result) figure(p Plot) plot.Figure {
	f := plot.Figure{Title: p.Title, About: p.About}
	var columns []int
	for _, name := range p.Y {
		columns = append(columns, slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == name }))
	}
	cases := slices.DeleteFunc(slices.Clone(r.Cases), func(c Case) bool {
		return !c.has(p.Where) || !slices.ContainsFunc(columns, func(i int) bool { return len(c.Cells[i]) > 0 })
	})
	x, series := slices.Index(r.Keys, p.X), slices.Index(r.Keys, p.Series)
	var rows []string
	numbers := true
	for _, c := range cases {
		if !slices.Contains(rows, c.Keys[x]) {
			rows = append(rows, c.Keys[x])
		}
		_, ok := leading(c.Keys[x])
		numbers = numbers && ok
	}
	for _, i := range columns {
		col := r.Columns[i]
		panel := plot.Panel{Title: col.Name + ", " + col.Unit, Y: plot.Axis{Log: p.LogY, Beyond: col.one(math.Inf(1))}}
		if numbers {
			panel.X = plot.Axis{Label: p.X, Log: p.LogX}
			if p.XLabel != "" {
				panel.X.Label = p.XLabel
			}
		} else {
			panel.Rows = rows
		}
		for _, c := range cases {
			at := float64(slices.Index(rows, c.Keys[x]))
			if numbers {
				at, _ = leading(c.Keys[x])
			}
			name := r.Experiment
			if series >= 0 {
				name = c.Keys[series]
			}
			k := slices.IndexFunc(panel.Series, func(s plot.Series) bool { return s.Name == name })
			if k < 0 {
				k = len(panel.Series)
				panel.Series = append(panel.Series, plot.Series{Name: name, Lead: name == p.Lead})
			}
			panel.Series[k].Points = append(panel.Series[k].Points, c.point(at, i, col))
		}
		for k := range panel.Series {
			slices.SortStableFunc(panel.Series[k].Points, func(a, b plot.Point) int { return cmp.Compare(a.X, b.X) })
		}
		f.Panels = append(f.Panels, panel)
	}
	f.Note = r.note()
	return f
}

// point is a case's measurement: its mean with the interval, or its median where there is no mean,
// and the paper's figure.
func (c *Case) point(x float64, i int, col Column) plot.Point {
	p := plot.Point{X: x, Y: plot.Nothing, Low: plot.Nothing, High: plot.Nothing, Published: plot.Nothing}
	if cell := c.Cells[i]; len(cell) > 0 {
		p.Y = cell.Mean()
		p.Low, p.High = cell.Interval()
		if col.Within > 0 {
			p.High = min(p.High, col.Within) // no mean is beyond
		}
		if math.IsInf(p.Y, 1) { // under some seeds it did not end
			p.Y, _, _ = cell.Spread()
		}
	}
	if cited, ok := c.cited(col.Name); ok {
		p.Published = cited.Value
	}
	return p
}

// note says what the marks are.
func (r *Result) note() string {
	s := r.Size
	text := fmt.Sprintf("%d replicas, %d clients. ", s.Replicas, s.Clients)
	if s.Seeds > 1 {
		text += fmt.Sprintf("Means of %d seeds with 95 %% intervals", s.Seeds)
		if slices.ContainsFunc(r.Cases, Case.unended) {
			text += "; medians where under some seed it did not end"
		}
		text += "."
	} else {
		text += "One seed."
	}
	if sources := r.Sources(); len(sources) > 0 {
		text += " Published: " + strings.Join(sources, ", ") + "."
	}
	return text
}

// unended reports whether something did not end under a seed.
func (c Case) unended() bool {
	return slices.ContainsFunc(c.Cells, func(cell Cell) bool {
		return slices.ContainsFunc(cell, func(v float64) bool { return math.IsInf(v, 1) })
	})
}

// leading reads the number that a key begins with, as in "70 %".
func leading(key string) (float64, bool) {
	first, _, _ := strings.Cut(key, " ")
	v, err := strconv.ParseFloat(first, 64)
	return v, err == nil
}
