package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/module"
	"github.com/headroom-lb/headroom/host"
)

// maxModule bounds a module that is read from a file, callLimit each call into it where it can have no fuel.
const (
	maxModule = 64 << 20
	callLimit = time.Second
)

// readModule reads a module's file, or returns nil for the built-in one.
func readModule(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, badInput("module: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxModule {
		return nil, badInput("module: %s is not a file of at most %d MiB", file, maxModule>>20)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return nil, badInput("module: %w", err)
	}
	return wasm, nil
}

// load opens a module, the built-in one if wasm is nil. Close the runtime when done.
func load(ctx context.Context, wasm []byte) (*host.Runtime, *host.Module, error) {
	return module.Open(ctx, cacheDir(), wasm, callLimit)
}

// cacheDir is where compiled code is kept between runs, or empty where the user has no cache
// folder that can be written.
func cacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir := filepath.Join(base, "headroom")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ""
	}
	probe := filepath.Join(dir, fmt.Sprintf(".write-%d", os.Getpid()))
	if os.WriteFile(probe, nil, 0o600) != nil {
		return ""
	}
	_ = os.Remove(probe)
	return dir
}
