// Package module opens the module that a command works with.
package module

import (
	"context"
	"errors"
	"time"

	"github.com/headroom-lb/headroom/host"
)

// Open compiles a module, the built-in one if wasm is nil, with compiled code kept in the folder cache unless that is
// empty. A stranger's module may loop: it runs on [host.DefaultFuel] unless the options say otherwise, and where that
// cannot be, a call takes at most limit. What is wrong with the module is a [host.ErrModule]. Close the runtime when done.
func Open(ctx context.Context, cache string, wasm []byte, limit time.Duration, opts ...host.RuntimeOption) (*host.Runtime, *host.Module, error) {
	all := []host.RuntimeOption{host.WithCacheDir(cache), host.WithFuel(host.DefaultFuel), host.WithCallLimit(limit)}
	r, err := host.NewRuntime(ctx, append(all, opts...)...)
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
