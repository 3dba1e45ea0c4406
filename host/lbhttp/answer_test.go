package lbhttp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

// writes answers with these bytes and keeps the connection open.
func writes(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, raw)
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
}

func TestAnswersThatCannotBePassedOn(t *testing.T) {
	for name, c := range map[string]struct{ asks, answer string }{
		"no upgrade asked for": {"", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n"},
		"another protocol":     {"echo", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n"},
		"no protocol":          {"echo", "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
		"status 099":           {"", "HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok"},
	} {
		t.Run(name, func(t *testing.T) {
			b := balancer(t, "random seed=1")
			served(t, b, writes(c.answer))
			s := proxied(t, b)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
			require.NoError(t, err)
			if c.asks != "" {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", c.asks)
			}
			resp, err := s.Client().Do(r)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadGateway, resp.StatusCode)
			require.Equal(t, "the replica gave no answer\n", text(t, resp))
			outcomes(t, b, 0, 1, 0, 0)

			_, err = lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil))
			require.ErrorContains(t, err, "replica r0: ")
			outcomes(t, b, 0, 2, 0, 0)
		})
	}
}

func TestOpaqueTargetsAreRefused(t *testing.T) {
	b := balancer(t, "random seed=1")
	seen := make(chan string, 4)
	replica := server(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI }))
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: replica.URL + "/base"}}))
	s := proxied(t, b)
	for target, code := range map[string]int{
		"x:http://h/control":      http.StatusBadRequest,
		"http:prequal/probe":      http.StatusBadRequest,
		"http://h/prequal/probe":  http.StatusNotFound,
		"http://h/anything/else?": http.StatusOK,
	} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, target)
		require.Equal(t, code, resp.StatusCode, target)
		_ = text(t, resp)
		require.NoError(t, c.Close())
	}
	require.Equal(t, "/base/anything/else?", <-seen)
	require.Empty(t, seen)
	outcomes(t, b, 1, 0, 0, 0)
}

func TestReadingsOnInformationalAnswersAreStripped(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.Header().Set("X-Prequal-Rif", "7")
		w.Header().Set("Endpoint-Load-Metrics-Bin", "AAAA")
		w.WriteHeader(http.StatusEarlyHints)
	})
	hints := make(chan textproto.MIMEHeader, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			hints <- h
			return nil
		},
	})
	s := proxied(t, b)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	require.NoError(t, err)
	resp, err := s.Client().Do(r)
	require.NoError(t, err)
	_ = text(t, resp)
	require.Equal(t, textproto.MIMEHeader{"Link": {"</style.css>"}}, <-hints)
}

// tally keeps what a watcher heard.
type tally struct {
	mu    sync.Mutex
	heard []string
}

func (t *tally) note(s string) {
	t.mu.Lock()
	t.heard = append(t.heard, s)
	t.mu.Unlock()
}

func (t *tally) Sent(e string)  { t.note("sent " + e) }
func (t *tally) Ended(e string) { t.note("ended " + e) }
func (t *tally) Answered(e string, err error) {
	if err != nil {
		e += " failed"
	}
	t.note("answered " + e)
}

func TestWatcherHearsOfEveryAttempt(t *testing.T) {
	b := balancer(t, "round_robin seed=0")
	good := server(t, says("ok"))
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "dead", Addr: refusing(t)}, {Name: "good", Addr: good.URL}}))
	var w tally
	tr := lbhttp.NewTransport(b, lbhttp.WithWatcher(&w))
	for range 2 {
		resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.NotContains(t, w.heard[len(w.heard)-1], "ended", "the body is open")
		require.Equal(t, "ok", text(t, resp))
	}
	dead, ok := []string{"sent dead", "answered dead failed", "ended dead"}, []string{"sent good", "answered good", "ended good"}
	require.Subset(t, [][]string{slices.Concat(dead, ok, dead, ok), slices.Concat(dead, ok, ok), slices.Concat(ok, dead, ok)}, [][]string{w.heard})

	w.heard = nil
	broken := lbhttp.NewTransport(b, lbhttp.WithWatcher(&w), lbhttp.WithBase(panicking{}))
	require.Panics(t, func() { _, _ = broken.RoundTrip(request(t, http.MethodGet, nil)) })
	require.Len(t, w.heard, 2, "a panic ends the attempt too: %v", w.heard)
}
