package experiment

import (
	"fmt"
	"math"
	"slices"
)

// Result is what an experiment measured.
type Result struct {
	Experiment string    `json:"experiment"`
	About      string    `json:"about"`
	Size       Size      `json:"size"`
	Keys       []string  `json:"keys"`
	Columns    []Column  `json:"columns"`
	Cases      []Case    `json:"cases"`
	Lines      []Outcome `json:"lines,omitempty"`

	report Report
}

// Case is one case with a cell for each column.
type Case struct {
	Keys      []string `json:"keys"`
	Cells     []Cell   `json:"cells"`
	Published []Cited  `json:"published,omitempty"`
}

// Cell is one measurement over all seeds, or empty where it does not apply. What did not happen
// within a run is an infinity, and NaN does not apply under one seed.
type Cell []float64

func (c Cell) given() Cell {
	return slices.DeleteFunc(slices.Clone(c), math.IsNaN)
}

// Text is the experiment's own text, a template.
func (r *Result) Text() string { return r.report.Text }

// Spread is the median, the least and the most of a cell that is not empty. Of an even number of
// values the lower one in the middle is the median.
func (c Cell) Spread() (median, least, most float64) {
	s := slices.Sorted(slices.Values(c.given()))
	return s[(len(s)-1)/2], s[0], s[len(s)-1]
}

// Mean of a cell that is not empty; infinite if a value is.
func (c Cell) Mean() float64 {
	c = c.given()
	sum := 0.0
	for _, v := range c {
		sum += v
	}
	return sum / float64(len(c))
}

// Interval is where the mean of infinitely many seeds lies with 95 % confidence, by Student's t:
// NaN of fewer than two seeds, and where a value is infinite.
func (c Cell) Interval() (low, high float64) {
	c = c.given()
	m := c.Mean()
	if len(c) < 2 || math.IsInf(m, 0) {
		return math.NaN(), math.NaN()
	}
	sum := 0.0
	for _, v := range c {
		d := v - m
		sum += float64(d * d) // a conversion rounds, so that no machine fuses it
	}
	n := float64(len(c))
	half := float64(studentT(len(c)-1) * math.Sqrt(sum/(n-1)/n))
	return m - half, m + half
}

// t95 is the 0.975 quantile of Student's t for 1, 2, … degrees of freedom.
var t95 = [...]float64{
	12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314,
	2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
}

// studentT is that quantile; beyond the table by its expansion about the normal's.
func studentT(freedom int) float64 {
	if freedom <= len(t95) {
		return t95[freedom-1]
	}
	v := float64(freedom)
	return 1.959964 + 2.372271/v + 2.822499/(v*v) + 2.555850/(v*v*v)
}

// Cell finds the measurement of a column for the one case that has all these keys.
func (r *Result) Cell(column string, keys ...string) (Cell, error) {
	c, i, err := r.lookup(column, keys)
	if err != nil {
		return nil, err
	}
	if len(c.Cells[i]) == 0 {
		return nil, fmt.Errorf("%s does not apply", what(column, keys))
	}
	return c.Cells[i], nil
}

// Paper is the published figure of a column for the one case that has all these keys.
func (r *Result) Paper(column string, keys ...string) (string, error) {
	c, i, err := r.lookup(column, keys)
	if err != nil {
		return "", err
	}
	if _, ok := c.cited(column); !ok {
		return "", fmt.Errorf("%s is not published", what(column, keys))
	}
	return r.Columns[i].paper(*c), nil
}

// Show writes a value as the table does.
func (r *Result) Show(column string, v float64) string {
	i := slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == column })
	return r.Columns[i].one(v)
}

func (r *Result) lookup(column string, keys []string) (*Case, int, error) {
	i := slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == column })
	var found []*Case
	for k := range r.Cases {
		if c := &r.Cases[k]; c.has(keys) {
			found = append(found, c)
		}
	}
	if i < 0 || len(found) != 1 {
		return nil, 0, fmt.Errorf("%s: there are %d such cases, and must be one column and one case", what(column, keys), len(found))
	}
	return found[0], i, nil
}

// has reports whether a case has all these keys.
func (c *Case) has(keys []string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(c.Keys, k) })
}

// Held is how many lines hold.
func (r *Result) Held() (n int) {
	for _, l := range r.Lines {
		if l.Holds {
			n++
		}
	}
	return n
}
