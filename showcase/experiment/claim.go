package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Seen is what a line is judged on: the figures of one seed, or the means.
type Seen struct {
	r       *Result
	seed    int // from 0; -1 is the mean
	missing *[]string
}

// Value is a figure, and what it is a figure of.
type Value struct {
	What string
	V    float64 // an infinity did not end; NaN does not apply, or was not run
}

// At is the value of a column for the one case that has all these keys.
func (s Seen) At(column string, keys ...string) Value {
	vs := s.Each(column, keys...)
	if len(vs) == 1 {
		return vs[0]
	}
	if len(vs) > 1 {
		*s.missing = append(*s.missing, fmt.Sprintf("which of %d cases that are %s", len(vs), strings.Join(keys, ", ")))
	}
	return Value{what(column, keys), math.NaN()}
}

// Each is the values of a column for all cases that have these keys, in their order.
func (s Seen) Each(column string, keys ...string) []Value {
	col := slices.IndexFunc(s.r.Columns, func(c Column) bool { return c.Name == column })
	var out []Value
	for _, c := range s.r.Cases {
		if col < 0 || !c.has(keys) {
			continue
		}
		v := Value{what(column, c.Keys), math.NaN()}
		switch cell := c.Cells[col]; {
		case s.seed < 0 && len(cell) > 0:
			v.V = cell.Mean()
		case s.seed >= 0 && s.seed < len(cell):
			v.V = cell[s.seed]
		}
		out = append(out, v)
	}
	if out == nil {
		*s.missing = append(*s.missing, what(column, keys))
	}
	return out
}

func what(column string, keys []string) string { return column + " of " + strings.Join(keys, ", ") }

// Over is a ratio. Of two that did not end, or two zeroes, it is NaN, of which no claim holds.
func (v Value) Over(by Value) Value { return Value{v.What + " / " + by.What, v.V / by.V} }

// Claim is a comparison of a value with a bound.
type Claim struct {
	What     string
	Value    float64
	Relation string // <= or >=
	Bound    float64
	Holds    bool
}

// AtMost claims that a value is at most a bound.
func AtMost(v Value, bound float64) []Claim {
	return []Claim{{v.What, v.V, "<=", bound, v.V <= bound}}
}

// AtLeast claims that a value is at least a bound.
func AtLeast(v Value, bound float64) []Claim {
	return []Claim{{v.What, v.V, ">=", bound, v.V >= bound}}
}

// EachAtMost claims it for all values.
func EachAtMost(vs []Value, bound float64) (out []Claim) {
	for _, v := range vs {
		out = append(out, AtMost(v, bound)...)
	}
	return out
}

// EachAtLeast claims it for all values.
func EachAtLeast(vs []Value, bound float64) (out []Claim) {
	for _, v := range vs {
		out = append(out, AtLeast(v, bound)...)
	}
	return out
}

// NotRising claims that no value is more than its predecessor and so much of it, such as 0.05.
func NotRising(vs []Value, slack float64) (out []Claim) {
	for i := 1; i < len(vs); i++ {
		out = append(out, AtMost(vs[i], vs[i-1].V*(1+slack))...)
	}
	return out
}

// AllOf claims all of them.
func AllOf(claims ...[]Claim) []Claim { return slices.Concat(claims...) }

func (c Claim) String() string {
	relation := c.Relation
	if !c.Holds { // say what is the case
		relation = map[string]string{"<=": ">", ">=": "<"}[c.Relation]
	}
	if math.IsNaN(c.Value) || math.IsNaN(c.Bound) {
		relation = "is not " + c.Relation
	}
	return brief(c.Value) + " " + relation + " " + brief(c.Bound) + ", " + c.What
}

// brief writes a figure with four significant digits.
func brief(v float64) string {
	switch {
	case math.IsNaN(v):
		return "no value"
	case math.IsInf(v, 0):
		return "never"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// MarshalJSON gives null for what did not end or does not apply.
func (c Claim) MarshalJSON() ([]byte, error) {
	b := quoted([]byte(`{"what":`), c.What)
	b = number(append(b, `,"value":`...), c.Value)
	b = quoted(append(b, `,"relation":`...), c.Relation)
	b = number(append(b, `,"bound":`...), c.Bound)
	b = strconv.AppendBool(append(b, `,"holds":`...), c.Holds)
	return append(b, '}'), nil
}
