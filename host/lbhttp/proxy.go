package lbhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"path"
	"strings"
	"sync"

	"github.com/headroom-lb/headroom/host"
)

// NewProxy makes a reverse proxy over a balancer. Answers are flushed as they come, upgrades and
// trailers pass, and the caller's Host and query string go on unchanged. X-Forwarded-For, -Host
// and -Proto are set from the connection, so that users cannot forge them; behind another proxy,
// replace Rewrite.
//
// Errors are one line of text and never say more than users should know: 503 when no replica is
// available, 504 when time ran out, 502 when a replica gave no answer that can be passed on, 400 for
// a request target without a path. Replace ErrorHandler to log them; what it receives is what
// [Transport.RoundTrip] returns.
func NewProxy(b *host.Balancer, opts ...Option) *httputil.ReverseProxy {
	return NewTransport(b, opts...).Proxy()
}

// Proxy makes a reverse proxy over the transport, as [NewProxy] does.
func (t *Transport) Proxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // nothing here depends on its parameters
			r.SetXForwarded()
		},
		Transport:     guarded{t},
		FlushInterval: -1,
		BufferPool:    &buffers{},
		ErrorHandler:  answerError,
	}
}

// guarded keeps users away from the replicas' probe handlers, also by paths that many servers read as theirs.
type guarded struct{ *Transport }

func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := req.URL.Path
	if g.opts.probePath == "" || asked != g.opts.probePath && (path.Clean(asked) != g.opts.probePath || strings.HasSuffix(asked, "/")) {
		return g.Transport.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	const text = "not found\n"
	return &http.Response{
		StatusCode:    http.StatusNotFound,
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		Body:          io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)),
		Request:       req,
	}, nil
}

// statusClientGone is written for callers who left; only logs before the proxy see it.
const statusClientGone = 499

func answerError(w http.ResponseWriter, r *http.Request, err error) {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(r.Context().Err(), context.Canceled):
		w.WriteHeader(statusClientGone)
	case errors.Is(err, errOpaque):
		http.Error(w, "the request target must be a path or an http URL", http.StatusBadRequest)
	case errors.Is(err, ErrNotPlaced):
		http.Error(w, "no replica available", http.StatusServiceUnavailable)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		http.Error(w, "the replica took too long", http.StatusGatewayTimeout)
	default:
		http.Error(w, "the replica gave no answer", http.StatusBadGateway)
	}
}

// buffers lends copy buffers to concurrent answers.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return p[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }
