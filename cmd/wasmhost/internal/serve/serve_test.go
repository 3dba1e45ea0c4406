package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTrapsAreLoggedAtMostOnceASecond fails a guest a hundred times a second: the log stays readable.
func TestTrapsAreLoggedAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		say := trapLog(slog.New(slog.NewTextHandler(&out, nil)))
		for range 250 {
			say(errors.New("unreachable executed"))
			time.Sleep(10 * time.Millisecond)
		}
		require.Equal(t, 3, strings.Count(out.String(), "unreachable executed"))
	})
}

// TestEnginesAgree makes the same balancer natively, from the built-in module, and from its bytes in a file.
func TestEnginesAgree(t *testing.T) {
	file := filepath.Join(t.TempDir(), "engine.wasm")
	code, err := os.ReadFile("../../../../wasm/dist/engine.wasm")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, code, 0o600))
	for name, change := range map[string]func(*Config){
		"native":   func(c *Config) { c.Engine = "native" },
		"built in": func(*Config) {},
		"file":     func(c *Config) { c.Module = file },
	} {
		t.Run(name, func(t *testing.T) {
			c := Defaults()
			c.Spec, c.Shards = "prequal seed=7 quantile=0.9", 2
			c.Endpoints = []Endpoint{{URL: "http://a:1"}, {URL: "http://b:2", Name: "b", Weight: 3}}
			change(&c)
			require.NoError(t, c.Validate())
			b, free, err := newBalancer(context.Background(), c, slog.Default())
			require.NoError(t, err)
			require.Contains(t, b.Spec(), "prequal seed=7")
			require.Contains(t, b.Spec(), "quantile=0.9")
			require.Equal(t, 2, b.Stats().Shards)
			require.Equal(t, "a:1", b.Endpoints()[0].Name)
			require.EqualValues(t, 3, b.Endpoints()[1].Weight)
			require.NoError(t, free())
		})
	}
}

func TestPolicyText(t *testing.T) {
	require.Equal(t, "random seed=1", policyText("random seed=1", "random seed=1"))
	require.Equal(t, "prequal (canonical: prequal seed=0; seed drawn at random)", policyText("prequal", "prequal seed=0"))
	require.Equal(t, "prequal seed=07 (canonical: prequal seed=7)", policyText("prequal seed=07", "prequal seed=7"))
}
