package test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/test/guestbuild"
	"github.com/headroom-lb/headroom/wasm/dist"
)

var update = flag.Bool("update", false, "write the rebuilt artifact and golden files")

const distDir = "../wasm/dist/"

func buildText(digest string) string {
	return "sha256    " + digest + "\ntoolchain " + runtime.Version() + "\nflags     GOOS=wasip1 GOARCH=wasm go build " +
		"-buildmode=c-shared -trimpath -buildvcs=false " + guestbuild.NoNilChecks + " -ldflags=\"-s -w -buildid=\" ./wasm\n"
}

// The committed module is what the sources build to, byte for byte.
func TestArtifactIsWhatTheSourcesBuild(t *testing.T) {
	built, err := guestbuild.Build("..", "./wasm")
	require.NoError(t, err)
	sum := sha256.Sum256(built)
	digest := hex.EncodeToString(sum[:])
	if *update {
		require.NoError(t, os.WriteFile(distDir+"engine.wasm", built, 0o644))
		require.NoError(t, os.WriteFile(distDir+"BUILD.txt", []byte(buildText(digest)), 0o644))
		t.Logf("wrote %d bytes, sha256 %s", len(built), digest)
		return
	}
	if dist.Toolchain() != runtime.Version() && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: the artifact was built with %s, this is %s", dist.Toolchain(), runtime.Version())
	}
	require.Equal(t, dist.Digest(), digest,
		"the sources of the module changed: run `make wasm` and commit wasm/dist with the change")
	require.Equal(t, buildText(digest), dist.Build)
}

func TestEmbeddedModuleMatchesItsDigest(t *testing.T) {
	sum := sha256.Sum256(dist.Engine)
	assert.Equal(t, dist.Digest(), hex.EncodeToString(sum[:]))
	assert.Less(t, len(dist.Engine), 3_000_000, "the module outgrew its budget")
}
