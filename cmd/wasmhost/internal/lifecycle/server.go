package lifecycle

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves one handler and knows how many requests are open, and how many of them have been upgraded, such as
// to a WebSocket.
type Server struct {
	http     http.Server
	open     atomic.Int64
	upgraded sync.Map // from net.Conn to nothing: connections that a handler took over and has not left
	cut      context.CancelFunc
	done     chan error
}

// connKey is where a request's context keeps its connection.
type connKey struct{}

// Conn is the connection that a request of a Server came on; nil for a request of another server.
func Conn(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return c
}

// Start serves the handler on ln, over TLS if the server is tuned to have it. What a handler does after it took a
// connection over counts as its request.
func Start(ln net.Listener, h http.Handler, tune ...func(*http.Server)) *Server {
	base, cut := context.WithCancel(context.Background())
	s := &Server{done: make(chan error, 1), cut: cut}
	s.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.open.Add(1)
			defer s.open.Add(-1)
			defer s.upgraded.Delete(r.Context().Value(connKey{}))
			h.ServeHTTP(w, r)
		}),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateHijacked {
				s.upgraded.Store(c, nil)
			}
		},
		// A client that never ends its headers must not hold a connection for ever.
		ReadHeaderTimeout: 10 * time.Second,
	}
	for _, f := range tune {
		f(&s.http)
	}
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(ln net.Listener) error { return s.http.ServeTLS(ln, "", "") }
	}
	go func() { s.done <- serve(ln) }()
	return s
}

// Failed delivers the error of a server that stopped by itself.
func (s *Server) Failed() <-chan error { return s.done }

// cutGrace is how long handlers have to return once they were cut off.
const cutGrace = time.Second

// Drain stops accepting and waits for open requests and upgraded connections, at most the given time. What is open
// then is cut off and said in the error.
func (s *Server) Drain(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if ctx.Err() == nil && err != nil {
		return err
	}
	s.settle(ctx) // Shutdown does not wait for connections that were taken over
	open, upgraded := s.open.Load(), int64(0)
	s.upgraded.Range(func(any, any) bool { upgraded++; return true })
	_ = s.http.Close() // the requests that it cuts off are what the error below tells
	s.cut()
	if open == 0 {
		return nil // what held it up, if anything, were connections on which no request has come
	}
	grace, done := context.WithTimeout(context.Background(), cutGrace)
	defer done()
	s.settle(grace)
	var parts, advice []string
	if n := open - upgraded; n > 0 {
		parts, advice = append(parts, counted(n, "open request")), append(advice, "give a longer --drain")
	}
	if upgraded > 0 {
		parts = append(parts, counted(upgraded, "upgraded connection"))
		advice = append(advice, "have WebSocket clients connect again when they are cut off: they may stay for ever")
	}
	verb := "were"
	if open == 1 {
		verb = "was"
	}
	return fmt.Errorf("%s %s cut off after %s of draining: %s", strings.Join(parts, " and "), verb, within, strings.Join(advice, ", and "))
}

// settle waits until nothing is open or the context ends.
func (s *Server) settle(ctx context.Context) {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for s.open.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
