package e2e

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shape is something that a client may send so that proxy and replica read it in two ways.
type shape struct {
	name  string
	raw   string   // the bytes; an honest request for /end follows on the same connection
	codes []int    // what the client gets, that for /end among it if it comes
	seen  []string // the requests that the replica sees
	has   []string // in the bytes that it sees
	hides []string // not in those bytes
}

const (
	host = "Host: x\r\n"
	end  = "GET /end HTTP/1.1\r\nHost: end\r\nConnection: close\r\n\r\n"
	// smuggled is what an attacker wants a replica to take for a request of its own.
	smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
)

func posted(raw string) string { return "POST /a HTTP/1.1\r\n" + host + raw }

// TestSmuggling sends every shape through the proxy to a replica that keeps all bytes. Whatever was sent, the replica sees
// requests that can be read in one way only, none of them one that the proxy did not see, and the client gets as many
// answers as the proxy saw requests.
func TestSmuggling(t *testing.T) {
	replica := startRawReplica(t)
	_, proxy, _ := startProxy(t, []string{replica.url}, "--spec", "round_robin", "--health-interval", "0", "--h2c",
		"--stall-timeout", "500ms", "--max-header", "16KiB", "--max-header-fields", "64", "--max-body", "1KiB")
	addr := strings.TrimPrefix(proxy, "http://")
	require.GreaterOrEqual(t, len(shapes)+len(frames), 30)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			replica.take()
			if got := answers(t, addr, s.raw+end); got != nil || s.codes[0] < 400 { // what is refused may be cut off before the answer is read
				require.Equal(t, s.codes, got)
			}
			s.check(t, replica.take())
		})
	}
	for _, f := range frames {
		t.Run("h2 "+f.name, func(t *testing.T) {
			replica.take()
			require.Equal(t, f.want, f.send(t, addr))
			shape{seen: f.seen, has: f.has, hides: f.hides}.check(t, replica.take())
		})
	}
	shape{}.check(t, replica.take())
}

func (s shape) check(t *testing.T, heard []string) {
	t.Helper()
	var seen []string
	for _, conn := range heard {
		seen = append(seen, strictly(t, conn)...)
	}
	seen = slices.DeleteFunc(seen, func(line string) bool { return strings.HasSuffix(line, " /perhaps") })
	require.Equal(t, append([]string{}, s.seen...), append([]string{}, seen...))
	all := strings.Join(heard, "")
	for _, text := range s.has {
		require.Contains(t, all, text)
	}
	for _, text := range s.hides {
		require.NotContains(t, strings.ToLower(all), strings.ToLower(text))
	}
}

// answers sends raw bytes and returns the status of each answer until the proxy closes.
func answers(t *testing.T, addr, raw string) (codes []int) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	wrote := make(chan struct{})
	go func() { // a proxy may answer before it has read all
		_, _ = io.WriteString(conn, raw)
		close(wrote)
	}()
	defer func() { <-wrote }()
	in := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			timeout := net.Error(nil)
			require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the proxy neither answers nor closes")
			return codes
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return append(codes, resp.StatusCode) // it was closed with bytes of ours unread
		}
		codes = append(codes, resp.StatusCode)
	}
}
