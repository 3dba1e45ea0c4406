package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// Result is the answer to a decide or a probes line, ready to be printed.
type Result struct {
	Placement int // of a decide, -1 for probes
	At        int64
	Err       error
	Endpoint  string
	Decision  engine.Decision
	Probe     []string
}

// MarshalJSON prints the result as the output format has it. A threshold that is not there
// and a latency that is not known are null.
func (r Result) MarshalJSON() ([]byte, error) {
	if r.Placement < 0 {
		return r.line(nil)
	}
	return r.line(&r.Placement)
}

// Want is the result as a line of a recorded trace holds it: without the placement.
func (r Result) Want() (json.RawMessage, error) { return r.line(nil) }

// Meets says whether a result is what a recorded line wants; a line without a want is met by all.
func (o *Op) Meets(r *Result) bool {
	if len(o.Want) == 0 {
		return true
	}
	var want bytes.Buffer
	got, err := r.Want()
	return err == nil && json.Compact(&want, o.Want) == nil && bytes.Equal(got, want.Bytes())
}

// SameChoice is Meets for a machine of another policy: it says whether a decide line has the same
// endpoint, or is refused alike.
func (o *Op) SameChoice(r *Result) bool {
	var want struct{ Endpoint, Error string }
	if json.Unmarshal(o.Want, &want) != nil {
		return false
	}
	return want.Endpoint == r.Endpoint && want.Error == abi.NameOf(r.Err)
}

func (r *Result) line(placement *int) ([]byte, error) {
	type failed struct {
		Placement *int   `json:"placement,omitempty"`
		At        int64  `json:"at"`
		Error     string `json:"error"`
	}
	type probes struct {
		At    int64    `json:"at"`
		Probe []string `json:"probe"`
	}
	type decided struct {
		Placement *int    `json:"placement,omitempty"`
		At        int64   `json:"at"`
		Endpoint  string  `json:"endpoint"`
		Index     uint32  `json:"index"`
		Regime    string  `json:"regime"`
		Cause     string  `json:"cause"`
		Offered   uint32  `json:"offered"`
		Cold      uint32  `json:"cold"`
		Hot       uint32  `json:"hot"`
		Threshold *uint32 `json:"threshold"`
		RIF       uint32  `json:"rif"`
		LatencyNS *int64  `json:"latency_ns"`
		AgeNS     int64   `json:"age_ns"`
		UsesLeft  uint32  `json:"uses_left"`
	}
	switch d := &r.Decision; {
	case r.Placement < 0:
		if r.Probe == nil {
			r.Probe = []string{}
		}
		return json.Marshal(probes{r.At, r.Probe})
	case r.Err != nil:
		return json.Marshal(failed{placement, r.At, abi.NameOf(r.Err)})
	default:
		out := decided{
			Placement: placement, At: r.At, Endpoint: r.Endpoint, Index: d.Index, Regime: d.Regime.String(),
			Cause: d.Cause.String(), Offered: d.Offered, Cold: d.Cold, Hot: d.Hot, RIF: d.RIF,
			AgeNS: int64(d.Age), UsesLeft: d.UsesLeft,
		}
		if d.Threshold != engine.NoThreshold {
			out.Threshold = &d.Threshold
		}
		if d.Latency >= 0 {
			ns := int64(d.Latency)
			out.LatencyNS = &ns
		}
		return json.Marshal(out)
	}
}

// Player plays a trace on one machine, line by line.
type Player struct {
	// Another says that the machine is not of the trace's spec: state blocks are passed over.
	Another    bool
	m          engine.Machine
	file       string
	names      map[engine.ID]string
	placements []engine.ID // by decide line
	placed     []bool
}

// NewPlayer plays on a machine that was made for the trace's spec.
func NewPlayer(file string, m engine.Machine) *Player {
	return &Player{m: m, file: file, names: map[engine.ID]string{}}
}

// Play carries out one line and returns its result, if the line has one. An error stops the
// trace: what a machine refuses in a decide line is a result, in any other line an error.
func (p *Player) Play(o *Op) (*Result, error) {
	fail := func(err error) error { return &LineError{p.file, o.Line, err.Error()} }
	var at engine.Instant
	if o.At != nil {
		at = engine.Instant(*o.At)
	}
	switch o.Op {
	case OpEndpoints:
		if err := p.endpoints(at, o.Endpoints); err != nil {
			return nil, fail(err)
		}
	case OpStatus:
		st, _ := engine.ParseStatus(o.Status)
		if err := p.m.SetStatus(at, engine.IDOf(o.Endpoint), st); err != nil {
			return nil, fail(fmt.Errorf("%w: %q", err, o.Endpoint))
		}
	case OpReading:
		rd := reading(*o.RIF, o.LatencyNS, o.Asked, at)
		// A reading of a replica that has left is ordinary: it was on its way.
		if _, err := p.m.Record(at, engine.IDOf(o.Endpoint), rd); err != nil && !errors.Is(err, engine.ErrUnknownID) {
			return nil, fail(err)
		}
	case OpLoad:
		l := engine.LoadReport{QPS: *o.QPS}
		if o.Utilization != nil {
			l.Utilization = *o.Utilization
		}
		if o.EPS != nil {
			l.EPS = *o.EPS
		}
		if err := p.m.RecordLoad(at, engine.IDOf(o.Endpoint), l); err != nil && !errors.Is(err, engine.ErrUnknownID) {
			return nil, fail(err)
		}
	case OpForget:
		asked := at
		if o.Asked != nil {
			asked = engine.Instant(*o.Asked)
		}
		if err := p.m.Forget(at, engine.IDOf(o.Endpoint), asked); err != nil && !errors.Is(err, engine.ErrUnknownID) {
			return nil, fail(err)
		}
	case OpDecide:
		return p.decide(at, o), nil
	case OpDone:
		return nil, p.done(at, o, fail)
	case OpState:
		if err := p.m.Restore(o.Block); err != nil && !p.Another {
			return nil, fail(err)
		}
	case OpInFlight:
		open := make([]engine.InFlight, len(o.Open))
		for i, q := range o.Open {
			open[i] = engine.InFlight{ID: engine.IDOf(q.Endpoint), Queries: q.Queries}
		}
		if err := p.m.SetInFlight(open); err != nil {
			return nil, fail(err)
		}
	case OpProbes:
		ids, err := p.m.Probes(at, nil)
		if err != nil {
			return nil, fail(err)
		}
		r := &Result{Placement: -1, At: int64(at)}
		for _, id := range ids {
			r.Probe = append(r.Probe, p.names[id])
		}
		return r, nil
	}
	return nil, nil
}

func (p *Player) endpoints(at engine.Instant, eps []Endpoint) error {
	var cs []engine.Candidate
	localities := map[uint32]string{}
	seen := map[string]bool{}
	for _, ep := range eps {
		if seen[ep.Name] {
			return fmt.Errorf("%w: %q", engine.ErrDuplicateID, ep.Name)
		}
		seen[ep.Name] = true
		locality := engine.LocalityOf(ep.Locality)
		if name, ok := localities[locality]; ok && name != ep.Locality {
			return fmt.Errorf("%w: localities %q and %q hash alike", engine.ErrTopology, name, ep.Locality)
		}
		localities[locality] = ep.Locality
		st, _ := engine.ParseStatus(ep.Status)
		id := engine.IDOf(ep.Name)
		p.names[id] = ep.Name
		cs = append(cs, engine.Candidate{
			ID: id, Weight: engine.Weight(ep.Weight), Locality: locality, Priority: ep.Priority, Status: st,
		})
	}
	return p.m.SetCandidates(at, cs)
}

// reading is what a line says of a replica, with what it leaves out.
func reading(rif uint32, latencyNS, asked *int64, at engine.Instant) engine.Reading {
	rd := engine.Reading{RIF: rif, Latency: engine.UnknownLatency, Asked: at}
	if latencyNS != nil {
		rd.Latency = engine.Duration(*latencyNS)
	}
	if asked != nil {
		rd.Asked = engine.Instant(*asked)
	}
	return rd
}

// Query is the query of a decide line.
func (o *Op) Query() engine.Query {
	q := engine.Query{Now: engine.Instant(*o.At)}
	if o.Key != "" {
		q.Key = engine.KeyOf(o.Key)
	} else if o.KeyHash != "" {
		hash, _ := strconv.ParseUint(o.KeyHash, 16, 64) // checked when it was read
		q.Key = engine.Key(hash)
	}
	for _, name := range o.Tried {
		q.Tried = append(q.Tried, engine.IDOf(name))
	}
	for _, a := range o.Answers {
		rd := reading(a.RIF, a.LatencyNS, a.Asked, q.Now)
		q.Answers = append(q.Answers, engine.Answer{ID: engine.IDOf(a.Endpoint), Reading: rd})
	}
	return q
}

func (p *Player) decide(at engine.Instant, o *Op) *Result {
	q := o.Query()
	r := &Result{Placement: len(p.placements), At: int64(at)}
	r.Err = p.m.Decide(&q, &r.Decision)
	if r.Err != nil {
		r.Decision = engine.Decision{}
	}
	r.Endpoint = p.names[r.Decision.ID]
	p.placements = append(p.placements, r.Decision.ID)
	p.placed = append(p.placed, r.Err == nil)
	return r
}

func (p *Player) done(at engine.Instant, o *Op, fail func(error) error) error {
	r := engine.Report{ID: engine.IDOf(o.Endpoint), Latency: engine.UnknownLatency}
	if o.Placement != nil {
		n := *o.Placement
		if n < 0 || n >= len(p.placements) {
			return fail(fmt.Errorf("placement %d: so far there are %d, counted from 0", n, len(p.placements)))
		}
		if !p.placed[n] {
			return fail(fmt.Errorf("placement %d was not placed, or is done already", n))
		}
		p.placed[n] = false
		r.ID = p.placements[n]
	}
	r.Outcome, _ = engine.ParseOutcome(o.Outcome)
	if o.LatencyNS != nil {
		r.Latency = engine.Duration(*o.LatencyNS)
	}
	if err := p.m.Report(at, r); err != nil && !errors.Is(err, engine.ErrUnknownID) {
		return fail(err)
	}
	return nil
}

// Name is the endpoint's name, if a line so far gave it.
func (p *Player) Name(id engine.ID) string { return p.names[id] }
