package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// Instance is one guest: a machine for one caller at a time. After an [ErrTrap] or an
// [ErrAnswer] it must be closed and not called again, since its state is undefined.
type Instance struct {
	mod    api.Module
	guard  Guard
	mem    api.Memory
	stderr *tail
	stack  [8]uint64
	spec   string

	arena    uint32 // address
	room     uint32 // bytes in it
	view     []byte // the arena, in the guest's memory
	answer   uint32 // address of the decision record
	decision []byte // the decision record, in the guest's memory
	memory   uint32 // size of the memory that the view was taken from
	decide   api.Function
	report   api.Function
	record   api.Function
	probes   api.Function
	nothing  api.Function
	rest     map[string]api.Function
	rows     []engine.Candidate // what the guest was told, to check its answers
	byID     map[engine.ID]uint32
}

var _ engine.Machine = (*Instance)(nil)

// zeros is the guest's randomness: none. Go's runtime asks for some at its start.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	if len(b) > 4096 {
		return 0, errors.New("too much randomness at once") // a host call must be short
	}
	clear(b)
	return len(b), nil
}

// start brings a guest up. Its clock stands still at 1: the runtime's default clock steps a
// millisecond a reading, and a collector that watches it stops collecting.
func (m *Module) start(ctx context.Context) (*Instance, error) {
	in := &Instance{guard: m.guard, stderr: &tail{}, rest: map[string]api.Function{}, byID: map[engine.ID]uint32{}}
	if in.guard.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, in.guard.Limit)
		defer cancel()
		ctx = limited
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithNanotime(func() int64 { return 1 }, 1).WithWalltime(func() (int64, int32) { return 1, 0 }, 1).
		WithRandSource(zeros{}).WithStderr(in.stderr)
	mod, err := m.wz.InstantiateModule(ctx, m.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("starting the guest: %w: %w%s", ErrTrap, err, in.stderr)
	}
	in.mod, in.mem = mod, mod.Memory()
	if f := in.function(abi.FuncInitialize); f != nil {
		if _, err := in.call(f); err != nil {
			in.Close(ctx)
			return nil, fmt.Errorf("starting the guest: %w", err)
		}
	}
	return in, nil
}

// Instantiate starts a guest and configures it with a spec line and a salt that is stirred
// into its seed; 0 leaves the seed as the spec has it. A refused spec is an
// [engine.ErrConfig] with the guest's reason.
func (m *Module) Instantiate(ctx context.Context, spec string, salt uint64) (*Instance, error) {
	in, err := m.blank(ctx)
	if err != nil {
		return nil, err
	}
	if err := in.configure(spec, salt); err != nil {
		in.Close(ctx)
		return nil, err
	}
	return in, nil
}

// blank is a guest without a spec.
func (m *Module) blank(ctx context.Context) (*Instance, error) {
	in, err := m.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrap, err)
	}
	return in, nil
}

func (in *Instance) configured(spec string, salt uint64) (engine.Machine, string, error) {
	if err := in.configure(spec, salt); err != nil {
		return nil, "", err
	}
	return in, in.spec, nil
}

func (in *Instance) configure(spec string, salt uint64) error {
	if len(spec) > abi.MaxSpec {
		return &engine.ConfigError{Reason: fmt.Sprintf("the spec is longer than %d bytes", abi.MaxSpec)}
	}
	if err := in.open(abi.ArenaMin); err != nil {
		return err
	}
	copy(in.view, spec)
	if err := in.ask(in.function(abi.FuncConfigure), uint64(len(spec)), salt); err != nil {
		return err
	}
	text, err := in.readText(in.function(abi.FuncText))
	if err != nil {
		return err
	}
	in.spec = text
	at, err := in.call(in.function(abi.FuncDecision))
	if err != nil {
		return err
	}
	in.answer, in.memory = uint32(at), 0
	if err := in.look(); err != nil {
		return err
	}
	in.decide, in.report = in.function(abi.FuncDecide), in.function(abi.FuncReport)
	in.record, in.probes = in.function(abi.FuncRecord), in.function(abi.FuncProbes)
	in.nothing = in.function(abi.FuncNothing)
	return nil
}

// Spec is the canonical form of the spec line, as the guest tells it.
func (in *Instance) Spec() string { return in.spec }

// MemorySize is the guest's memory in bytes.
func (in *Instance) MemorySize() int { return int(in.mem.Size()) }

// Close frees the guest.
func (in *Instance) Close(ctx context.Context) error { return in.mod.Close(ctx) }

// function finds an export once; handles belong to one caller, so each instance keeps its own.
func (in *Instance) function(name string) api.Function {
	f, ok := in.rest[name]
	if !ok {
		f = in.mod.ExportedFunction(name)
		in.rest[name] = f
	}
	return f
}

// call runs a function on the kept stack. The context is the background's, never a
// request's: the runtime looks a key up in it on each call.
func (in *Instance) call(f api.Function, args ...uint64) (int32, error) {
	copy(in.stack[:], args)
	return in.run(f)
}

// run calls with the arguments on the stack and returns an i32. Above it, the stack keeps
// bits of the first argument.
func (in *Instance) run(f api.Function) (int32, error) {
	if in.guard.Limit > 0 {
		return in.runLimited(f)
	}
	if err := f.CallWithStack(context.Background(), in.stack[:]); err != nil {
		return 0, in.trap(f, err)
	}
	return int32(in.stack[0]), nil
}

func (in *Instance) runLimited(f api.Function) (int32, error) {
	ctx, cancel := context.WithTimeout(context.Background(), in.guard.Limit)
	defer cancel()
	if err := f.CallWithStack(ctx, in.stack[:]); err != nil {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("%w: a call took longer than %v", ErrTrap, in.guard.Limit)
		}
		return 0, in.trap(f, err)
	}
	return int32(in.stack[0]), nil
}

// ask is call for functions that answer with a code; an error carries the guest's text.
func (in *Instance) ask(f api.Function, args ...uint64) error {
	v, err := in.call(f, args...)
	if err != nil {
		return err
	}
	return in.explain(abi.Code(v))
}

func (in *Instance) explain(c abi.Code) error {
	err := abi.ErrorOf(c)
	if err == nil {
		return nil
	}
	text, terr := in.readText(in.function(abi.FuncText))
	if terr != nil {
		return terr
	}
	return &guestError{err, text}
}

// guestError is a sentinel with the guest's own words, which usually name the sentinel too.
type guestError struct {
	err  error
	text string
}

func (e *guestError) Error() string {
	if e.text == "" {
		return e.err.Error()
	}
	return e.text
}
func (e *guestError) Unwrap() error { return e.err }

func (in *Instance) readText(f api.Function) (string, error) {
	n, err := in.count(f, abi.MaxText, "bytes of text")
	if err != nil {
		return "", err
	}
	return string(in.view[:n]), nil
}

// count calls a function that leaves a number of things at the arena, and makes sure of the
// number and of the view.
func (in *Instance) count(f api.Function, most int32, what string, args ...uint64) (int, error) {
	n, err := in.call(f, args...)
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, in.explain(abi.Code(n))
	}
	if n > most {
		return 0, fmt.Errorf("%w: %d %s, at most %d", ErrAnswer, n, what, most)
	}
	return int(n), in.look()
}

// open makes the arena hold at least size bytes.
func (in *Instance) open(size int) error {
	if uint64(size) <= uint64(in.room) {
		return in.look()
	}
	at, err := in.call(in.function(abi.FuncArena), uint64(size))
	if err != nil {
		return err
	}
	if at == 0 {
		return fmt.Errorf("%w: the guest has no room for %d bytes", engine.ErrCapacity, size)
	}
	in.arena, in.room = uint32(at), uint32(size)
	in.memory = 0
	return in.look()
}

// look takes the views again when the guest's memory has grown and may have moved.
func (in *Instance) look() error {
	size := in.mem.Size()
	if size == in.memory {
		return nil
	}
	view, ok := in.mem.Read(in.arena, in.room)
	if !ok {
		return fmt.Errorf("%w: an arena of %d bytes at %d lies outside its memory", ErrAnswer, in.room, in.arena)
	}
	if in.answer != 0 {
		if in.decision, ok = in.mem.Read(in.answer, abi.DecisionSize); !ok {
			return fmt.Errorf("%w: a decision record at %d lies outside its memory", ErrAnswer, in.answer)
		}
	}
	in.view, in.memory = view, size
	return nil
}

// tail keeps the last of what a guest writes to its standard error, for the text of a trap.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-400):]...)
	if extra := len(t.b) - 400; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	if len(t.b) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%q)", t.b)
}
