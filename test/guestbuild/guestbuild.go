// Package guestbuild compiles guests with the flags that make a module reproducible: the
// same sources and toolchain give the same bytes in any folder.
package guestbuild

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Flags of a reproducible guest. Without -buildvcs=false the state of the checkout would
// enter the bytes, without -trimpath its place.
var Flags = []string{"-buildmode=c-shared", "-trimpath", "-buildvcs=false", NoNilChecks, "-ldflags=-s -w -buildid="}

// NoNilChecks leaves the checks of our own packages for nil pointers out, a tenth of the time
// of a decision: the same code runs natively with them, in step, in every test of parity.
// Checks of bounds stay.
const NoNilChecks = "-gcflags=github.com/headroom-lb/headroom/...=-d=disablenil"

// Build compiles a package of the module at root and returns the bytes. It reads the sources
// of the guest itself, so that a cached test result does not outlive them.
func Build(root, pkg string) ([]byte, error) {
	for _, dir := range []string{"engine", "wasm"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".go" {
				_, err = os.ReadFile(path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	tmp, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "guest.wasm")
	cmd := exec.Command("go", append(append([]string{"build"}, Flags...), "-o", out, pkg)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off", "GOWASM=", "GOEXPERIMENT=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return os.ReadFile(out)
}
