// Package lifecycle opens listeners with errors that say what to do, and serves HTTP until it is told to drain.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// Listen opens a TCP listener; flag names the setting that the address came from.
func Listen(flag, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return ln, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %s is in use: stop what listens there or choose another port (port 0 takes a free one)", flag, addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s %s is not permitted: choose a port above 1023", flag, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s %s is not an address of this machine: choose one, such as 127.0.0.1:8080", flag, addr)
	}
	return nil, fmt.Errorf("%s %s cannot be listened on: %w", flag, addr, err)
}

// CheckAddr refuses what is not host:port, before anything is opened.
func CheckAddr(flag, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%s %q is not host:port: give one such as 127.0.0.1:8080", flag, addr)
	}
	return nil
}

// Server serves one handler and knows how many requests are open.
type Server struct {
	http http.Server
	open atomic.Int64
	done chan error
}

// Start serves the handler on ln.
func Start(ln net.Listener, h http.Handler) *Server {
	s := &Server{done: make(chan error, 1)}
	s.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.open.Add(1)
			defer s.open.Add(-1)
			h.ServeHTTP(w, r)
		}),
		// A client that never ends its headers must not hold a connection for ever.
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { s.done <- s.http.Serve(ln) }()
	return s
}

// Failed delivers the error of a server that stopped by itself.
func (s *Server) Failed() <-chan error { return s.done }

// Drain stops accepting and waits for open requests, at most the given time. What is open then is cut off and
// said in the error.
func (s *Server) Drain(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err == nil {
		return nil
	}
	open := s.open.Load()
	_ = s.http.Close() // the requests that it cuts off are what the error below tells
	if errors.Is(err, context.DeadlineExceeded) {
		if open == 0 {
			return nil // what held it up were connections on which no request has come
		}
		return fmt.Errorf("%d open requests were cut off after %s of draining: give a longer --drain", open, within)
	}
	return err
}
