//go:build wasip1

// The built-in module: every policy of Headroom behind the ABI.
package main

import (
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/wasm/guest"
)

func init() { guest.Serve(policy.Parse, policy.Names()...) }

func main() {}
