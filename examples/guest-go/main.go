//go:build wasip1

// The module: one line around the policy.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o fast_owner.wasm .
package main

import (
	"github.com/headroom-lb/headroom/wasm/guest"

	"example.com/guest-go/fastowner"
)

func init() { guest.Serve(fastowner.Parse, fastowner.Name) }

func main() {}
