package experiment

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// MarshalJSON gives the spread and the value of each seed, in order; null for what did not happen
// within a run, and for an empty cell.
func (c Cell) MarshalJSON() ([]byte, error) {
	if len(c) == 0 {
		return []byte("null"), nil
	}
	median, least, most := c.Spread()
	b := []byte(`{"median":`)
	b = number(b, median)
	b = number(append(b, `,"least":`...), least)
	b = number(append(b, `,"most":`...), most)
	b = append(b, `,"seeds":[`...)
	for i, v := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = number(b, v)
	}
	return append(b, "]}"...), nil
}

func number(b []byte, v float64) []byte {
	if math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// WriteTable writes the medians for people, with the least and the most over the seeds where
// they differ. A dash does not apply, and ">40" did not happen within those seconds.
func (r *Result) WriteTable(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	head := slices.Clone(r.Keys)
	for _, c := range r.Columns {
		head = append(head, c.Name+" "+c.Unit)
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	last := ""
	for _, c := range r.Cases {
		line := slices.Clone(c.Keys)
		if line[0] == last {
			line[0] = "" // of the same group
		}
		last = c.Keys[0]
		for i, cell := range c.Cells {
			line = append(line, r.Columns[i].text(cell))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

func (c Column) text(cell Cell) string {
	if len(cell) == 0 {
		return "-"
	}
	one := func(v float64) string {
		if math.IsInf(v, 1) {
			return fmt.Sprintf(">%g", c.Within)
		}
		return strconv.FormatFloat(v, 'f', c.digits, 64)
	}
	median, least, most := cell.Spread()
	if one(least) == one(most) {
		return one(median)
	}
	return fmt.Sprintf("%s (%s..%s)", one(median), one(least), one(most))
}

// WriteCSV writes a line for each case and seed. Empty does not apply; "never" did not happen
// within a run.
func (r *Result) WriteCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	head := append(slices.Clone(r.Keys), "seed")
	for _, c := range r.Columns {
		head = append(head, c.Name+" "+c.Unit)
	}
	_ = w.Write(head) // an error stays until Error
	for _, c := range r.Cases {
		for seed := range r.Size.Seeds {
			line := append(slices.Clone(c.Keys), strconv.Itoa(seed+1))
			for _, cell := range c.Cells {
				line = append(line, cell.at(seed))
			}
			_ = w.Write(line)
		}
	}
	w.Flush()
	return w.Error()
}

func (c Cell) at(seed int) string {
	switch {
	case seed >= len(c):
		return ""
	case math.IsInf(c[seed], 1):
		return "never"
	}
	return strconv.FormatFloat(c[seed], 'g', -1, 64)
}
