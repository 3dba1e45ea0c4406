package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Published is a figure of the paper for one case and column.
type Published struct {
	Case   []string
	Column string
	Value  float64 // an infinity is the paper's time-out
	Source string  // where it stands, such as Fig. 7
}

// Cite reads figures of the paper from a table: names of keys, two bars, names of columns; then
// a line for each case. TO is a time-out, and a dash is not given. It panics at a table that it
// cannot read, which is a mistake in the program.
//
//	Cite("Fig. 7", `
//		load | rule   || p90 | p99
//		70 % | random || 294 | TO
//	`)
func Cite(source, table string) []Published {
	var out []Published
	var columns []string
	keys := 0
	for line := range strings.Lines(table) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		left, right, ok := strings.Cut(line, "||")
		names, values := cellsOf(left), cellsOf(right)
		if columns == nil && ok {
			columns, keys = values, len(names)
			continue
		}
		if !ok || len(names) != keys || len(values) != len(columns) {
			panic(fmt.Sprintf("%s: %q does not fit the table's head", source, line))
		}
		for i, text := range values {
			if text == "-" {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			if text == "TO" {
				v, err = math.Inf(1), nil
			}
			if err != nil {
				panic(fmt.Sprintf("%s: %q: %v", source, line, err))
			}
			out = append(out, Published{names, columns[i], v, source})
		}
	}
	return out
}

func cellsOf(line string) []string {
	cs := strings.Split(line, "|")
	for i := range cs {
		cs[i] = strings.TrimSpace(cs[i])
	}
	return cs
}

// Cited is a published figure beside ours.
type Cited struct {
	Column string
	Value  float64
	Source string
}

// MarshalJSON gives null for a time-out.
func (c Cited) MarshalJSON() ([]byte, error) {
	b := quoted([]byte(`{"column":`), c.Column)
	b = number(append(b, `,"value":`...), c.Value)
	b = quoted(append(b, `,"source":`...), c.Source)
	return append(b, '}'), nil
}

// cite puts the published figures to their cases.
func (r *Result) cite() {
	for i := range r.Cases {
		c := &r.Cases[i]
		for _, col := range r.Columns {
			for _, p := range r.report.Published {
				if p.Column == col.Name && slices.Equal(p.Case, c.Keys) {
					c.Published = append(c.Published, Cited{p.Column, p.Value, p.Source})
				}
			}
		}
	}
}

// cited finds the published figure for a column.
func (c *Case) cited(column string) (Cited, bool) {
	i := slices.IndexFunc(c.Published, func(p Cited) bool { return p.Column == column })
	if i < 0 {
		return Cited{}, false
	}
	return c.Published[i], true
}

// citing tells for each column whether a case has a published figure.
func (r *Result) citing() []bool {
	out := make([]bool, len(r.Columns))
	for i, col := range r.Columns {
		out[i] = slices.ContainsFunc(r.Cases, func(c Case) bool { _, ok := c.cited(col.Name); return ok })
	}
	return out
}
