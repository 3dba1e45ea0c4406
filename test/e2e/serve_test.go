package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// get returns status, body and the replica that answered; status 0 if there was no answer.
func get(url string, header ...string) (status int, body, replica string) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error(), ""
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error(), ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error(), ""
	}
	return resp.StatusCode, string(b), resp.Header.Get("X-Replica")
}

// load sends queries from a few clients until it is told to stop, and tallies what came back.
type load struct {
	stop chan struct{}
	wg   sync.WaitGroup
	sent atomic.Int64

	mu       sync.Mutex
	statuses map[int]int
	replicas map[string]int
	trouble  string
}

func startLoad(url string, clients int) *load {
	l := &load{stop: make(chan struct{}), statuses: map[int]int{}, replicas: map[string]int{}}
	for range clients {
		l.wg.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				status, body, replica := get(url)
				l.sent.Add(1)
				l.mu.Lock()
				l.statuses[status]++
				l.replicas[replica]++
				if status != http.StatusOK && l.trouble == "" {
					l.trouble = body
				}
				l.mu.Unlock()
			}
		})
	}
	return l
}

// during clears the tally of replicas, waits for n more queries and returns it.
func (l *load) during(t *testing.T, n int64) map[string]int {
	t.Helper()
	l.mu.Lock()
	l.replicas = map[string]int{}
	l.mu.Unlock()
	until := l.sent.Load() + n
	require.Eventually(t, func() bool { return l.sent.Load() >= until }, patience, 5*time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for k, v := range l.replicas {
		out[k] = v
	}
	return out
}

func (l *load) end() {
	close(l.stop)
	l.wg.Wait()
}

// TestReplicaDiesAndComesBack kills one of three replicas under load: every query is answered with 200, the others
// carry the load, and the replica gets queries again once it is back.
func TestReplicaDiesAndComesBack(t *testing.T) {
	for _, spec := range []string{"prequal", "round_robin"} {
		t.Run(spec, func(t *testing.T) {
			a, aURL := startReplica(t, "a", "127.0.0.1:0")
			b, bURL := startReplica(t, "b", "127.0.0.1:0")
			c, cURL := startReplica(t, "c", "127.0.0.1:0")
			p, proxy, _ := startProxy(t, []string{aURL, bURL, cURL}, "--spec", spec)

			l := startLoad(proxy, 8)
			before := l.during(t, 300)
			require.Len(t, before, 3, "all three serve: %v", before)

			b.stop(syscall.SIGKILL)
			l.during(t, 50) // what was on its way
			without := l.during(t, 300)
			require.Zero(t, without["b"])
			require.Positive(t, without["a"])
			require.Positive(t, without["c"])

			startReplica(t, "b", strings.TrimPrefix(bURL, "http://"))
			require.Eventually(t, func() bool { return l.during(t, 50)["b"] > 0 }, patience, time.Millisecond, "b serves again")
			l.end()
			require.Equal(t, map[int]int{http.StatusOK: int(l.sent.Load())}, l.statuses, l.trouble)

			require.Zero(t, p.stop(syscall.SIGTERM))
			require.Zero(t, a.stop(syscall.SIGTERM))
			require.Zero(t, c.stop(syscall.SIGTERM))
		})
	}
}

// TestTerminationDrains sends SIGTERM while queries are open: they are answered whole, new ones are turned away,
// readiness fails at once, and the exit code is 0.
func TestTerminationDrains(t *testing.T) {
	replica, url := startReplica(t, "a", "127.0.0.1:0")
	p, proxy, admin := startProxy(t, []string{url})
	status, body, _ := get(admin + "/readyz")
	require.Equal(t, http.StatusOK, status, body)

	const open = 5
	var wg sync.WaitGroup
	var answered atomic.Int64
	for range open {
		wg.Go(func() {
			if status, _, _ := get(proxy, "X-Work-Us", "1500000"); status == http.StatusOK {
				answered.Add(1)
			}
		})
	}
	requireServing(t, url, open)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(proxy, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, patience, time.Millisecond, "the listener closes")
	status, body, _ = get(admin + "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "draining\n", body)
	wg.Wait()
	require.EqualValues(t, open, answered.Load(), "every open query was answered")
	require.Zero(t, p.wait())

	// The replica drains in the same way.
	wg.Go(func() { get(url, "X-Work-Us", "500000") })
	requireServing(t, url, 1)
	require.Zero(t, replica.stop(syscall.SIGTERM))
	wg.Wait()
}

// TestDrainGivesUpInTime cuts off what does not end, says so, and exits 1.
func TestDrainGivesUpInTime(t *testing.T) {
	_, url := startReplica(t, "a", "127.0.0.1:0")
	p, proxy, _ := startProxy(t, []string{url}, "--drain", "100ms")
	gone := make(chan int, 1)
	go func() {
		status, _, _ := get(proxy, "X-Work-Us", "20000000")
		gone <- status
	}()
	requireServing(t, url, 1)
	require.Equal(t, 1, p.stop(syscall.SIGTERM))
	require.Contains(t, p.text(&p.stderr), "1 open request was cut off after 100ms of draining: give a longer --drain")
	require.Zero(t, <-gone)
}

// TestDrainWaitsForUpgrades keeps a conversation over an upgraded connection up after SIGTERM, until the client ends it
// or the drain does.
func TestDrainWaitsForUpgrades(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	}))
	defer echo.Close()
	for name, drain := range map[string]string{"the client ends it": "60s", "the drain ends it": "300ms"} {
		t.Run(name, func(t *testing.T) {
			p, proxy, _ := startProxy(t, []string{echo.URL}, "--spec", "round_robin", "--drain", drain)
			conn, err := net.Dial("tcp", strings.TrimPrefix(proxy, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			in := bufio.NewReader(conn)
			say := func(text, until string) {
				_, err := io.WriteString(conn, text)
				require.NoError(t, err)
				for line := ""; line != until; {
					line, err = in.ReadString('\n')
					require.NoError(t, err)
				}
			}
			say("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", "\r\n")
			say("before\n", "before\n")
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
			p.find(&p.stderr, `msg=draining in_flight=1`)
			if drain == "60s" {
				say("after\n", "after\n")
				require.NoError(t, conn.Close())
				require.Zero(t, p.wait())
				require.Contains(t, p.text(&p.stderr), "msg=stopped")
				return
			}
			require.Equal(t, 1, p.wait())
			require.Contains(t, p.text(&p.stderr), "1 upgraded connection was cut off after 300ms of draining: have WebSocket clients connect again")
			require.NotContains(t, p.text(&p.stderr), "placements still open")
		})
	}
}

// requireServing waits until a replica has this many queries in its slots.
func requireServing(t *testing.T, url string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, body, _ := get(url + "/control")
		var st struct{ Serving int }
		return json.Unmarshal([]byte(body), &st) == nil && st.Serving == n
	}, patience, 5*time.Millisecond)
}

// TestAdmin reads metrics and the live pool of a proxy under load, and takes an endpoint out and back in.
func TestAdmin(t *testing.T) {
	_, aURL := startReplica(t, "a", "127.0.0.1:0")
	_, bURL := startReplica(t, "b", "127.0.0.1:0")
	_, cURL := startReplica(t, "c", "127.0.0.1:0")
	_, proxy, admin := startProxy(t, []string{aURL, bURL, cURL}, "--spec", "prequal seed=3")
	l := startLoad(proxy, 4)
	defer l.end()
	l.during(t, 100)

	status, metrics, _ := get(admin + "/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Regexp(t, `(?m)^headroom_decisions_total\{regime="cold"\} [1-9]`, metrics)
	require.Regexp(t, `(?m)^headroom_probes_total\{result="answered"\} [1-9]`, metrics)
	require.Regexp(t, `(?m)^headroom_endpoints\{status="ready"\} 3$`, metrics)
	require.Regexp(t, `(?m)^headroom_requests_total\{code="200"\} [1-9]`, metrics)
	require.NotContains(t, metrics, strings.TrimPrefix(aURL, "http://"), "no label names an endpoint")

	var pool struct {
		Spec      string
		Endpoints []struct{ Name, Status string }
		Entries   []struct {
			Endpoint string
			AgeMS    float64 `json:"age_ms"`
			Uses     int
		}
		Fit struct {
			Pool       int
			SmallFleet bool `json:"small_fleet"`
		}
	}
	// A pool of two can be empty for a moment between a decision and the next answer.
	require.Eventually(t, func() bool {
		_, body, _ := get(admin + "/pool")
		require.NoError(t, json.Unmarshal([]byte(body), &pool))
		return len(pool.Entries) > 0
	}, patience, time.Millisecond)
	require.Len(t, pool.Endpoints, 3)
	require.True(t, pool.Fit.SmallFleet)
	require.LessOrEqual(t, len(pool.Entries), pool.Fit.Pool)
	require.Less(t, pool.Entries[0].AgeMS, 1000.0, "no entry outlives max_age")
	require.Contains(t, pool.Spec, "prequal seed=3")
	_, spec, _ := get(admin + "/spec")
	require.Equal(t, pool.Spec+"\n", spec)

	name := pool.Endpoints[0].Name
	require.Equal(t, http.StatusOK, post(t, admin+"/status", `{"endpoint":"`+name+`","status":"draining"}`))
	l.during(t, 20) // what was on its way
	require.Zero(t, l.during(t, 100)["a"], "a draining endpoint gets no queries")
	require.Equal(t, http.StatusOK, post(t, admin+"/status", `{"endpoint":"`+name+`","status":"ready"}`))
	require.Eventually(t, func() bool { return l.during(t, 50)["a"] > 0 }, patience, time.Millisecond)

	require.Equal(t, http.StatusBadRequest, post(t, admin+"/status", `{"endpoint":"`+name+`","status":"tired"}`))
	require.Equal(t, http.StatusNotFound, post(t, admin+"/status", `{"endpoint":"nobody","status":"ready"}`))
	require.Equal(t, http.StatusBadRequest, post(t, admin+"/status", `{`))
}

func post(t *testing.T, url, body string) int {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestUnreachableEndpoint starts with an endpoint that is not there: a warning, and every query is served.
// A signal to reload does no harm where there is no file to read.
func TestHangupWithoutAFileServesOn(t *testing.T) {
	_, a := startReplica(t, "a", "127.0.0.1:0")
	p, proxy, _ := startProxy(t, []string{a})
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.find(&p.stderr, `(nothing to reload: the proxy was started without --config)`)
	status, _, _ := get(proxy)
	require.Equal(t, http.StatusOK, status)
	require.Zero(t, p.stop(syscall.SIGTERM))
}

func TestUnreachableEndpoint(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dead := "http://" + ln.Addr().String()
	require.NoError(t, ln.Close())
	_, url := startReplica(t, "a", "127.0.0.1:0")
	p, proxy, _ := startProxy(t, []string{dead, url}, "--spec", "random seed=1")
	p.find(&p.stderr, `level=WARN msg="endpoint fails; it is tried again until it answers" endpoint=127\.0\.0\.1:\d+ error="dial`)
	l := startLoad(proxy, 4)
	require.Equal(t, map[string]int{"a": 100}, atLeast(l.during(t, 100), 100))
	l.end()
	require.Equal(t, map[int]int{http.StatusOK: int(l.sent.Load())}, l.statuses, l.trouble)
}

// TestReplicaThatFailsHealthIsOut stops a replica under a policy that does not probe: it becomes unavailable, so that
// no query is spent on it, and comes back by itself. Then all fail: panic uses what there is.
func TestReplicaThatFailsHealthIsOut(t *testing.T) {
	a, aURL := startReplica(t, "a", "127.0.0.1:0")
	b, bURL := startReplica(t, "b", "127.0.0.1:0")
	p, proxy, admin := startProxy(t, []string{aURL, bURL}, "--spec", "round_robin", "--health-interval", "50ms", "--health-path", "/healthz")
	metric := func(line string) func() bool {
		return func() bool {
			_, metrics, _ := get(admin + "/metrics")
			return strings.Contains(metrics, line+"\n")
		}
	}
	require.True(t, metric(`headroom_endpoints{status="ready"} 2`)())
	b.stop(syscall.SIGKILL)
	require.Eventually(t, metric(`headroom_endpoints{status="unavailable"} 1`), patience, 5*time.Millisecond)
	require.True(t, metric(`headroom_endpoints_out{cause="check"} 1`)())
	p.find(&p.stderr, `level=WARN msg="endpoint fails; it is tried again until it answers" endpoint=127\.0\.0\.1:\d+ error=.*refused.* cause=check`)
	for range 20 {
		status, _, replica := get(proxy)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "a", replica)
	}
	startReplica(t, "b", strings.TrimPrefix(bURL, "http://"))
	require.Eventually(t, metric(`headroom_endpoints{status="ready"} 2`), patience, 5*time.Millisecond)
	p.find(&p.stderr, `level=INFO msg="endpoint answers again"`)
	require.Eventually(t, func() bool { _, _, replica := get(proxy); return replica == "b" }, patience, time.Millisecond)

	require.Equal(t, http.StatusOK, post(t, admin+"/status", `{"endpoint":"`+strings.TrimPrefix(bURL, "http://")+`","status":"draining"}`))
	a.stop(syscall.SIGKILL)
	require.Eventually(t, metric("headroom_panic 1"), patience, 5*time.Millisecond)
	require.True(t, metric(`headroom_endpoints{status="draining"} 1`)(), "panic does not overrule an operator")
	require.True(t, metric(`headroom_endpoints{status="ready"} 1`)())
	status, _, _ := get(proxy)
	require.Equal(t, http.StatusBadGateway, status, "it is tried")
}

// atLeast caps counts, so that they can be compared.
func atLeast(m map[string]int, n int) map[string]int {
	for k, v := range m {
		m[k] = min(v, n)
	}
	return m
}
