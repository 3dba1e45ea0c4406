// Package bench times the engine natively, as a guest and against an empty call, side by
// side in one process: short blocks in turn, so that a disturbance hits all alike.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
)

// Row is one operation: nanoseconds a call, the tenth percentile over rounds, which is
// steady on a busy machine, with the median beside it.
type Row struct {
	Policy      string  `json:"policy"`
	Operation   string  `json:"operation"` // decide, record, or change: a change of the set and a decision
	Candidates  int     `json:"candidates"`
	Draining    bool    `json:"half_draining"`
	Native      float64 `json:"native_ns"`
	NativeP50   float64 `json:"native_p50_ns"`
	Guest       float64 `json:"guest_ns"`
	GuestP50    float64 `json:"guest_p50_ns"`
	Ratio       float64 `json:"guest_to_native"`
	EmptyCalls  float64 `json:"guest_to_empty_call"`
	NativeAlloc float64 `json:"native_allocs"`
	GuestAlloc  float64 `json:"guest_allocs"`
}

// Report is a whole run.
type Report struct {
	Go        string  `json:"go"`
	Machine   string  `json:"machine"`
	Module    string  `json:"module_sha256"`
	EmptyCall float64 `json:"empty_call_ns"`
	EmptyP50  float64 `json:"empty_call_p50_ns"`
	Rounds    int     `json:"rounds"`
	Rows      []Row   `json:"rows"`
}

// Options choose what is timed. Progress hears of each finished fleet.
type Options struct {
	Specs      []string
	Candidates []int
	Rounds     int
	All        bool // half-draining fleets and changes of the set too
	Progress   func(done, all int, name string)
}

const fleetStep = 1000 // nanoseconds of the engine's clock between queries

// Run times every spec at every fleet size.
func Run(ctx context.Context, m *host.Module, o Options) (*Report, error) {
	r := &Report{
		Go: runtime.Version(), Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Module: m.DigestText(), Rounds: o.Rounds,
	}
	fleets := o.fleets()
	for i, f := range fleets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, empty, err := one(ctx, m, f, o)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, rows...)
		if r.EmptyCall == 0 || empty[0] < r.EmptyCall {
			r.EmptyCall, r.EmptyP50 = empty[0], empty[1]
		}
		if o.Progress != nil {
			o.Progress(i+1, len(fleets), rows[0].Policy)
		}
	}
	for i := range r.Rows {
		r.Rows[i].EmptyCalls = r.Rows[i].Guest / r.EmptyCall
	}
	return r, nil
}

// fleet is what one pair of machines serves.
type fleet struct {
	spec     string
	n        int
	draining bool
}

const mostRing = 3000

func (o *Options) fleets() (fs []fleet) {
	for _, spec := range o.Specs {
		for _, n := range o.Candidates {
			if strings.HasPrefix(spec, "ring_hash ") && n > mostRing && !strings.Contains(spec, "points=") {
				spec += " points=64" // at the default the fixture's weights make more points than a ring may have
			}
			fs = append(fs, fleet{spec, n, false})
			if o.All {
				fs = append(fs, fleet{spec, n, true})
			}
		}
	}
	return fs
}

// one times a spec on one fleet: decisions, readings for a policy that takes them, and
// changes of the set where all is asked for.
func one(ctx context.Context, m *host.Module, f fleet, o Options) (rows []Row, empty [2]float64, err error) {
	p, err := policy.Parse(f.spec)
	if err != nil {
		return nil, empty, setting.Suggest(err)
	}
	in, err := m.Instantiate(ctx, f.spec, 0)
	if err != nil {
		return nil, empty, err
	}
	defer in.Close(ctx)
	native, err := newLoop(engine.New(p, engine.Config{}), f)
	if err != nil {
		return nil, empty, err
	}
	guest, err := newLoop(in, f)
	if err != nil {
		return nil, empty, err
	}
	changes := o.All && !f.draining
	var emptyNs, nDecide, gDecide, nRecord, gRecord, nChange, gChange []float64
	for round := range o.Rounds {
		emptyNs = append(emptyNs, guest.others(func() { guest.note(in.Nothing()) }))
		for _, side := range []struct {
			l                      *loop
			decide, record, change *[]float64
		}{{native, &nDecide, &nRecord, &nChange}, {guest, &gDecide, &gRecord, &gChange}} {
			*side.decide = append(*side.decide, side.l.decisions())
			if side.l.keeps {
				*side.record = append(*side.record, side.l.readings())
			}
			if changes && round%changeRounds == 0 {
				*side.change = append(*side.change, side.l.changes())
			}
		}
	}
	empty = [2]float64{quantile(emptyNs, .1), quantile(emptyNs, .5)}
	row := func(operation string, nativeNs, guestNs []float64, native, guest func()) {
		r := newRow(nativeNs, guestNs, native, guest)
		r.Policy, r.Operation, r.Candidates, r.Draining = p.Name(), operation, f.n, f.draining
		rows = append(rows, r)
	}
	row("decide", nDecide, gDecide, native.query, guest.query)
	if native.keeps && !f.draining {
		row("record", nRecord, gRecord, native.reading, guest.reading)
	}
	if changes {
		row("change", nChange, gChange, nil, nil)
	}
	if native.err != nil || guest.err != nil {
		return nil, empty, fmt.Errorf("%s, %d candidates: %w", f.spec, f.n, errors.Join(native.err, guest.err))
	}
	return rows, empty, nil
}

const changeRounds = 10 // a change costs more than a decision: it is timed in every tenth round

// newRow sums up one operation: nanoseconds by round, and the operation itself to count its
// allocations, where it must not have any.
func newRow(nativeNs, guestNs []float64, native, guest func()) Row {
	r := Row{
		Native: quantile(nativeNs, .1), NativeP50: quantile(nativeNs, .5),
		Guest: quantile(guestNs, .1), GuestP50: quantile(guestNs, .5),
	}
	if native != nil {
		r.NativeAlloc, r.GuestAlloc = testing.AllocsPerRun(200, native), testing.AllocsPerRun(200, guest)
	}
	r.Ratio = r.Guest / r.Native
	return r
}

func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1))]
}
