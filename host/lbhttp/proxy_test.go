package lbhttp_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
	"github.com/headroom-lb/headroom/host/replica"
)

func proxied(t testing.TB, b *host.Balancer, opts ...lbhttp.Option) *httptest.Server {
	t.Helper()
	return server(t, lbhttp.NewProxy(b, opts...))
}

func get(t testing.TB, s *httptest.Server, path string) *http.Response {
	t.Helper()
	resp, err := s.Client().Get(s.URL + path)
	require.NoError(t, err)
	return resp
}

func TestProxyPassesTheRequestOn(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join([]string{r.Host, r.RequestURI, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Host")}, " "))
	})
	s := proxied(t, b)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/a%2Fb?x=1;y=%zz", nil)
	require.NoError(t, err)
	r.Host = "shop.example"
	r.Header.Set("X-Forwarded-For", "6.6.6.6")
	resp, err := s.Client().Do(r)
	require.NoError(t, err)
	require.Equal(t, "shop.example /a%2Fb?x=1;y=%zz 127.0.0.1 shop.example", text(t, resp))
}

func TestProxyStreams(t *testing.T) {
	b := balancer(t, "random seed=1")
	more := make(chan struct{})
	served(t, b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum, X-Prequal-Rif")
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-more
		_, _ = io.WriteString(w, "second")
		w.Header().Set("X-Sum", "11")
		w.Header().Set("X-Prequal-Rif", "4")
		w.Header().Set(http.TrailerPrefix+"Endpoint-Load-Metrics", "TEXT named_metrics.rif=4")
	})
	resp := get(t, proxied(t, b), "/")
	p := make([]byte, 5)
	_, err := io.ReadFull(resp.Body, p)
	require.NoError(t, err)
	require.Equal(t, "first", string(p), "arrives before the rest exists")
	require.Equal(t, int64(1), b.Stats().InFlight)
	close(more)
	require.Equal(t, "second", text(t, resp))
	require.Equal(t, http.Header{"X-Sum": {"11"}}, resp.Trailer, "trailers are kept, readings are not")
	outcomes(t, b, 1, 0, 0, 0)
}

func TestProxyStreamsKnownLengths(t *testing.T) {
	b := balancer(t, "random seed=1")
	more := make(chan struct{})
	served(t, b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "11")
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-more
		_, _ = io.WriteString(w, "second")
	})
	time.AfterFunc(5*time.Second, func() { close(more) })
	asked := time.Now()
	resp := get(t, proxied(t, b), "/")
	_, err := io.ReadFull(resp.Body, make([]byte, 5))
	require.NoError(t, err)
	require.Less(t, time.Since(asked), 4*time.Second, "held back until the rest came")
	more <- struct{}{}
	require.Equal(t, "second", text(t, resp))
}

func TestProxyEarlyHints(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "page")
	})
	var hints atomic.Int32
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == 103 && h.Get("Link") != "" {
				hints.Add(1)
			}
			return nil
		},
	})
	s := proxied(t, b)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	require.NoError(t, err)
	resp, err := s.Client().Do(r)
	require.NoError(t, err)
	require.Equal(t, "page", text(t, resp))
	require.Equal(t, int32(1), hints.Load())
}

func TestProxyKeepsCompression(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "page")
		_ = z.Close()
	})
	s := proxied(t, b)
	s.Client().Transport.(*http.Transport).DisableCompression = true
	resp := get(t, s, "/")
	defer resp.Body.Close()
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	z, err := gzip.NewReader(resp.Body)
	require.NoError(t, err)
	page, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, "page", string(page))
}

func TestProxyClientAbort(t *testing.T) {
	b := balancer(t, "random seed=1")
	left := make(chan struct{})
	served(t, b, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	s := proxied(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	require.NoError(t, err)
	resp, err := s.Client().Do(r)
	require.NoError(t, err)
	require.Equal(t, int64(1), b.Stats().InFlight)
	cancel()
	_ = resp.Body.Close()
	<-left
	outcomes(t, b, 0, 0, 0, 1)
}

func TestProxyRawUpgrade(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Prequal-Rif: 1\r\n\r\n")
		_, _ = io.Copy(c, rw)
	})
	c, err := net.Dial("tcp", proxied(t, b).Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, 101, resp.StatusCode)
	require.Empty(t, resp.Header.Values("X-Prequal-Rif"))
	for _, word := range []string{"one\n", "two\n"} {
		_, err = io.WriteString(c, word)
		require.NoError(t, err)
		back, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, word, back)
		require.Equal(t, int64(1), b.Stats().InFlight, "open while the conversation lasts")
	}
	require.NoError(t, c.Close())
	outcomes(t, b, 1, 0, 0, 0)
}

func TestProxyErrors(t *testing.T) {
	b := balancer(t, "random seed=1")
	s := proxied(t, b)
	resp := get(t, s, "/")
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "no replica available\n", text(t, resp))

	dead := refusing(t)
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: dead}, {Name: "b", Addr: dead}}))
	resp = get(t, s, "/")
	require.Equal(t, 502, resp.StatusCode)
	require.Equal(t, "the replica gave no answer\n", text(t, resp))

	slow := balancer(t, "random seed=1")
	served(t, slow, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	proxy := lbhttp.NewProxy(slow)
	hurried := server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	resp = get(t, hurried, "/")
	require.Equal(t, 504, resp.StatusCode)
	require.Equal(t, "the replica took too long\n", text(t, resp))
	outcomes(t, slow, 0, 1, 0, 0)
}

func TestProxyKeepsUsersFromProbes(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, says("reached"))
	for path, c := range map[string]struct {
		opt  []lbhttp.Option
		want int
	}{
		replica.DefaultPath:       {nil, 404},
		replica.DefaultPath + "/": {nil, 200},
		"/load":                   {[]lbhttp.Option{lbhttp.WithProbePath("/load")}, 404},
		replica.DefaultPath + "?": {[]lbhttp.Option{lbhttp.WithProbePath("")}, 200},
	} {
		resp := get(t, proxied(t, b, c.opt...), path)
		require.Equal(t, c.want, resp.StatusCode, path)
		_ = text(t, resp)
	}
}

func TestReadingsAreRecordedAndStripped(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request) {
		replica.SetHeaders(w.Header(), engine.Reading{RIF: 5, Latency: 2 * engine.Millisecond})
		w.Header().Set("Endpoint-Load-Metrics-Bin", "CgA=")
		w.Header().Set("X-Endpoint-Load-Metrics", "TEXT a=1")
		w.Header().Set("X-Rif", "the application's own")
		_, _ = io.WriteString(w, "ok")
	}
	for _, record := range []bool{true, false} {
		b := balancer(t, "prequal seed=1")
		served(t, b, answer, answer, answer)
		s := proxied(t, b, lbhttp.WithPiggyback(record))
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			resp := get(t, s, path)
			require.Equal(t, "ok", text(t, resp))
			for name := range resp.Header {
				require.NotContains(t, strings.ToLower(name), "prequal")
				require.NotContains(t, strings.ToLower(name), "load-metrics")
			}
			require.Equal(t, "the application's own", resp.Header.Get("X-Rif"))
		}
		if !record {
			require.Empty(t, b.Entries())
			continue
		}
		require.NotEmpty(t, b.Entries())
		for _, e := range b.Entries() {
			require.Equal(t, uint32(5), e.RawRIF)
			require.Equal(t, 2*engine.Millisecond, e.RawLatency)
		}
	}
}

// A replica with the middleware's piggyback, a proxy that records: no prober at all.
func TestPiggybackEndToEnd(t *testing.T) {
	b := balancer(t, "prequal seed=1")
	m, err := replica.NewMonitor(estimatorDefaults, replica.WithPiggyback())
	require.NoError(t, err)
	busy := m.Begin()
	defer busy.Withdraw()
	served(t, b, m.Middleware(says("ok")).ServeHTTP)
	resp := get(t, proxied(t, b), "/")
	require.Equal(t, "ok", text(t, resp))
	es := b.Entries()
	require.Len(t, es, 1)
	require.Equal(t, uint32(1), es[0].RawRIF)
}
