package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// rawReplica answers every request with 200 and keeps each byte that came.
type rawReplica struct {
	url string

	mu    sync.Mutex
	fresh []*strings.Builder // of connections on which something came, in that order
}

func startRawReplica(t *testing.T) *rawReplica {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	r := &rawReplica{url: "http://" + ln.Addr().String()}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()
	return r
}

func (r *rawReplica) serve(c net.Conn) {
	defer c.Close()
	heard := &strings.Builder{}
	in := bufio.NewReader(io.TeeReader(c, writerFunc(func(p []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if heard.Len() == 0 {
			r.fresh = append(r.fresh, heard)
		}
		heard.Write(p)
	})))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// take returns what came since it was last asked, by connection.
func (r *rawReplica) take() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.fresh {
		out = append(out, c.String())
		c.Reset()
	}
	r.fresh = nil
	return out
}

var (
	strictLine  = regexp.MustCompile(`^[A-Z]+ /[!-~]* HTTP/1\.1$`)
	strictField = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\\t\\x20-\\x7e\\x80-\\xff]*)$")
	strictSize  = regexp.MustCompile(`^[0-9a-f]+$`)
	hopByHop    = regexp.MustCompile(`(?i)^(keep-alive|proxy-connection|proxy-authorization|proxy-authenticate|te|upgrade|http2-settings)$`)
)

// strictly reads requests as the strictest replica would: it takes nothing that two parsers could read in two ways. It
// returns the lines of those that are whole. One that broke off is none: its connection was closed.
func strictly(t *testing.T, text string) (lines []string) {
	t.Helper()
	for text != "" {
		head, rest, ok := strings.Cut(text, "\r\n\r\n")
		if !ok {
			return lines
		}
		fields := strings.Split(head, "\r\n")
		require.Regexp(t, strictLine, fields[0])
		line := strings.TrimSuffix(fields[0], " HTTP/1.1")
		length, chunked, hosts := -1, false, 0
		for _, f := range fields[1:] {
			m := strictField.FindStringSubmatch(f)
			require.NotNil(t, m, "a field that parsers could read in two ways: %q", f)
			switch name := strings.ToLower(m[1]); {
			case name == "host":
				hosts++
			case name == "content-length":
				require.Negative(t, length, "two lengths")
				n, err := strconv.Atoi(m[2])
				require.NoError(t, err)
				length = n
			case name == "transfer-encoding":
				require.False(t, chunked, "two encodings")
				require.Equal(t, "chunked", m[2])
				chunked = true
			case name == "connection":
				require.Equal(t, "Upgrade", m[2])
			case hopByHop.MatchString(name):
				require.Contains(t, head, "\r\nConnection: Upgrade", f)
			}
		}
		require.Equal(t, 1, hosts, "one Host")
		require.False(t, chunked && length >= 0, "a length and an encoding")
		text = rest
		switch {
		case chunked:
			if text, ok = chunks(t, text); !ok {
				return lines
			}
		case length > len(text):
			return lines
		case length > 0:
			text = text[length:]
		}
		lines = append(lines, line)
	}
	return lines
}

// chunks skips a chunked body.
func chunks(t *testing.T, text string) (rest string, whole bool) {
	t.Helper()
	for {
		size, after, ok := strings.Cut(text, "\r\n")
		if !ok {
			return "", false
		}
		require.Regexp(t, strictSize, size)
		n, err := strconv.ParseInt(size, 16, 32)
		require.NoError(t, err)
		if n == 0 {
			_, after, ok = strings.Cut("\r\n"+after, "\r\n\r\n") // trailers
			return after, ok
		}
		if int(n)+2 > len(after) {
			return "", false
		}
		require.Equal(t, "\r\n", after[n:n+2])
		text = after[n+2:]
	}
}
