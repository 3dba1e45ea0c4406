package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// TestEndpointsFileIsFollowed changes the file under a proxy: a replica leaves and its open request ends in peace, a
// status set by an operator stays, and what is written wrong changes nothing.
func TestEndpointsFileIsFollowed(t *testing.T) {
	holding := make(chan struct{})
	var urls []string
	for _, name := range []string{"a", "b"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hold" {
				<-holding
			}
			_, _ = io.WriteString(w, name)
		}))
		defer s.Close()
		urls = append(urls, s.URL)
	}
	path := filepath.Join(t.TempDir(), "endpoints.json")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	one := `{"endpoints":[{"name":"a","address":"` + urls[0] + `"}]}`
	both := `{"endpoints":[{"name":"a","address":"` + urls[0] + `"},{"name":"b","address":"` + urls[1] + `"}]}`
	write(one)
	c := Defaults()
	c.Engine, c.Spec, c.File = "native", "round_robin seed=1", path
	require.NoError(t, c.Validate())
	var err error
	c.Endpoints, err = readEndpoints(path)
	require.NoError(t, err)
	b, _, free, err := newBalancer(context.Background(), c, slog.Default())
	require.NoError(t, err)
	defer func() { require.NoError(t, free()) }()
	h, err := newWatch(b, c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	proxy := newProxy(b, h, c, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	follow := followFile(path, h)
	go func() { follow(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()
	has := func(want map[string]engine.Status) {
		t.Helper()
		require.Eventually(t, func() bool {
			have := b.Endpoints()
			for _, ep := range have {
				if s, ok := want[ep.Name]; !ok || s != ep.Status {
					return false
				}
			}
			return len(have) == len(want)
		}, 10*time.Second, 10*time.Millisecond, "want %v", want)
	}
	ask := func(path string) string {
		w := httptest.NewRecorder()
		proxy.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Body.String()
	}

	held := make(chan string)
	go func() { held <- ask("/hold") }()
	require.Eventually(t, func() bool { return h.inFlight("a") == 1 }, 10*time.Second, time.Millisecond)
	write(both)
	has(map[string]engine.Status{"a": engine.StatusReady, "b": engine.StatusReady})
	write(both[:40])
	require.Eventually(t, func() bool { return h.keeper.Stats().Failing != nil }, 10*time.Second, 10*time.Millisecond)
	has(map[string]engine.Status{"a": engine.StatusReady, "b": engine.StatusReady})
	write(`{"endpoints":[{"name":"b","address":"` + urls[1] + `"}]}`)
	has(map[string]engine.Status{"a": engine.StatusDraining, "b": engine.StatusReady})
	require.Equal(t, "b", ask("/"))
	close(holding)
	require.Equal(t, "a", <-held)
	has(map[string]engine.Status{"b": engine.StatusReady})
	v := newView(b, h)
	require.Len(t, v.Endpoints, 1)

	admin := adminOf(b, h)
	w := httptest.NewRecorder()
	admin.ServeHTTP(w, httptest.NewRequest("POST", "/status", bytes.NewReader([]byte(`{"endpoint":"b","status":"draining"}`))))
	require.Equal(t, 200, w.Code, w.Body)
	write(both)
	has(map[string]engine.Status{"a": engine.StatusReady, "b": engine.StatusDraining})
}

func TestEndpointsFileMustBeRight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.json")
	_, err := readEndpoints(path)
	require.ErrorContains(t, err, path+": no such file")
	require.NoError(t, os.WriteFile(path, []byte(`{"endpoints":[{"address":"10.0.0.1:80"}]}`), 0o600))
	_, err = readEndpoints(path)
	require.EqualError(t, err, path+`:1:15: endpoint "10.0.0.1:80" is not a base URL: give one such as http://127.0.0.1:9001`)
}
