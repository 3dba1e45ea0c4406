package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/headroom-lb/headroom/wasm/dist"
)

// Runtime compiles modules. Use one for each trust domain: modules that do not trust each
// other do not share one. It is safe for concurrent use.
type Runtime struct {
	wz     wazero.Runtime
	cache  wazero.CompilationCache
	config wazero.RuntimeConfig
	limit  time.Duration
	fuel   int64
	warn   func(error)

	mu      sync.Mutex
	watched wazero.Runtime // for modules that cannot have fuel; nil until there is one
}

// RuntimeOption sets up a [Runtime].
type RuntimeOption func(*runtimeOptions)

type runtimeOptions struct {
	cacheDir  string
	pages     uint32
	limit     time.Duration
	fuel      int64
	fuelled   bool
	unguarded bool
	warn      func(error)
}

// WithCacheDir keeps compiled code in a folder, so that the next process starts in
// milliseconds. The folder is made if it is missing.
func WithCacheDir(dir string) RuntimeOption { return func(o *runtimeOptions) { o.cacheDir = dir } }

// WithMemoryLimit bounds an instance's memory, in pages of 64 KiB. The default is 1024.
func WithMemoryLimit(pages uint32) RuntimeOption { return func(o *runtimeOptions) { o.pages = pages } }

// WithCallLimit ends a call into a guest that takes longer, as a trap. It holds for every module
// and makes every call some ten times slower; with [WithFuel] it is for those modules only that
// cannot have fuel.
func WithCallLimit(d time.Duration) RuntimeOption { return func(o *runtimeOptions) { o.limit = d } }

// NewRuntime starts a runtime; Close it to free everything it made.
func NewRuntime(ctx context.Context, opts ...RuntimeOption) (*Runtime, error) {
	o := runtimeOptions{pages: 1024}
	for _, opt := range opts {
		opt(&o)
	}
	if o.pages == 0 || o.pages > 65536 {
		return nil, fmt.Errorf("memory limit of %d pages: want 1 to 65536", o.pages)
	}
	if err := o.checkGuard(); err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(o.pages).WithCloseOnContextDone(o.limit > 0 && o.fuel == 0)
	r := &Runtime{limit: o.limit, fuel: o.fuel, warn: o.warn}
	if o.cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(o.cacheDir)
		if err != nil {
			return nil, fmt.Errorf("compilation cache %s: %w", o.cacheDir, err)
		}
		r.cache = cache
		config = config.WithCompilationCache(cache)
	}
	r.config = config
	r.wz = wazero.NewRuntimeWithConfig(ctx, config)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r.wz); err != nil {
		return nil, errors.Join(fmt.Errorf("wasi: %w", err), r.Close(ctx))
	}
	return r, nil
}

// LoadEngine loads the built-in module.
func (r *Runtime) LoadEngine(ctx context.Context) (*Module, error) { return r.Load(ctx, dist.Engine) }

// Load compiles a module and checks its ABI: a missing export, a wrong signature, a foreign
// import or another major version is an [ErrModule] that names it.
func (r *Runtime) Load(ctx context.Context, wasm []byte) (*Module, error) {
	if len(wasm) < 8 || string(wasm[:4]) != "\x00asm" {
		return nil, fmt.Errorf("%w: not a WebAssembly module (no \\0asm magic)", ErrModule)
	}
	m := &Module{digest: sha256.Sum256(wasm), size: len(wasm)}
	code, wz, err := r.guarded(ctx, m, wasm)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	compiled, err := wz.CompileModule(ctx, code)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	m.wz, m.compiled = wz, compiled
	if err := m.check(ctx); err != nil {
		return nil, errors.Join(err, compiled.Close(ctx))
	}
	return m, nil
}

// Close frees every module and instance of the runtime.
func (r *Runtime) Close(ctx context.Context) error {
	err := r.wz.Close(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched != nil {
		err = errors.Join(err, r.watched.Close(ctx))
	}
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(ctx))
	}
	return err
}
