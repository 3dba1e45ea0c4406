package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/headroom-lb/headroom/host/hosttest"
)

// The module keeps the laws of every guest, and those that it claims.
func TestGuest(t *testing.T) {
	out := filepath.Join(t.TempDir(), "fast_owner.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	hosttest.TestGuest(t, wasm, hosttest.Options{Claims: []string{"affinity", "minimal_disruption"}, Runs: 20})
}
