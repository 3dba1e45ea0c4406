package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A journal is a file of lines of JSON: a [Header], then a [Record] for each finished run, in any
// order. Whatever wrote it, the runs in it need not be done again.

// journalFormat is the version of the file format.
const journalFormat = 1

// Header says what the runs in a journal are runs of.
type Header struct {
	Format      int     `json:"journal"`
	Build       string  `json:"build"` // of engine, simulator and experiments
	Experiments []Scope `json:"experiments"`
}

// Scope is an experiment and the size of its worlds. Seeds are not part of it: a journal of three
// seeds serves a run of five.
type Scope struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	Clients  int    `json:"clients"`
}

// Header of a journal for this study. Cases that are left out still have a place in it.
func (s *Study) Header(build string) Header {
	return Header{Format: journalFormat, Build: build, Experiments: s.scope}
}

// Line is the header as a line of a journal.
func (h Header) Line() []byte {
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(b, '\n')
}

// ErrJournal says that a journal cannot be used here.
var ErrJournal = errors.New("not a journal of this run")

// serves checks that runs of a journal are runs of a study; all of its experiments, if the journal
// is to take new ones too.
func (h Header) serves(want Header, all bool) error {
	if h.Format != journalFormat {
		return fmt.Errorf("%w: its format is %d, and this program knows %d; start a new file", ErrJournal, h.Format, journalFormat)
	}
	if h.Build != want.Build {
		return fmt.Errorf("%w: it is of build %s, and this program is build %s; use the program that wrote it, or start a new file",
			ErrJournal, h.Build, want.Build)
	}
	names := func(ss []Scope) string {
		var out []string
		for _, s := range ss {
			out = append(out, s.Name)
		}
		return strings.Join(out, ", ")
	}
	shared := 0
	for _, w := range want.Experiments {
		i := slices.IndexFunc(h.Experiments, func(s Scope) bool { return s.Name == w.Name })
		if i < 0 {
			continue
		}
		shared++
		if got := h.Experiments[i]; got != w {
			return fmt.Errorf("%w: it is of %s with %d replicas and %d clients, and this run has %d and %d; give --replicas %d --clients %d, or start a new file",
				ErrJournal, w.Name, got.Replicas, got.Clients, w.Replicas, w.Clients, got.Replicas, got.Clients)
		}
	}
	if shared == 0 || all && shared < len(want.Experiments) {
		return fmt.Errorf("%w: it is of %s, and this run is of %s; start a new file",
			ErrJournal, names(h.Experiments), names(want.Experiments))
	}
	return nil
}

// Record is one finished run.
type Record struct {
	Experiment string
	Case       []string
	Seed       int
	Values     []float64
	Cost       int64 // nanoseconds of a worker
}

// record is its JSON.
type record struct {
	Experiment string   `json:"experiment"`
	Case       []string `json:"case"`
	Seed       int      `json:"seed"`
	Values     []value  `json:"values"`
	Cost       int64    `json:"ns"`
}

// value is null where it does not apply, and "never" where it did not happen.
type value float64

func (v value) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(v), 0) {
		return []byte(`"never"`), nil
	}
	return number(nil, float64(v)), nil
}

func (v *value) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null":
		*v = value(math.NaN())
		return nil
	case `"never"`:
		*v = value(math.Inf(1))
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	*v = value(f)
	return err
}

// Line is the record as a line of a journal. Its values are exact.
func (r Record) Line() []byte {
	out := record{r.Experiment, r.Case, r.Seed, make([]value, len(r.Values)), r.Cost}
	for i, v := range r.Values {
		out.Values[i] = value(v)
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(b, '\n')
}

// Take reads a journal into the study and gives how many of its bytes are whole: what follows is
// a line that was torn when its writer ended, and must be cut off before more is written. An
// empty journal, or one whose header was torn, has none. All asks for a journal that can take
// every run of the study, as one that is written to must.
func (s *Study) Take(journal []byte, build string, all bool) (whole int, err error) {
	first := true
	for number := 1; whole < len(journal); number++ {
		line, _, ended := bytes.Cut(journal[whole:], []byte("\n"))
		last := whole+len(line)+1 >= len(journal)
		if first {
			var h Header
			err := json.Unmarshal(line, &h)
			switch start := []byte(`{"journal":`); {
			case err == nil && h.Format > 0:
			case !ended && bytes.HasPrefix(start, line[:min(len(line), len(start))]):
				return 0, nil // torn
			default:
				return 0, fmt.Errorf("%w: it does not begin like one; give the name of a journal, or of a new file", ErrJournal)
			}
			if err := h.serves(s.Header(build), all); err != nil {
				return 0, err
			}
			if !ended {
				return 0, nil
			}
			first = false
		} else {
			r, err := parseRecord(line)
			if err != nil || !ended {
				if last {
					return whole, nil // torn
				}
				return 0, fmt.Errorf("%w: line %d is damaged (%v); delete that line, and its run is done again", ErrJournal, number, err)
			}
			if err := s.take(r); err != nil {
				return 0, fmt.Errorf("%w: line %d: %w", ErrJournal, number, err)
			}
		}
		whole += len(line) + 1
	}
	return whole, nil
}

func parseRecord(line []byte) (Record, error) {
	var in record
	if err := json.Unmarshal(line, &in); err != nil {
		return Record{}, err
	}
	r := Record{in.Experiment, in.Case, in.Seed, make([]float64, len(in.Values)), in.Cost}
	for i, v := range in.Values {
		r.Values[i] = float64(v)
	}
	return r, nil
}

// take puts a run in its place. One that this study does not ask for is left out.
func (s *Study) take(r Record) error {
	i := slices.IndexFunc(s.parts, func(p *part) bool { return p.Name == r.Experiment })
	if i < 0 {
		return nil
	}
	p := s.parts[i]
	c, ok := p.find[joined(r.Case)]
	if !ok || r.Seed < 1 || r.Seed > p.size.Seeds {
		return nil
	}
	if len(r.Values) != len(p.Columns) {
		return fmt.Errorf("%d values for %d columns", len(r.Values), len(p.Columns))
	}
	slot := c*p.size.Seeds + r.Seed - 1
	if have := p.values[slot]; have != nil && !slices.EqualFunc(have, r.Values, same) {
		return fmt.Errorf("%s was measured before with other figures: the journals are not of one build", task{of: p, index: slot})
	}
	p.values[slot], p.cost[slot] = r.Values, r.Cost
	return nil
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
