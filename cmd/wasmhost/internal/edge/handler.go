package edge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/lifecycle"
)

// Handler holds requests to the config before they reach next.
func (e *Edge) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := newStream(e, w, r)
		defer s.end()
		if c := connOf(lifecycle.Conn(r.Context())); c != nil && !c.admitted() {
			w.Header().Set("Retry-After", "1")
			e.turnAway(w, Connections, http.StatusServiceUnavailable, "too many connections")
			return
		}
		if fields(r.Header) > e.config.MaxFields {
			e.turnAway(w, Fields, http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("a request may have %d header fields", e.config.MaxFields))
			return
		}
		if r.Method == http.MethodConnect {
			w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
			e.turnAway(w, Target, http.StatusMethodNotAllowed, "this proxy is no tunnel")
			return
		}
		if r.RequestURI == "*" || !slices.Contains([]string{"", "http", "https"}, r.URL.Scheme) {
			e.turnAway(w, Target, http.StatusBadRequest, "the request target must be a path or an http URL")
			return
		}
		if most := int64(e.config.MaxBody); most > 0 && r.ContentLength > most {
			e.turnAway(w, BodySize, http.StatusRequestEntityTooLarge, tooLong(most))
			return
		}
		next.ServeHTTP(&writer{w, s}, s.request(r))
	})
}

// turnAway answers a request that goes no further, and ends its connection: what follows on it may be a body.
func (e *Edge) turnAway(w http.ResponseWriter, reason Reason, status int, text string) {
	e.refuse(reason)
	w.Header().Set("Connection", "close")
	http.Error(w, text, status)
}

func tooLong(most int64) string { return fmt.Sprintf("the body may have %d bytes", most) }

// fields counts header fields as they were sent: a name that comes twice counts twice.
func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

// otherProtocols are upgrades that must not pass: behind them a replica would read requests that nobody here sees.
var otherProtocols = []string{"h2c", "http", "tls"}

// upgrades removes them from a request. RFC 9110 7.8 lets a server go on as if they had not been offered.
func upgrades(r *http.Request) *http.Request {
	offered := r.Header["Upgrade"]
	if len(offered) == 0 {
		return r
	}
	var left []string
	for token := range strings.SplitSeq(strings.Join(offered, ","), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(token), "/")
		if name != "" && !slices.Contains(otherProtocols, strings.ToLower(name)) {
			left = append(left, strings.TrimSpace(token))
		}
	}
	r = r.WithContext(r.Context())
	r.Header = r.Header.Clone()
	r.Header.Del("Upgrade")
	r.Header.Del("Http2-Settings")
	if len(left) > 0 {
		r.Header.Set("Upgrade", strings.Join(left, ", "))
	}
	return r
}

// Fault is what a client did wrong while its request was under way.
type Fault struct {
	status int
	text   string
}

type streamKey struct{}

// FaultOf is the fault of the request of a context, or nil. A proxy that gets no answer because the client's body broke
// off asks here.
func FaultOf(ctx context.Context) *Fault {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		return s.fault.Load()
	}
	return nil
}

// Answer tells the client.
func (f *Fault) Answer(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	http.Error(w, f.text, f.status)
}

func soon(d time.Duration) time.Time { return time.Now().Add(d) }
