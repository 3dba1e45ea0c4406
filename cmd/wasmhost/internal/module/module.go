// Package module opens the module that a command works with.
package module

import (
	"context"
	"errors"
	"time"

	"github.com/headroom-lb/headroom/host"
)

// Open compiles a module, the built-in one if wasm is nil, with compiled code kept in the folder cache unless that is
// empty. A call into a module that is not the built-in one takes at most limit: a stranger's module may loop. What is
// wrong with the module is a [host.ErrModule]. Close the runtime when done.
func Open(ctx context.Context, cache string, wasm []byte, limit time.Duration) (*host.Runtime, *host.Module, error) {
	opts := []host.RuntimeOption{host.WithCacheDir(cache)}
	if wasm != nil {
		opts = append(opts, host.WithCallLimit(limit))
	}
	r, err := host.NewRuntime(ctx, opts...)
	if err != nil {
		return nil, nil, err
	}
	var m *host.Module
	if wasm == nil {
		m, err = r.LoadEngine(ctx)
	} else {
		m, err = r.Load(ctx, wasm)
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	}
	return r, m, nil
}
