// Package replay plays a trace on the native engine, on a guest, or on both in step.
package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/module"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/trace"
)

// callLimit is how long one call may take into a module that can have no fuel.
const callLimit = time.Second

// Options say how to play.
type Options struct {
	File    string    // name of the trace in errors
	Engine  string    // wasm, native or both
	Spec    string    // in place of the trace's own, unless empty
	Module  []byte    // in place of the built-in module, unless nil
	Fuel    int64     // of one call into that module, in loop iterations
	Explain int       // placement to explain in words, or negative for none
	Cache   string    // folder for compiled code, or empty
	Expect  io.Reader // lines that the output must equal, unless nil
	Segment int       // of a recording: print it as a trace instead of playing, or negative for none
	Lines   bool      // of a recording: print every answer, not only what came of it
}

// DifferError is the first place where two answers differ.
type DifferError struct {
	Where       string
	Left, Right string // who says what
}

func (e *DifferError) Error() string { return e.Where + ": " + e.Left + ", but " + e.Right }

// ErrNoPlacement is a placement to explain that the trace does not have.
var ErrNoPlacement = errors.New("no placement")

// Run plays the trace and writes one line for each decide and probes.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	text := bufio.NewReader(in)
	if trace.IsRecording(text) {
		return runRecording(ctx, text, out, o)
	}
	ops, err := trace.Read(o.File, text)
	if err != nil {
		return err
	}
	spec := ops[0].Spec
	if o.Spec != "" {
		spec = o.Spec
	}
	players, closeAll, err := start(ctx, o, spec, ops[0].Salt)
	if err != nil {
		return err
	}
	defer closeAll()
	asked, along := explainer(players, o, spec, ops[0].Salt)
	w := bufio.NewWriter(out)
	defer w.Flush()
	var expect *bufio.Scanner
	if o.Expect != nil {
		expect = bufio.NewScanner(o.Expect)
		expect.Buffer(nil, trace.MaxLine)
	}
	placement, met := 0, tally{another: o.Spec != ""}
	for i := range ops[1:] {
		op := &ops[i+1]
		explain := op.Op == trace.OpDecide && placement == o.Explain
		if op.Op == trace.OpDecide {
			placement++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var why *engine.Explanation
		if explain && asked != nil {
			q := op.Query()
			why = asked.Explain(&q)
		}
		line, r, err := step(players, op, o)
		if err != nil {
			return err
		}
		if along != nil {
			if _, err := along.Play(op); err != nil {
				return err
			}
		}
		if explain {
			if err := explainTo(w, players[0].Player, r, why, engine.Instant(*op.At)); err != nil {
				return err
			}
		}
		if line == nil {
			continue
		}
		if err := compare(expect, line, o.File, op.Line); err != nil {
			return err
		}
		met.add(op, r, fmt.Sprintf("%s:%d", o.File, op.Line))
		if o.Explain < 0 {
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	if o.Explain >= placement {
		return fmt.Errorf("%w %d to explain: %s has %d, counted from 0", ErrNoPlacement, o.Explain, o.File, placement)
	}
	if expect != nil && expect.Scan() {
		return &DifferError{o.File, "the trace has ended", "the expected output goes on with " + expect.Text()}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return met.verdict()
}

type player struct {
	*trace.Player
	name string
	m    engine.Machine
}

func start(ctx context.Context, o Options, spec string, salt uint64) (players []player, closeAll func(), err error) {
	closeAll = func() {}
	if o.Engine == "native" || o.Engine == "both" {
		p, err := native(o, spec, salt)
		if err != nil {
			return nil, closeAll, err
		}
		p.Another = o.Spec != ""
		players = append(players, p)
	}
	if o.Engine == "native" {
		return players, closeAll, nil
	}
	r, m, err := module.Open(ctx, o.Cache, o.Module, callLimit, host.WithFuel(o.Fuel))
	if err != nil {
		return nil, closeAll, err
	}
	closeAll = func() { _ = r.Close(context.WithoutCancel(ctx)) }
	guest, err := m.Instantiate(ctx, spec, salt)
	if err != nil {
		return nil, closeAll, err
	}
	p := player{trace.NewPlayer(o.File, guest), "wasm", guest}
	p.Another = o.Spec != ""
	return append(players, p), closeAll, nil
}

// native is a player on the native engine.
func native(o Options, spec string, salt uint64) (player, error) {
	p, err := policy.Parse(spec)
	if err != nil {
		return player{}, setting.Suggest(err)
	}
	m := engine.New(p, engine.Config{Salt: salt})
	return player{trace.NewPlayer(o.File, m), "native", m}, nil
}

// explainer is the native engine that says why: one that plays anyway, or one that is taken
// along. It is nil for nothing to explain, and for a policy that only its module knows.
func explainer(players []player, o Options, spec string, salt uint64) (asked *engine.Engine, along *player) {
	if o.Explain < 0 || o.Module != nil && o.Engine != "both" {
		return nil, nil
	}
	if e, ok := players[0].m.(*engine.Engine); ok {
		return e, nil
	}
	p, err := native(o, spec, salt)
	if err != nil {
		return nil, nil
	}
	return p.m.(*engine.Engine), &p
}

// step plays one line on every player and returns the one answer they have, or nothing.
func step(players []player, op *trace.Op, o Options) (line []byte, first *trace.Result, err error) {
	for i, p := range players {
		r, err := p.Play(op)
		if err != nil {
			return nil, nil, err
		}
		if r == nil {
			continue
		}
		text, err := json.Marshal(r)
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			first = r
		}
		if i > 0 && !bytes.Equal(text, line) {
			return nil, nil, &DifferError{fmt.Sprintf("%s:%d", o.File, op.Line), players[0].name + " says " + string(line), p.name + " says " + string(text)}
		}
		line = text
	}
	return line, first, nil
}

func compare(expect *bufio.Scanner, line []byte, file string, at int) error {
	if expect == nil {
		return nil
	}
	for expect.Scan() {
		if text := bytes.TrimSpace(expect.Bytes()); len(text) > 0 {
			if bytes.Equal(text, line) {
				return nil
			}
			return &DifferError{fmt.Sprintf("%s:%d", file, at), "expected " + string(text), "got " + string(line)}
		}
	}
	if err := expect.Err(); err != nil {
		return err
	}
	return &DifferError{fmt.Sprintf("%s:%d", file, at), "the expected output has ended", "got " + string(line)}
}
