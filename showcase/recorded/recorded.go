// Package recorded makes traffic for the simulator of what was recorded: of a balancer's
// recording, or of a table.
//
// A recording does not hold what the simulator needs, the work of a query, but how long it took. That is its work
// and whatever it waited: for the processor, on a slow machine, on the network. So the work is
// too much by as much as the fleet of then was loaded, and queries that waited together are heavy together.
// The load of a replay is set by hand for that reason. A query that failed, or had not
// ended, has the work of the last success before it of its balancer, or else of the first. The balancers' policy of
// then is forgotten; but clients who wait for an answer before they ask again have its pace in
// their arrivals.
package recorded

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/trace"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// Traffic is queries in order of time, the first at instant 1: a measure from 0 sees it.
type Traffic struct {
	Arrivals []sim.Arrival
	Clients  int // balancers that they came to: from 0 to Clients-1
	Replicas int // of the fleet that served them, or 0 if it is not known
	Known    int // queries whose work is known, and not another's
	Cut      bool
}

// ErrNone says that there is no traffic in a file.
var ErrNone = errors.New("needs two queries and one that succeeded; record for longer")

// Read reads a recording, as "wasmhost record" fetches one, or a table: comma-separated, with the
// heading arrival_ns,work_ns or arrival_ns,work_ns,client, and whole numbers. The name is for errors.
func Read(name string, r io.Reader) (*Traffic, error) {
	b := bufio.NewReader(r)
	t := &Traffic{}
	var err error
	if trace.IsRecording(b) {
		err = t.recording(name, b)
	} else {
		err = t.table(name, b)
	}
	if err != nil {
		return nil, err
	}
	if len(t.Arrivals) < 2 {
		return nil, fmt.Errorf("%s: %w", name, ErrNone)
	}
	slices.SortStableFunc(t.Arrivals, func(a, b sim.Arrival) int { return cmp.Compare(a.At, b.At) })
	if err := t.guess(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	before := t.Arrivals[0].At - 1
	for i := range t.Arrivals {
		t.Arrivals[i].At -= before
	}
	return t, nil
}

// balancer is what is known of one shard of a recording.
type balancer struct {
	client int32
	open   map[string][]int // arrivals at each endpoint that have not ended
}

const unknown = -1

// recording reads the decisions of every machine of every shard: a swap of the policy does not
// make another client.
func (t *Traffic) recording(name string, r io.Reader) error {
	shards := map[uint64]*balancer{}
	endpoints := map[string]bool{}
	for s, err := range trace.Segments(name, r) {
		if errors.Is(err, trace.ErrCut) {
			t.Cut = true
			break
		}
		if err != nil {
			return err
		}
		b := shards[s.Shard]
		if b == nil {
			b = &balancer{client: int32(len(shards)), open: map[string][]int{}}
			shards[s.Shard] = b
		}
		for i := range s.Ops {
			switch op := &s.Ops[i]; op.Op {
			case trace.OpEndpoints:
				for _, e := range op.Endpoints {
					endpoints[e.Name] = true
				}
			case trace.OpDecide:
				if len(op.Tried) == 0 { // else it has arrived before
					if err := t.decided(b, s.Began, op); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
				}
			case trace.OpDone:
				t.done(b, s.Began, op)
			}
		}
	}
	t.Clients, t.Replicas = len(shards), len(endpoints)
	return nil
}

// decided is a query's arrival.
func (t *Traffic) decided(b *balancer, began int64, op *trace.Op) error {
	var answer struct {
		Endpoint string `json:"endpoint"`
	}
	if err := json.Unmarshal(op.Want, &answer); err != nil {
		return err
	}
	if answer.Endpoint != "" {
		b.open[answer.Endpoint] = append(b.open[answer.Endpoint], len(t.Arrivals))
	}
	t.Arrivals = append(t.Arrivals, sim.Arrival{At: began + *op.At, Client: b.client, Work: unknown})
	return nil
}

// done ends a query at its endpoint: of those that are open there, the one that arrived when this
// one must have. A success says what it needed.
func (t *Traffic) done(b *balancer, began int64, op *trace.Op) {
	open := b.open[op.Endpoint]
	if len(open) == 0 || op.LatencyNS == nil {
		return // it began before the recording, or is a second attempt
	}
	born, at := began+*op.At-*op.LatencyNS, 0
	off := func(i int) int64 { return max(t.Arrivals[open[i]].At-born, born-t.Arrivals[open[i]].At) }
	for i := range open {
		if off(i) < off(at) {
			at = i
		}
	}
	if off(at) > int64(sim.Second) {
		return // of a second attempt
	}
	if op.Outcome == engine.OutcomeSuccess.String() {
		t.Arrivals[open[at]].Work = *op.LatencyNS
	}
	b.open[op.Endpoint] = slices.Delete(open, at, at+1)
}

// guess gives queries of unknown work that of the last success before, of the same balancer, or
// else of anybody's first.
func (t *Traffic) guess() error {
	first := slices.IndexFunc(t.Arrivals, func(a sim.Arrival) bool { return a.Work != unknown })
	if first < 0 {
		return ErrNone
	}
	last := make([]int64, t.Clients)
	for i := range last {
		last[i] = t.Arrivals[first].Work
	}
	for i := range t.Arrivals {
		if a := &t.Arrivals[i]; a.Work == unknown {
			a.Work = last[a.Client]
		} else {
			t.Known++
			last[a.Client] = a.Work
		}
	}
	return nil
}

// table reads lines of numbers.
func (t *Traffic) table(name string, r io.Reader) error {
	in := csv.NewReader(r)
	in.ReuseRecord, in.TrimLeadingSpace = true, true
	head, err := in.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	columns := []string{"arrival_ns", "work_ns", "client"}
	if len(head) < 2 || len(head) > 3 || !slices.Equal(head, columns[:len(head)]) {
		return fmt.Errorf("%s: neither a recording nor a table: give a file of wasmhost record, or lines that start with arrival_ns,work_ns "+
			"or arrival_ns,work_ns,client", name)
	}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		most := [...]int64{1 << 62, 1000 * sim.Second, sim.MaxClients - 1}
		var v [3]int64
		for i, cell := range cells {
			if v[i], err = strconv.ParseInt(cell, 10, 64); err != nil || v[i] < 0 || v[i] > most[i] {
				return fmt.Errorf("%s:%d: %s %q must be a whole number from 0 to %d", name, line, columns[i], cell, most[i])
			}
		}
		t.Arrivals = append(t.Arrivals, sim.Arrival{At: v[0], Work: v[1], Client: int32(v[2])})
		t.Clients = max(t.Clients, int(v[2])+1)
	}
}
