package replica_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/replica"
)

// quiet is a real server that keeps its complaints about panics to itself.
func quiet(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = discard
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func rifReturnsToZero(t *testing.T, m *replica.Monitor) {
	t.Helper()
	require.Eventually(t, func() bool { return m.RIF() == 0 }, 5*time.Second, time.Millisecond, "RIF leaks")
}

// Every way out of a handler, against a real server: RIF is up inside and back to zero after.
func TestMiddlewareEveryExit(t *testing.T) {
	exits := map[string]struct {
		serve http.HandlerFunc
		kept  bool // the latency becomes a sample
	}{
		"returns nothing": {func(http.ResponseWriter, *http.Request) {}, true},
		"answers":         {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, true},
		"not found":       {http.NotFound, true},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		}, true},
		"streams": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "later")
		}, true},
		"fails":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, false},
		"overloaded": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, false},
		"panics":     {func(http.ResponseWriter, *http.Request) { panic("on purpose") }, false},
		"aborts":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
		"goexit":     {func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, false},
		"hijacks": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				_ = c.Close()
			}
		}, false},
	}
	for name, exit := range exits {
		t.Run(name, func(t *testing.T) {
			m := monitor(t)
			inside := make(chan uint32, 1)
			s := quiet(t, m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inside <- m.RIF()
				exit.serve(w, r)
			})))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			// POST, which net/http does not send twice by itself.
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("x"))
			require.NoError(t, err)
			if name == "goexit" {
				go func() { <-inside; inside <- 1; cancel() }() // nothing ever answers
			}
			if resp, err := s.Client().Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			require.Equal(t, uint32(1), <-inside)
			rifReturnsToZero(t, m)
			require.Equal(t, exit.kept, m.Reading().Latency != engine.UnknownLatency)
		})
	}
}

func TestMiddlewareClientGone(t *testing.T) {
	m := monitor(t)
	entered := make(chan struct{})
	s := quiet(t, m.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	require.NoError(t, err)
	go func() { <-entered; cancel() }()
	_, err = s.Client().Do(r)
	require.ErrorIs(t, err, context.Canceled)
	rifReturnsToZero(t, m)
	require.Equal(t, engine.UnknownLatency, m.Reading().Latency, "an abandoned query is no sample")
}

func TestMiddlewareHijackedStaysCountedInsideTheHandler(t *testing.T) {
	m := monitor(t)
	release := make(chan struct{})
	s := quiet(t, m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		<-release
	})))
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 20))
	require.NoError(t, err)
	require.Equal(t, uint32(1), m.RIF())
	close(release)
	rifReturnsToZero(t, m)
}

// Conversations on hijacked connections must not pass for slow answers.
func TestMiddlewareHijackedIsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := monitor(t)
		h := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/talk" {
				_, _, err := w.(http.Hijacker).Hijack()
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
			}
			time.Sleep(10 * time.Millisecond)
		}))
		serve := func(path string) {
			h.ServeHTTP(&talker{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, path, nil))
		}
		serve("/short")
		for range 4 {
			go serve("/talk")
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, engine.Reading{RIF: 4, Latency: 10 * engine.Millisecond}, m.Reading())
		time.Sleep(10 * time.Second)
		require.Equal(t, engine.Reading{RIF: 0, Latency: 10 * engine.Millisecond}, m.Reading())
	})
}

type talker struct{ *httptest.ResponseRecorder }

func (talker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

func TestMiddlewareKeepsWriterAbilities(t *testing.T) {
	m := monitor(t)
	see := func(check func(w http.ResponseWriter)) http.Handler {
		return m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { check(w) }))
	}
	get := func(s *httptest.Server) string {
		resp, err := s.Client().Get(s.URL)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(b)
	}
	t.Run("HTTP/1", func(t *testing.T) {
		body := get(quiet(t, see(func(w http.ResponseWriter) {
			_, hijack := w.(http.Hijacker)
			_, flush := w.(http.Flusher)
			_, reads := w.(io.ReaderFrom)
			if hijack && flush && reads && http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)) == nil {
				_, _ = io.Copy(w, strings.NewReader("all"))
				_ = http.NewResponseController(w).Flush()
			}
		})))
		require.Equal(t, "all", body)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		s := httptest.NewUnstartedServer(see(func(w http.ResponseWriter) {
			_, hijack := w.(http.Hijacker)
			_, flush := w.(http.Flusher)
			if !hijack && flush {
				_, _ = io.WriteString(w, "flush only")
			}
		}))
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		require.Equal(t, "flush only", get(s))
	})
	t.Run("plain", func(t *testing.T) {
		w := struct{ http.ResponseWriter }{httptest.NewRecorder()}
		see(func(w http.ResponseWriter) {
			_, flush := w.(http.Flusher)
			require.False(t, flush)
			require.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
		}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	})
	t.Run("hijack only", func(t *testing.T) {
		w := struct {
			http.ResponseWriter
			http.Hijacker
		}{struct{ http.ResponseWriter }{httptest.NewRecorder()}, nil}
		see(func(w http.ResponseWriter) {
			_, flush := w.(http.Flusher)
			_, hijack := w.(http.Hijacker)
			require.True(t, hijack && !flush)
		}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	})
}

func TestMiddlewarePiggyback(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"silent": func(http.ResponseWriter, *http.Request) {},
		"writes": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) },
		"string": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
		"switches": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
		},
		"status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"flushes": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"reads from": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, on := range []bool{false, true} {
				m := monitor(t)
				if on {
					m = monitor(t, replica.WithPiggyback())
				}
				others := m.Begin()
				s := quiet(t, m.Middleware(serve))
				resp, err := s.Client().Get(s.URL)
				require.NoError(t, err)
				_ = resp.Body.Close()
				others.Withdraw()
				if on {
					require.Equal(t, "1", resp.Header.Get(replica.HeaderRIF), "the others, without this query")
					require.Equal(t, "TEXT named_metrics.rif=1", resp.Header.Get(replica.HeaderLoad))
				} else {
					require.Empty(t, resp.Header.Values(replica.HeaderRIF))
					require.Empty(t, resp.Header.Values(replica.HeaderLoad))
				}
			}
		})
	}
}

func BenchmarkMiddleware(b *testing.B) {
	m := monitor(b)
	h := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
