// Package bench times the engine natively, as a guest and against an empty call, side by
// side in one process: short blocks in turn, so that a disturbance hits all alike.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
)

// Row is one operation: nanoseconds a call, the tenth percentile over rounds, which is
// steady on a busy machine, with the median beside it.
type Row struct {
	Name        string  `json:"name"`
	Candidates  int     `json:"candidates"`
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

// Options choose what is timed. Progress hears of each finished row.
type Options struct {
	Specs      []string
	Candidates []int
	Rounds     int
	Progress   func(done, all int, name string)
}

const fleetStep = 1000 // nanoseconds of the engine's clock between queries

// Run times every spec at every fleet size.
func Run(ctx context.Context, m *host.Module, o Options) (*Report, error) {
	r := &Report{
		Go: runtime.Version(), Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Module: m.DigestText(), Rounds: o.Rounds,
	}
	all := len(o.Specs) * len(o.Candidates)
	for _, spec := range o.Specs {
		for _, n := range o.Candidates {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rows, empty, err := one(ctx, m, spec, n, o.Rounds)
			if err != nil {
				return nil, err
			}
			r.Rows = append(r.Rows, rows...)
			if r.EmptyCall == 0 || empty[0] < r.EmptyCall {
				r.EmptyCall, r.EmptyP50 = empty[0], empty[1]
			}
			all = max(all, len(r.Rows))
			if o.Progress != nil {
				o.Progress(len(r.Rows), all, rows[0].Name)
			}
		}
	}
	for i := range r.Rows {
		r.Rows[i].EmptyCalls = r.Rows[i].Guest / r.EmptyCall
	}
	return r, nil
}

// one times a spec on one fleet size: decisions alone, and for a policy that takes readings
// the readings too.
func one(ctx context.Context, m *host.Module, spec string, n, rounds int) (rows []Row, empty [2]float64, err error) {
	p, err := policy.Parse(spec)
	if err != nil {
		return nil, empty, err
	}
	in, err := m.Instantiate(ctx, spec, 0)
	if err != nil {
		return nil, empty, err
	}
	defer in.Close(ctx)
	native, err := newLoop(engine.New(p, engine.Config{}), n)
	if err != nil {
		return nil, empty, err
	}
	guest, err := newLoop(in, n)
	if err != nil {
		return nil, empty, err
	}
	var emptyNs, nDecide, gDecide, nRecord, gRecord []float64
	for range rounds {
		emptyNs = append(emptyNs, guest.others(func() { guest.note(in.Nothing()) }))
		for _, side := range []struct {
			l              *loop
			decide, record *[]float64
		}{{native, &nDecide, &nRecord}, {guest, &gDecide, &gRecord}} {
			*side.decide = append(*side.decide, side.l.decisions())
			if side.l.keeps {
				*side.record = append(*side.record, side.l.readings())
			}
		}
	}
	empty = [2]float64{quantile(emptyNs, .1), quantile(emptyNs, .5)}
	rows = append(rows, newRow(p.Name()+" decide", n, nDecide, gDecide, native.query, guest.query))
	if native.keeps {
		rows = append(rows, newRow(p.Name()+" record", n, nRecord, gRecord, native.reading, guest.reading))
	}
	if native.err != nil || guest.err != nil {
		return nil, empty, fmt.Errorf("%s, %d candidates: %w", spec, n, errors.Join(native.err, guest.err))
	}
	return rows, empty, nil
}

// newRow sums up one operation: nanoseconds by round, and the operation itself to count its allocations.
func newRow(name string, n int, nativeNs, guestNs []float64, native, guest func()) Row {
	r := Row{
		Name: name, Candidates: n,
		Native: quantile(nativeNs, .1), NativeP50: quantile(nativeNs, .5),
		Guest: quantile(guestNs, .1), GuestP50: quantile(guestNs, .5),
		NativeAlloc: testing.AllocsPerRun(200, native), GuestAlloc: testing.AllocsPerRun(200, guest),
	}
	r.Ratio = r.Guest / r.Native
	return r
}

func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1))]
}
