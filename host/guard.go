package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/headroom-lb/headroom/host/internal/fuel"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// DefaultFuel is five times what the costliest decision of the built-in policies takes on the
// largest fleet, and gone within some 30 ms in a guest that loops.
const DefaultFuel = 50_000_000

// What [WithFuel] takes.
const (
	LeastFuel int64 = 10_000
	MostFuel  int64 = 1_000_000_000_000
)

const (
	setupFactor = 20 // times more fuel for calls that build tables, sort, or start a guest
	lastLimit   = time.Second
)

// WithFuel bounds what one call into a module may do, in loop iterations, and so lets modules of
// others run: a guest that loops or recurses for ever would otherwise hold its shard, and the
// process with it at the next collection. Such a guest traps instead. n is [LeastFuel] to
// [MostFuel]; [DefaultFuel] suits policies that look at every candidate. Calls that set a guest
// up have twenty times as much. Decisions become some 5 % slower. The built-in module runs without.
// It is [DefaultFuel] unless this, [WithCallLimit] or [WithoutGuard] says otherwise.
//
// A module that cannot be given fuel runs under [WithCallLimit], of a second unless that is
// given too, and a warning says so: see [WithWarningHandler].
func WithFuel(n int64) RuntimeOption {
	return func(o *runtimeOptions) { o.fuel, o.fuelled = n, true }
}

// WithoutGuard runs every module as it is. One that loops then holds the process for ever: it is for modules
// that one has built oneself and trusts as the built-in one.
func WithoutGuard() RuntimeOption { return func(o *runtimeOptions) { o.unguarded = true } }

// WithWarningHandler is told of what works worse than was asked for. Without it, slog's default
// logger is.
func WithWarningHandler(f func(error)) RuntimeOption { return func(o *runtimeOptions) { o.warn = f } }

// Guard is what keeps a guest from holding the host for ever. The zero value is nothing.
type Guard struct {
	Fuel  int64         // loop iterations in one call, or 0
	Limit time.Duration // of one call, or 0
}

// String says it in words.
func (g Guard) String() string {
	switch {
	case g.Fuel > 0:
		return fmt.Sprintf("fuel, %d loop iterations a call", g.Fuel)
	case g.Limit > 0:
		return fmt.Sprintf("deadline, %v a call", g.Limit)
	}
	return "none"
}

// Guard tells how calls into the module are bounded.
func (m *Module) Guard() Guard { return m.guard }

func (o *runtimeOptions) checkGuard() error {
	given := o.fuelled || o.limit > 0
	switch {
	case o.fuelled && (o.fuel < LeastFuel || o.fuel > MostFuel):
		return fmt.Errorf("fuel of %d loop iterations: want %d to %d", o.fuel, LeastFuel, MostFuel)
	case o.unguarded && given:
		return errors.New("WithoutGuard excludes WithFuel and WithCallLimit: leave one out")
	case !o.unguarded && !given:
		o.fuel = DefaultFuel
	}
	if o.warn == nil {
		o.warn = func(err error) { slog.Warn("a module is guarded worse than asked for", "error", err) }
	}
	return nil
}

// guarded chooses how a module is bounded, and returns the code to compile and where.
func (r *Runtime) guarded(ctx context.Context, m *Module, wasm []byte) ([]byte, wazero.Runtime, error) {
	if r.fuel == 0 {
		m.guard.Limit = r.limit
		return wasm, r.wz, nil
	}
	if m.builtIn() {
		return wasm, r.wz, nil
	}
	code, err := fuel.Inject(wasm, func(export string) int64 { return allowance(r.fuel, export) })
	switch {
	case err == nil:
		m.guard.Fuel = r.fuel
		return code, r.wz, nil
	case !errors.Is(err, fuel.ErrUnknown):
		return nil, nil, err
	}
	m.guard.Limit = r.limit
	if r.limit == 0 {
		m.guard.Limit = lastLimit
	}
	r.warn(fmt.Errorf("no fuel for module %.12s, so a deadline of %v for each call, which makes calls some ten times slower: %w",
		m.DigestText(), m.guard.Limit, err))
	wz, err := r.watching(ctx)
	return wasm, wz, err
}

// allowance is the fuel of a call of one export; "" stands for what runs before any call.
func allowance(n int64, export string) int64 {
	switch export {
	case "", abi.FuncInitialize, abi.FuncConfigure, abi.FuncCandidates, abi.FuncRestore, abi.FuncArena, abi.FuncStatus:
		return setupFactor * n
	}
	return n
}

// watching is the runtime whose calls end with their context. Few modules need it, and it costs
// a set of host functions, so it is made for the first.
func (r *Runtime) watching(ctx context.Context) (wazero.Runtime, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched != nil {
		return r.watched, nil
	}
	wz := wazero.NewRuntimeWithConfig(ctx, r.config.WithCloseOnContextDone(true))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, wz); err != nil {
		return nil, errors.Join(fmt.Errorf("wasi: %w", err), wz.Close(ctx))
	}
	r.watched = wz
	return wz, nil
}

// trap is the error of a call that failed.
func (in *Instance) trap(f api.Function, err error) error {
	if in.guard.Fuel > 0 {
		left := in.mod.ExportedGlobal(fuel.Global)
		if left != nil && int64(left.Get()) < 0 {
			names := append(f.Definition().ExportNames(), "")
			return fmt.Errorf("%w: ran out of fuel: %d loop iterations in one call of %s%s",
				ErrTrap, allowance(in.guard.Fuel, names[0]), names[0], in.stderr)
		}
	}
	return fmt.Errorf("%w: %w%s", ErrTrap, err, in.stderr)
}
