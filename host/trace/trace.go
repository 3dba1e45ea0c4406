// Package trace reads what a machine was asked, as JSON lines, plays it on any machine, and
// prints what that answers. Instants are integer nanoseconds on the recorder's
// clock; endpoints go by name.
package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
)

// Op is one line of a trace. Which fields it may have depends on Op.
type Op struct {
	Op          string     `json:"op"`
	Spec        string     `json:"spec,omitempty"`
	Salt        uint64     `json:"salt,omitempty"`
	At          *int64     `json:"at,omitempty"`
	Endpoints   []Endpoint `json:"endpoints,omitempty"`
	Endpoint    string     `json:"endpoint,omitempty"`
	Status      string     `json:"status,omitempty"`
	RIF         *uint32    `json:"rif,omitempty"`
	LatencyNS   *int64     `json:"latency_ns,omitempty"` // absent: unknown
	Asked       *int64     `json:"asked,omitempty"`      // absent: at
	Key         string     `json:"key,omitempty"`
	KeyHash     string     `json:"key_hash,omitempty"` // in place of key: 16 hexadecimal digits
	Tried       []string   `json:"tried,omitempty"`
	Answers     []Answer   `json:"answers,omitempty"`   // to the query's own probes
	Placement   *int       `json:"placement,omitempty"` // of a done: the decide line, counted from 0
	Outcome     string     `json:"outcome,omitempty"`
	Utilization *uint32    `json:"utilization,omitempty"` // parts per 10,000
	QPS         *uint32    `json:"qps,omitempty"`         // thousandths
	EPS         *uint32    `json:"eps,omitempty"`         // thousandths
	Block       []byte     `json:"block,omitempty"`       // a state block, in base64
	Open        []Open     `json:"open,omitempty"`        // queries in flight
	// Want is what the recorded machine answered to a decide or probes line, as the output has it
	// but without the placement.
	Want json.RawMessage `json:"want,omitempty"`
	Line int             `json:"-"`
}

// Open says how many queries are in flight on an endpoint.
type Open struct {
	Endpoint string `json:"endpoint"`
	Queries  uint32 `json:"queries"`
}

// Answer is a probe's answer in a decide line.
type Answer struct {
	Endpoint  string `json:"endpoint"`
	RIF       uint32 `json:"rif"`
	LatencyNS *int64 `json:"latency_ns,omitempty"` // absent: unknown
	Asked     *int64 `json:"asked,omitempty"`      // absent: at
}

// Endpoint is a replica in an endpoints line.
type Endpoint struct {
	Name     string `json:"name"`
	Weight   uint32 `json:"weight,omitempty"`
	Priority uint8  `json:"priority,omitempty"`
	Locality string `json:"locality,omitempty"`
	Status   string `json:"status,omitempty"`
}

// The operations of a trace.
const (
	OpSpec      = "spec"
	OpEndpoints = "endpoints"
	OpStatus    = "status"
	OpReading   = "reading"
	OpLoad      = "load"
	OpForget    = "forget"
	OpDecide    = "decide"
	OpDone      = "done"
	OpProbes    = "probes"
	OpState     = "state"
	OpInFlight  = "in_flight"
)

// MaxLine bounds a line of a trace.
const MaxLine = 1 << 22

// LineError says where a trace is wrong.
type LineError struct {
	File   string
	Line   int
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// Read parses a whole trace. The first line that is not right stops it with a [LineError]
// under the given name of the file. Blank lines and lines that start with # are passed over.
func Read(file string, r io.Reader) ([]Op, error) {
	var ops []Op
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), MaxLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		op, err := parse(text)
		if err == nil {
			err = op.check(len(ops) == 0)
		}
		if err != nil {
			return nil, &LineError{file, n, err.Error()}
		}
		op.Line = n
		ops = append(ops, op)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &LineError{file, n + 1, fmt.Sprintf("longer than %d bytes", MaxLine)}
	} else if err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return nil, &LineError{file, n + 1, "empty; a trace starts with a spec line"}
	}
	return ops, nil
}

func parse(text []byte) (op Op, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&op); err != nil {
		return op, fmt.Errorf("not a trace line: %s", reason(err))
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
		return op, fmt.Errorf("not a trace line: %.20q after its end", rest)
	}
	return op, checkKeys(text, op.Op)
}

// reason says what a person can mend, without names of ours.
func reason(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	want := map[reflect.Kind]string{
		reflect.Uint8: "a whole number from 0 to 255", reflect.Uint32: "a whole number from 0 to 4294967295",
		reflect.Uint64: "a whole number, not negative", reflect.Int64: "a whole number", reflect.Int: "a whole number",
		reflect.String: "text in quotes", reflect.Slice: "a list", reflect.Struct: "an object",
	}[wrong.Type.Kind()]
	if wrong.Field == "" {
		return "want an object, not " + wrong.Value
	}
	return fmt.Sprintf("%q is %s, want %s", wrong.Field, wrong.Value, want)
}

// fields are the keys that each operation may have, besides op and at.
var fields = map[string][]string{
	OpSpec: {"spec", "salt"}, OpEndpoints: {"endpoints"}, OpStatus: {"endpoint", "status"},
	OpReading: {"endpoint", "rif", "latency_ns", "asked"}, OpForget: {"endpoint", "asked"},
	OpLoad:   {"endpoint", "utilization", "qps", "eps"},
	OpDecide: {"key", "key_hash", "tried", "answers", "want"}, OpDone: {"placement", "endpoint", "outcome", "latency_ns"},
	OpProbes: {"want"}, OpState: {"block"}, OpInFlight: {"open"},
}

// checkKeys refuses what the decoder lets pass: a key twice, in another case, or of another
// operation. A field that is silently not used is a mistake that nobody finds.
func checkKeys(text []byte, op string) error {
	allowed, known := fields[op]
	if !known {
		return fmt.Errorf("no op %q; want spec, endpoints, status, reading, load, forget, decide, done, probes, state or in_flight", op)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		switch {
		case seen[key]:
			return fmt.Errorf("%q stands twice", key)
		case key != "op" && (key != "at" || op == OpSpec) && !slices.Contains(allowed, key):
			return fmt.Errorf("%s has no %q", op, key)
		}
		seen[key] = true
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return err
		}
	}
	return nil
}

// check tells whether an operation has what it needs.
func (o *Op) check(first bool) error {
	if first != (o.Op == OpSpec) {
		if first {
			return errors.New(`the first line must be {"op":"spec","spec":"..."}`)
		}
		return errors.New("a second spec line")
	}
	if o.Op != OpSpec && o.At == nil {
		return fmt.Errorf("%q without at", o.Op)
	}
	missing := func(name string) error { return fmt.Errorf("%s without %s", o.Op, name) }
	switch o.Op {
	case OpSpec:
		if o.Spec == "" {
			return missing("spec")
		}
	case OpEndpoints:
		for _, ep := range o.Endpoints {
			if ep.Name == "" {
				return errors.New("an endpoint without a name")
			}
			if _, ok := engine.ParseStatus(ep.Status); !ok {
				return fmt.Errorf("endpoint %q: no status %q; want ready, draining or unavailable", ep.Name, ep.Status)
			}
		}
	case OpStatus:
		if o.Endpoint == "" {
			return missing("endpoint")
		}
		if o.Status == "" {
			return missing("status")
		}
		if _, ok := engine.ParseStatus(o.Status); !ok {
			return fmt.Errorf("no status %q; want ready, draining or unavailable", o.Status)
		}
	case OpReading:
		if o.Endpoint == "" {
			return missing("endpoint")
		}
		if o.RIF == nil {
			return missing("rif")
		}
		if o.LatencyNS != nil && *o.LatencyNS < 0 {
			return errors.New("latency_ns below 0; leave it out where it is unknown")
		}
	case OpLoad:
		if o.Endpoint == "" {
			return missing("endpoint")
		}
		if o.QPS == nil {
			return missing("qps")
		}
	case OpForget:
		if o.Endpoint == "" {
			return missing("endpoint")
		}
	case OpState:
		if len(o.Block) == 0 {
			return missing("block")
		}
	case OpInFlight:
		for _, q := range o.Open {
			if q.Endpoint == "" {
				return errors.New("queries in flight without an endpoint")
			}
		}
	case OpDone:
		if (o.Placement == nil) == (o.Endpoint == "") {
			return errors.New("done with placement or with endpoint: want one of them")
		}
		if _, ok := engine.ParseOutcome(o.Outcome); !ok {
			return fmt.Errorf("no outcome %q; want success, failure, overloaded or cancelled", o.Outcome)
		}
	case OpDecide:
		if o.KeyHash != "" {
			if _, err := strconv.ParseUint(o.KeyHash, 16, 64); err != nil || len(o.KeyHash) != 16 {
				return fmt.Errorf("key_hash %q: want 16 hexadecimal digits", o.KeyHash)
			}
			if o.Key != "" {
				return errors.New("decide with key and key_hash: want one of them")
			}
		}
		if len(o.Tried) > engine.MaxTried {
			return fmt.Errorf("%d endpoints tried, at most %d", len(o.Tried), engine.MaxTried)
		}
		if len(o.Answers) > engine.MaxAnswers {
			return fmt.Errorf("%d answers, at most %d", len(o.Answers), engine.MaxAnswers)
		}
		for _, a := range o.Answers {
			if a.Endpoint == "" {
				return errors.New("an answer without an endpoint")
			}
			if a.LatencyNS != nil && *a.LatencyNS < 0 {
				return errors.New("latency_ns below 0; leave it out where it is unknown")
			}
		}
	}
	return nil
}
