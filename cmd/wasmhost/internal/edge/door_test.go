package edge

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ask = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestConnectionsHaveALimit(t *testing.T) {
	served(t, func(c *Config) { c.MaxConnections = 2 }, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") },
		func(t *testing.T, e *Edge, p *pipes) {
			a, b := p.dial(), p.dial()
			inA := bufio.NewReader(a)
			say(t, a, ask)
			code, _ := status(t, inA)
			require.Equal(t, 200, code)

			c := p.dial()
			say(t, c, ask)
			code, text := status(t, bufio.NewReader(c))
			assert.Equal(t, 503, code)
			assert.Equal(t, "too many connections\n", text)
			_ = closedBy(t, c)
			assert.EqualValues(t, 1, e.Refused(Connections))
			synctest.Wait()
			assert.EqualValues(t, 2, e.Open())

			d := p.dial() // no place for it yet, but by the time that its request comes
			require.NoError(t, b.Close())
			synctest.Wait()
			for range 2 {
				say(t, d, ask)
				code, _ = status(t, bufio.NewReader(d))
				assert.Equal(t, 200, code)
			}
			say(t, a, ask)
			code, _ = status(t, inA)
			assert.Equal(t, 200, code, "who is in stays in")
			assert.EqualValues(t, 1, e.Refused(Connections))
			require.NoError(t, a.Close())
			require.NoError(t, d.Close())
			synctest.Wait()
			assert.Zero(t, e.Open())
			assert.Empty(t, e.door.places)
			assert.Empty(t, e.door.lobby)
		})
}

// TestTheLobbyIsBounded has more connections than places and lobby: the rest are not taken at all, and none is lost.
func TestTheLobbyIsBounded(t *testing.T) {
	served(t, func(c *Config) { c.MaxConnections = 1 }, func(http.ResponseWriter, *http.Request) {},
		func(t *testing.T, e *Edge, p *pipes) {
			a, b, c := p.dial(), p.dial(), p.dial()
			synctest.Wait()
			assert.EqualValues(t, 2, e.Open(), "one in its place, one in the lobby")
			select {
			case p.conns <- nil:
				t.Error("the listener accepts beyond the lobby")
			default:
			}
			require.NoError(t, a.Close())
			require.NoError(t, b.Close())
			synctest.Wait()
			say(t, c, ask)
			code, _ := status(t, bufio.NewReader(c))
			assert.Equal(t, 200, code)
			require.NoError(t, c.Close())
		})
}

func TestConnectionsAreCountedWithoutALimit(t *testing.T) {
	served(t, func(*Config) {}, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, e *Edge, p *pipes) {
		a := p.dial()
		synctest.Wait()
		assert.EqualValues(t, 1, e.Open())
		require.NoError(t, a.Close())
		synctest.Wait()
		assert.Zero(t, e.Open())
	})
}

func TestHeadersHaveLimits(t *testing.T) {
	served(t, func(c *Config) { c.MaxFields, c.MaxHeader = 20, 16<<10 }, func(http.ResponseWriter, *http.Request) {},
		func(t *testing.T, e *Edge, p *pipes) {
			for _, c := range []struct {
				headers string
				code    int
			}{
				{strings.Repeat("X: a\r\n", 20), 200},
				{strings.Repeat("X: a\r\n", 21), 431},
				{"X: " + strings.Repeat("a", 15<<10) + "\r\n", 200},
				{"X: " + strings.Repeat("a", 16<<10) + "\r\n", 431},
			} {
				conn := p.dial()
				go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n"+c.headers+"\r\n") }()
				code, _ := status(t, bufio.NewReader(conn))
				assert.Equal(t, c.code, code, "%d bytes", len(c.headers))
				require.NoError(t, conn.Close())
			}
			assert.EqualValues(t, 1, e.Refused(Fields), "the server itself refuses what is too long")
		})
}

// TestUpgradesToHTTPDoNotPass shows the handler what is left of an offer.
func TestUpgradesToHTTPDoNotPass(t *testing.T) {
	var seen http.Header
	served(t, func(*Config) {}, func(_ http.ResponseWriter, r *http.Request) { seen = r.Header },
		func(t *testing.T, _ *Edge, p *pipes) {
			for offered, left := range map[string]string{
				"Upgrade: h2c": "", "Upgrade: H2C": "", "Upgrade: HTTP/2.0": "", "Upgrade: TLS/1.2, h2c": "",
				"Upgrade: websocket": "websocket", "Upgrade: h2c, websocket": "websocket", "Upgrade: websocket\r\nUpgrade: h2c": "websocket",
			} {
				conn := p.dial()
				say(t, conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"+offered+"\r\n\r\n")
				code, _ := status(t, bufio.NewReader(conn))
				assert.Equal(t, 200, code)
				assert.Equal(t, left, strings.Join(seen["Upgrade"], "|"), offered)
				assert.Empty(t, seen["Http2-Settings"])
				require.NoError(t, conn.Close())
			}
		})
}
