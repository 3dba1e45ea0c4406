package experiment

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Line is a statement about the figures that must hold: under every seed, or for the means.
type Line struct {
	ID    string
	Says  string
	Check func(Seen) []Claim
	Mean  bool   // judged once, on the means over the seeds
	Known string // why it is known to fail; empty if it must hold
}

// Outcome is what became of a line.
type Outcome struct {
	ID    string `json:"id"`
	Says  string `json:"says"`
	Known string `json:"known,omitempty"`
	// Missing are cases that the line needs and that were not run: it is not judged.
	Missing  []string  `json:"missing,omitempty"`
	Holds    bool      `json:"holds"`
	Verdicts []Verdict `json:"verdicts"`
}

// Verdict is one judgement of a line. It holds if all claims do.
type Verdict struct {
	Seed   int     `json:"seed,omitempty"` // 0 is the mean
	Holds  bool    `json:"holds"`
	Claims []Claim `json:"claims"`
}

// Fails reports whether a line is judged, fails, and was not known to.
func (o Outcome) Fails() bool { return o.Missing == nil && !o.Holds && o.Known == "" }

// judge evaluates the lines on what was measured.
func (r *Result) judge() {
	for _, l := range r.report.Lines {
		o := Outcome{ID: l.ID, Says: l.Says, Known: l.Known, Holds: true}
		seeds := r.Size.Seeds
		if l.Mean {
			seeds = 1
		}
		for seed := range seeds {
			s := Seen{r, seed, &o.Missing}
			v := Verdict{Seed: seed + 1, Holds: true}
			if l.Mean {
				s.seed, v.Seed = -1, 0
			}
			v.Claims = l.Check(s)
			for _, c := range v.Claims {
				v.Holds = v.Holds && c.Holds
			}
			v.Holds = v.Holds && len(v.Claims) > 0
			o.Holds = o.Holds && v.Holds
			o.Verdicts = append(o.Verdicts, v)
		}
		if o.Missing != nil {
			slices.Sort(o.Missing)
			o.Missing, o.Holds, o.Verdicts = slices.Compact(o.Missing), false, nil
		}
		r.Lines = append(r.Lines, o)
	}
}

// Summary is an outcome in a few words, and why.
func (o Outcome) Summary() (verdict, why string) {
	if o.Missing != nil {
		why = o.Missing[0] + " was not run"
		if n := len(o.Missing) - 1; n > 0 {
			why += fmt.Sprintf(", and %d more", n)
		}
		return "not judged", why
	}
	var failing []string
	var first *Claim
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		if v.Holds {
			continue
		}
		failing = append(failing, strconv.Itoa(v.Seed))
		for k := range v.Claims {
			if c := &v.Claims[k]; first == nil && !c.Holds {
				first = c
			}
		}
	}
	mean := o.Verdicts[0].Seed == 0
	switch n := len(o.Verdicts); {
	case o.Holds && mean:
		verdict = "holds in the mean"
	case o.Holds:
		verdict = fmt.Sprintf("holds %d/%d", n, n)
	case mean:
		verdict = "FAILS in the mean"
	case len(failing) == 1:
		verdict = "FAILS in seed " + failing[0]
	default:
		verdict = "FAILS in seeds " + strings.Join(failing, ", ")
	}
	if first != nil {
		why = first.String()
	}
	switch {
	case o.Known != "" && o.Holds:
		why = "it was known to fail: " + o.Known
	case o.Known != "":
		why += " (known: " + o.Known + ")"
	}
	return verdict, strings.TrimSpace(why)
}

// WriteLines writes the outcome of each line for people, and nothing if there are none.
func (r *Result) WriteLines(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, o := range r.Lines {
		verdict, why := o.Summary()
		if why != "" {
			why = ": " + why
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", o.ID, verdict, o.Says, why)
	}
	return w.Flush()
}
