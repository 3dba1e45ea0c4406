// Package dist embeds the built module, so that importing Headroom needs no build step. A
// test rebuilds it from the sources and compares the digest.
package dist

import (
	_ "embed"
	"strings"
)

// Engine is the module.
//
//go:embed engine.wasm
var Engine []byte

// Build says how the module was made: digest, toolchain, flags.
//
//go:embed BUILD.txt
var Build string

// Digest is the module's SHA-256 in hexadecimal, as recorded when it was built.
func Digest() string { return field("sha256") }

// Toolchain is the Go version that built it.
func Toolchain() string { return field("toolchain") }

func field(name string) string {
	for _, line := range strings.Split(Build, "\n") {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
