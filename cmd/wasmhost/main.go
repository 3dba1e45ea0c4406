// Command wasmhost runs Headroom's policies, compiled to WebAssembly, for real HTTP traffic: a comparison that needs
// no set-up, a reverse proxy, a replica to try it with, and tools around the module.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains; with the handler gone, a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
