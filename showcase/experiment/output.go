package experiment

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// MarshalJSON gives the spread, the mean with its 95 % interval and the value of each seed, in
// order; null for what did not happen within a run, for an interval of one seed, and for an empty
// cell.
func (c Cell) MarshalJSON() ([]byte, error) {
	if len(c) == 0 {
		return []byte("null"), nil
	}
	median, least, most := c.Spread()
	b := []byte(`{"median":`)
	b = number(b, median)
	b = number(append(b, `,"least":`...), least)
	b = number(append(b, `,"most":`...), most)
	low, high := c.Interval()
	b = number(append(b, `,"mean":`...), c.Mean())
	b = number(append(b, `,"low":`...), low)
	b = number(append(b, `,"high":`...), high)
	b = append(b, `,"seeds":[`...)
	for i, v := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = number(b, v)
	}
	return append(b, "]}"...), nil
}

func quoted(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		panic(err) // any string has a JSON
	}
	return append(b, q...)
}

func number(b []byte, v float64) []byte {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Table is the result for people: a head, and a row for each case. A cell is the median, with the
// least and the most over the seeds where they differ. A dash does not apply, and ">40" did not
// happen within those seconds. After a column that the paper has figures of stand those.
func (r *Result) Table() (head []string, rows [][]string) {
	citing := r.citing()
	head = slices.Clone(r.Keys)
	for i, c := range r.Columns {
		head = append(head, c.Name+" "+c.Unit)
		if citing[i] {
			head = append(head, "paper")
		}
	}
	last := ""
	for _, c := range r.Cases {
		row := slices.Clone(c.Keys)
		if row[0] == last && len(row) > 1 {
			row[0] = "" // of the same group
		}
		last = c.Keys[0]
		for i, cell := range c.Cells {
			row = append(row, r.Columns[i].text(cell))
			if citing[i] {
				row = append(row, r.Columns[i].paper(c))
			}
		}
		rows = append(rows, row)
	}
	return head, rows
}

// WriteTable writes the table in aligned columns.
func (r *Result) WriteTable(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	head, rows := r.Table()
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func (c Column) text(cell Cell) string {
	if len(cell) == 0 {
		return "-"
	}
	median, least, most := cell.Spread()
	if c.one(least) == c.one(most) {
		return c.one(median)
	}
	return fmt.Sprintf("%s (%s..%s)", c.one(median), c.one(least), c.one(most))
}

func (c Column) one(v float64) string {
	switch {
	case !math.IsInf(v, 1):
		return strconv.FormatFloat(v, 'f', c.digits, 64)
	case c.Beyond != "":
		return c.Beyond
	}
	return fmt.Sprintf(">%g", c.Within)
}

// paper is a published figure as the paper writes it.
func (c Column) paper(of Case) string {
	p, ok := of.cited(c.Name)
	switch {
	case !ok:
		return "-"
	case math.IsInf(p.Value, 1):
		return c.one(p.Value)
	}
	return strconv.FormatFloat(p.Value, 'f', -1, 64)
}

// Sources lists where the published figures stand, each once.
func (r *Result) Sources() []string {
	var out []string
	for _, c := range r.Cases {
		for _, p := range c.Published {
			if !slices.Contains(out, p.Source) {
				out = append(out, p.Source)
			}
		}
	}
	return out
}

// WriteCSV writes a line for each case and seed. Empty does not apply; "never" did not happen
// within a run.
func (r *Result) WriteCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	citing := r.citing()
	head := append(slices.Clone(r.Keys), "seed")
	for i, c := range r.Columns {
		head = append(head, c.Name+" "+c.Unit)
		if citing[i] {
			head = append(head, c.Name+" "+c.Unit+" paper")
		}
	}
	_ = w.Write(head) // an error stays until Error
	for _, c := range r.Cases {
		for seed := range r.Size.Seeds {
			line := append(slices.Clone(c.Keys), strconv.Itoa(seed+1))
			for i, cell := range c.Cells {
				line = append(line, cell.at(seed))
				if citing[i] {
					var paper Cell
					if p, ok := c.cited(r.Columns[i].Name); ok {
						paper = Cell{p.Value}
					}
					line = append(line, paper.at(0))
				}
			}
			_ = w.Write(line)
		}
	}
	w.Flush()
	return w.Error()
}

func (c Cell) at(seed int) string {
	switch {
	case seed >= len(c) || math.IsNaN(c[seed]):
		return ""
	case math.IsInf(c[seed], 1):
		return "never"
	}
	return strconv.FormatFloat(c[seed], 'g', -1, 64)
}
