package lbhttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host"
)

// reply is what a scripted replica does with one attempt.
type reply struct {
	after  time.Duration
	status int           // 0: the connection breaks
	deaf   bool          // goes on when the attempt is cancelled
	body   string        // of the answer
	trails time.Duration // from the headers to the end of the body
	breaks bool          // the body breaks off instead of ending
	panics bool
}

// scripted is a base transport whose replicas follow a script, on the clock of a synctest bubble. It keeps count of
// the bodies that it gave and that were closed, and of the endpoints that each query came to, by X-Query.
type scripted struct {
	script func(host string, r *http.Request) reply

	mu           sync.Mutex
	seen         map[string][]string
	sent         int
	open, closed int
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if s.seen == nil {
		s.seen = map[string][]string{}
	}
	query := r.Header.Get("X-Query")
	s.seen[query] = append(s.seen[query], r.URL.Host)
	s.sent++
	s.mu.Unlock()
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	do := s.script(r.URL.Host, r)
	gone := r.Context().Done()
	if do.deaf {
		gone = nil
	}
	select {
	case <-gone:
		return nil, r.Context().Err()
	case <-time.After(do.after):
	}
	if r.Header.Get("X-Query") != query { // a slow connection writes the request's head late
		panic("the caller changed a request that is under way")
	}
	if do.panics {
		panic("on purpose")
	}
	if do.status == 0 {
		return nil, syscall.ECONNRESET
	}
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	return &http.Response{
		StatusCode: do.status, Header: http.Header{"X-From": {r.URL.Host}}, ContentLength: int64(len(do.body)),
		Body: &scriptedBody{s: s, ctx: r.Context(), Reader: strings.NewReader(do.body), do: do},
	}, nil
}

// attempts are the endpoints that a query came to, in order.
func (s *scripted) attempts(query string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[query]
}

func (s *scripted) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open - s.closed
}

type scriptedBody struct {
	*strings.Reader
	s    *scripted
	ctx  context.Context
	do   reply
	once sync.Once
}

func (b *scriptedBody) Read(p []byte) (int, error) {
	if b.do.trails > 0 {
		select {
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		case <-time.After(b.do.trails):
		}
	}
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.do.breaks {
		return 0, io.ErrUnexpectedEOF
	}
	return b.Reader.Read(p)
}

func (b *scriptedBody) Close() error {
	b.once.Do(func() {
		b.s.mu.Lock()
		b.s.closed++
		b.s.mu.Unlock()
	})
	return nil
}

// fleetOf gives the balancer n endpoints, named and reached as r0, r1, ….
func fleetOf(t testing.TB, b *host.Balancer, n int) {
	t.Helper()
	eps := make([]host.Endpoint, n)
	for i := range eps {
		name := "r" + string(rune('0'+i))
		eps[i] = host.Endpoint{Name: name, Addr: "http://" + name}
	}
	require.NoError(t, b.SetEndpoints(eps))
}
