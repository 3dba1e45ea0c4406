package showcase

import (
	"context"
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// Engine is what decides for the clients of every room.
type Engine struct {
	Kind   string // wasm or native
	Digest string // SHA-256 of the module in hexadecimal; empty for the native engine
	Size   int    // of the module, bytes
	Maker  sim.Maker
	close  func() error
}

// Close frees the module. Rooms must have ended.
func (e *Engine) Close() error { return e.close() }

// NativeEngine decides with the engine as compiled into this program.
func NativeEngine() *Engine {
	return &Engine{Kind: "native", Maker: sim.Maker{Machine: sim.Native}, close: func() error { return nil }}
}

// WasmEngine decides with the embedded WebAssembly module: one instance for each client.
func WasmEngine(ctx context.Context) (*Engine, error) {
	rt, err := host.NewRuntime(ctx)
	if err != nil {
		return nil, fmt.Errorf("WebAssembly runtime: %w", err)
	}
	m, err := rt.LoadEngine(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedded module: %w", err)
	}
	// An instance must outlive the context of whoever happened to open its room.
	ctx = context.WithoutCancel(ctx)
	return &Engine{
		Kind: "wasm", Digest: m.DigestText(), Size: m.Size(),
		Maker: sim.Maker{
			Machine: func(spec string, salt uint64) (engine.Machine, error) {
				in, err := m.Instantiate(ctx, spec, salt)
				if err != nil {
					return nil, err
				}
				return in, nil
			},
			Discard: func(ms []engine.Machine) {
				for _, machine := range ms {
					// Closing frees memory; there is nothing left to do if it fails.
					_ = machine.(*host.Instance).Close(ctx)
				}
			},
		},
		close: func() error { return rt.Close(ctx) },
	}, nil
}
