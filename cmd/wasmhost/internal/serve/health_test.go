package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// TestHealthIsLoggedOncePerChange fails an endpoint for long and lets it come back, by probes and by queries.
func TestHealthIsLoggedOncePerChange(t *testing.T) {
	var out bytes.Buffer
	h := newHealth(slog.New(slog.NewTextHandler(&out, nil)), []Endpoint{{Name: "a"}, {Name: "b"}})
	var probeErr error
	probe := h.probing(func(context.Context, host.Endpoint) (engine.Reading, error) { return engine.Reading{}, probeErr })
	ask := func(n int, err error) {
		probeErr = err
		for range n {
			_, got := probe(t.Context(), host.Endpoint{Name: "a"})
			require.Equal(t, err, got)
		}
	}
	said := func(warned, answered int) {
		t.Helper()
		require.Equal(t, warned, strings.Count(out.String(), `level=WARN msg="endpoint fails`), out.String())
		require.Equal(t, answered, strings.Count(out.String(), `level=INFO msg="endpoint answers again" endpoint=a`), out.String())
	}
	refused := errors.New("connection refused")
	ask(2, refused)
	ask(1, nil)
	ask(2, refused)
	said(0, 0)
	ask(20, refused)
	said(1, 0)
	h.Answered("a", nil)
	said(1, 0)
	ask(1, nil)
	said(1, 1)

	for range 10 {
		h.Answered("a", refused)
		h.Answered("a", context.Canceled)
	}
	said(2, 1)
	h.Answered("a", nil)
	said(2, 2)
	h.unreachable("b", refused)
	h.unreachable("b", refused)
	said(3, 2)
	ask(20, context.Canceled)
	said(3, 2)
}

func TestHealthInThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(slog.New(slog.DiscardHandler), []Endpoint{{Name: "a"}})
		v := endpointView{Name: "a"}
		h.show(&v)
		require.Equal(t, endpointView{Name: "a"}, v)
		h.Sent("a")
		h.Sent("a")
		h.Ended("a")
		_, _ = h.probing(func(context.Context, host.Endpoint) (engine.Reading, error) {
			return engine.Reading{}, errors.New("status 404, want 200")
		})(t.Context(), host.Endpoint{Name: "a"})
		time.Sleep(1500 * time.Millisecond)
		h.show(&v)
		require.Equal(t, endpointView{Name: "a", InFlight: 1, LastProbe: &probeView{Error: "status 404, want 200", AgeMS: 1500}}, v)
	})
}
