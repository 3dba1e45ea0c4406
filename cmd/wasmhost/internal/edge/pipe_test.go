package edge

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/lifecycle"
)

// pipes is a listener in memory, so that time can be a test's own.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial is a new client.
func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// served runs a test in a bubble with an edge before a handler.
func served(t *testing.T, change func(*Config), h http.HandlerFunc, test func(t *testing.T, e *Edge, p *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		c := Defaults()
		change(&c)
		require.NoError(t, c.Validate())
		e, err := New(c, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		p := newPipes()
		quiet := func(s *http.Server) { s.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) }
		s := lifecycle.Start(e.Listener(p), e.Handler(h), e.Tune, quiet)
		test(t, e, p)
		_ = s.Drain(0) // what a test left open is cut off
		synctest.Wait()
	})
}

// say writes what a client says, which must be taken.
func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// status reads an answer to its end.
func status(t *testing.T, in *bufio.Reader) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// closedBy is when the server closes a connection, counted from now.
func closedBy(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	_, err := io.Copy(io.Discard, c)
	require.NoError(t, err, "the server closes, nothing else does")
	return time.Since(began)
}
