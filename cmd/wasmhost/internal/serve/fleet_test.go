package serve

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// routed is a fleet made of a file, with its admin listener and what rewrites the file.
func routed(t *testing.T, text string) (f *fleet, admin http.Handler, write func(string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	write = func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(text)
	read := func() (Config, error) {
		c := Defaults()
		if err := c.Load(file); err != nil {
			return c, err
		}
		return c, c.Validate()
	}
	c, err := read()
	require.NoError(t, err)
	c.Again = read
	log := slog.New(slog.DiscardHandler)
	f = newFleet(log, newRegistry(), len(c.Routes) > 0)
	t.Cleanup(func() { require.NoError(t, f.end()) })
	first, err := beginAll(t.Context(), c.served(), f)
	require.NoError(t, err)
	f.serve(first, 0)
	return f, newAdmin(f, new(atomic.Bool), newReloader(c, f, nil, log), ""), write
}

const nativeWithoutHealth = "engine: native\nhealth_interval: 0s\nhealth_failures: 0\nspec: prequal seed=1 min_pool=1\nroutes:\n"

func route(name, match, settings string) string {
	return "- name: " + name + "\n  match: {" + match + "}\n" + settings
}

// TestRoutesComeAndGoWithoutTouchingOthers reloads a proxy with two routes: one goes on with its pool and its open
// request, whatever becomes of the others, and what is wrong anywhere changes nothing.
func TestRoutesComeAndGoWithoutTouchingOthers(t *testing.T) {
	hold, arrived := make(chan struct{}), make(chan struct{}, 1)
	replica := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old/hold" {
			arrived <- struct{}{}
			<-hold
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer replica.Close()
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	mine := "  endpoints: [" + replica.URL + "]\n"
	kept := route("kept", "path: /kept", "  endpoints: [http://a, http://b]\n")
	f, admin, write := routed(t, nativeWithoutHealth+kept+route("old", "path: /old", mine))
	reload := func(code int, want ...string) {
		t.Helper()
		got, body := ask(admin, "POST", "/reload", "")
		require.Equal(t, code, got, body)
		for _, w := range want {
			require.Contains(t, body, w)
		}
	}
	ofKept, ofOld := f.named("kept"), f.named("old")
	require.NoError(t, ofKept.b.Record("a", engine.Reading{RIF: 3, Latency: 5}))
	require.NoError(t, ofKept.watch.monitor.SetAdmin("b", engine.StatusDraining))
	untouched := func() {
		t.Helper()
		require.Same(t, ofKept, f.named("kept"))
		require.EqualValues(t, 1, ofKept.b.Stats().Generation)
		require.EqualValues(t, 3, ofKept.b.Entries()[0].RawRIF)
		require.Equal(t, engine.StatusDraining, ofKept.b.Endpoints()[1].Status)
	}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	held := make(chan string)
	go func() { _, body := get("/old/hold"); held <- body }()
	<-arrived

	reload(200, `"changed": []`)
	write(nativeWithoutHealth + kept + route("new", "path: /new", mine) + route("old", "path: /older", mine+"  spec: round_robin seed=1\n"))
	reload(200, `"policy of old"`, `"route new added"`, `"match of old"`)
	untouched()
	require.Equal(t, "round_robin seed=1", f.named("old").b.Spec())
	code, body := get("/new/x")
	require.Equal(t, 200, code)
	require.Equal(t, "/new/x", body)
	code, _ = get("/old/x")
	require.Equal(t, 404, code)
	code, _ = get("/older/x")
	require.Equal(t, 200, code)

	good := f.routes()
	for text, want := range map[string]string{
		kept + route("old", "path: /old", mine+"  spec: fastest\n"):                            `route \"old\": --spec`,
		kept + route("old", "path: /old", mine+"  shards: 2\n"):                                `route "old": shards can only be changed by a restart`,
		kept + route("old", "path: /old", "  endpoints_file: no.json\n"):                       `route "old": endpoints_file can only be changed by a restart`,
		kept + route("extra", "path: /extra", "  endpoints_file: no.json\n"):                   `route "extra": no.json: no such file`,
		kept + route("old", "path: /kept", mine):                                               `has the same match`,
		strings.Replace(kept, "http://b", "http://c", 1) + route("old", "", mine+"  key: X\n"): `route "old": key can only be changed by a restart`,
	} {
		write(nativeWithoutHealth + text)
		reload(422, strings.ReplaceAll(want, `\"`, `"`))
		require.Equal(t, good, f.routes(), "a wrong file changes nothing")
		untouched()
	}
	write("engine: native\nendpoints: [http://a]\n")
	reload(422, "routes can be given, or left out altogether, by a restart only")

	write(nativeWithoutHealth + "- name: kept\n  endpoints: [http://a, http://b]\n")
	reload(200, `"route old removed"`, `"route new removed"`, `"match of kept"`)
	untouched()
	require.Nil(t, f.named("old"))
	require.True(t, ofOld.closed.Load())
	require.False(t, ofOld.enter(), "one who found it before looks again")
	release()
	require.Equal(t, "/old/hold", <-held, "its request ends in peace")
	f.retiring.Wait()
	require.Zero(t, ofOld.b.InFlight())
}

// TestAPolicyThatFailsTakesTheOthersBack swaps two routes of which the second refuses at the last moment.
func TestAPolicyThatFailsTakesTheOthersBack(t *testing.T) {
	f, _, _ := routed(t, nativeWithoutHealth+route("a", "path: /a", "  endpoints: [http://a]\n")+route("b", "path: /b", "  endpoints: [http://b]\n"))
	var c Config
	for _, p := range f.routes() {
		next := p.now
		next.Spec = "random seed=9"
		if p.name == "b" {
			next.Spec = "prequal seed=9 fit=strict pool=16" // one replica is outside what it is made for
		}
		c.Routes = append(c.Routes, Route{Name: p.name, Match: p.Match, Config: next})
	}
	a := f.named("a").b
	require.NoError(t, a.Canary(t.Context(), a.Source().With("random seed=3"), 100))
	_, err := f.reload(t.Context(), c)
	require.ErrorContains(t, err, `route "b": `)
	require.NotNil(t, a.Stats().Canary, "it is no part of the file")
	require.Equal(t, "random seed=3", a.Stats().Canary.Spec)
	require.Equal(t, "prequal seed=1 min_pool=1", f.named("a").b.Spec())
	require.Equal(t, "prequal seed=1 min_pool=1", f.named("a").now.Spec)
	require.Equal(t, "prequal seed=1 min_pool=1", f.named("b").b.Spec())
}

func TestTheAdminListenerAsksWhichRoute(t *testing.T) {
	f, h, _ := routed(t, nativeWithoutHealth+route("a", "path: /a", "  endpoints: [http://a]\n")+route("b", "host: x", "  endpoints: [http://b]\n"))
	for _, step := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "/swap", `{"spec":"random"}`, 400, "there are several routes: name one with ?route= or --route: a, b\n"},
		{"GET", "/record", "", 400, "--route: a, b"},
		{"POST", "/swap?route=c", `{"spec":"random"}`, 404, `no route "c": there are a, b`},
		{"POST", "/swap?route=a", `{"spec":"random seed=7"}`, 200, `"spec": "random seed=7"`},
		{"POST", "/status?route=b", `{"endpoint":"b","status":"draining"}`, 200, `"status": "draining"`},
		{"POST", "/status?route=a", `{"endpoint":"b","status":"draining"}`, 404, `endpoint "b"`},
		{"GET", "/spec?route=a", "", 200, "random seed=7\n"},
		{"GET", "/spec", "", 200, "a: random seed=7\n"},
		{"GET", "/compare?route=a", "", 409, "no comparison runs"},
		{"GET", "/swap?route=a", "", 405, ""},
		{"GET", "/routes", "", 200, `"host": "x"`},
		{"GET", "/readyz", "", 200, "ready"},
		{"GET", "/metrics", "", 200, `headroom_endpoints{route="b",status="draining"} 1`},
		{"GET", "/metrics", "", 200, `headroom_panic{route="a"} 0`},
		{"POST", "/promote?route=a", "", 409, "no canary runs"},
		{"GET", "/nothing", "", 404, ""},
	} {
		code, body := ask(h, step.method, step.path, step.body)
		assert.Equal(t, step.code, code, "%s %s: %s", step.method, step.path, body)
		assert.Contains(t, body, step.want)
	}
	assert.Equal(t, "prequal seed=1 min_pool=1", f.named("b").b.Spec())
	_, body := ask(h, "GET", "/pool", "")
	var all struct{ Routes map[string]view }
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	require.Len(t, all.Routes, 2)
	assert.Equal(t, "random seed=7", all.Routes["a"].Spec)
}

// TestARouteEndsWithItsRequests removes a route with a request that ends in time, and one with a request that stays.
func TestARouteEndsWithItsRequests(t *testing.T) {
	for name, stays := range map[string]time.Duration{"it ends": 5 * time.Second, "it stays": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				rt := &running{stop: func() error { return nil }, cut: func(error) {}}
				require.True(t, rt.enter())
				time.AfterFunc(stays, rt.leave)
				require.NoError(t, rt.retire(10*time.Second))
				require.InDelta(t, min(stays, 10*time.Second+cutGrace), time.Since(began), float64(10*time.Millisecond))
				require.False(t, rt.enter())
			})
		})
	}
}

// TestARouteThatIsGoneHoldsNothing removes a route with an answer that never ends, one that never begins, and a connection
// to its replica that is kept for later requests.
func TestARouteThatIsGoneHoldsNothing(t *testing.T) {
	arrived := make(chan struct{}, 2)
	replica := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			_ = http.NewResponseController(w).Flush()
		case "/silent":
		default:
			return
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	var open atomic.Int64
	replica.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			open.Add(1)
		} else if s == http.StateClosed {
			open.Add(-1)
		}
	}
	replica.Start()
	defer replica.Close()
	defer replica.CloseClientConnections()
	kept := route("kept", "path: /kept", "  endpoints: [http://a]\n")
	f, _, _ := routed(t, nativeWithoutHealth+kept+route("gone", "", "  endpoints: ["+replica.URL+"]\n"))
	client := httptest.NewServer(f)
	defer client.Close()

	silent := make(chan string, 1)
	go func() {
		res, err := http.Get(client.URL + "/silent")
		if err != nil {
			silent <- err.Error()
			return
		}
		defer res.Body.Close()
		silent <- res.Status
	}()
	endless, err := http.Get(client.URL + "/endless")
	require.NoError(t, err)
	defer endless.Body.Close()
	<-arrived
	<-arrived
	short, err := http.Get(client.URL + "/short")
	require.NoError(t, err)
	require.NoError(t, short.Body.Close())
	require.GreaterOrEqual(t, open.Load(), int64(3))

	gone := f.named("gone")
	f.serve(slices.DeleteFunc(slices.Clone(f.routes()), func(p placed) bool { return p.name == "gone" }), 10*time.Millisecond)
	f.retiring.Wait()
	require.Zero(t, gone.open.Load())
	require.Zero(t, gone.b.InFlight())
	require.Equal(t, "503 Service Unavailable", <-silent)
	_, err = io.Copy(io.Discard, endless.Body)
	require.Error(t, err)
	require.Eventually(t, func() bool { return open.Load() == 0 }, 5*time.Second, time.Millisecond, "connections to its replica")
}
