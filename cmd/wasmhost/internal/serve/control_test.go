package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/trace"
)

// served is a proxy's balancer with its admin listener, as Run makes them.
func served(t *testing.T, change func(*Config)) (*host.Balancer, http.Handler) {
	c := Defaults()
	c.Spec, c.Engine = "round_robin seed=1", "native"
	c.Endpoints = []Endpoint{{URL: "http://a:1"}, {URL: "http://b:1"}}
	change(&c)
	require.NoError(t, c.Validate())
	log := slog.New(slog.DiscardHandler)
	b, e, free, err := newBalancer(context.Background(), c, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, free()) })
	w, err := newWatch(b, c, log)
	require.NoError(t, err)
	return b, newAdmin(fleetOf(c, b, e, w), new(atomic.Bool), nil, c.token)
}

func TestThePolicyIsChangedThroughTheAdminListener(t *testing.T) {
	b, h := served(t, func(*Config) {})
	for _, step := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "/swap", `{"spec":"least_loaded seed=1"}`, 200, `"spec": "least_loaded seed=1"`},
		{"POST", "/swap", `{"spec":"fastest"}`, 422, "no such policy"},
		{"POST", "/swap", `{}`, 400, "no spec: name the policy"},
		{"POST", "/swap", `{"speck":"random"}`, 400, `such as {"spec":"prequal quantile=0.9"}`},
		{"POST", "/rollback", "", 200, `"spec": "round_robin seed=1"`},
		{"POST", "/rollback", "", 409, "rolled back already"},
		{"POST", "/share", `{"share":0.5}`, 409, "no canary runs"},
		{"POST", "/canary?share=1.5", `{"spec":"random"}`, 400, "give a part of one"},
		{"POST", "/canary", `{"spec":"random"}`, 400, `share "": give a part of one`},
		{"POST", "/canary?share=0.25", `{"spec":"random seed=2"}`, 200, `"canary": "random seed=2"`},
		{"POST", "/share", `{"share":0.5}`, 200, `"share": 0.5`},
		{"POST", "/promote", "", 200, `"spec": "random seed=2"`},
		{"POST", "/promote", "", 409, "no canary runs"},
		{"GET", "/compare", "", 409, "no comparison runs"},
		{"POST", "/compare", `{"spec":"random seed=2"}`, 200, `"decisions": 0`},
		{"GET", "/record", "", 409, "start the proxy with --record"},
		{"GET", "/swap", "", 405, ""},
	} {
		code, body := ask(h, step.method, step.path, step.body)
		assert.Equal(t, step.code, code, "%s %s: %s", step.method, step.path, body)
		assert.Contains(t, body, step.want)
	}
	for _, path := range []string{"/pool", "/routes"} {
		_, body := ask(h, "GET", path, "")
		assert.Contains(t, body, `"canary": null`, path)
		assert.Regexp(t, `"comparison": \{\s+"spec": "random seed=2",\s+"decisions": 0,`, body, path)
	}
	for range 10 {
		p, err := b.Decide(context.Background(), host.Query{})
		require.NoError(t, err)
		p.Done(engine.OutcomeSuccess)
	}
	code, body := ask(h, "DELETE", "/compare", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, body, `"decisions": 10`)
	assert.Contains(t, body, `"different": 0`)
	code, body = ask(h, "POST", "/canary?share=0.25", `{"spec":"random seed=3"}`)
	require.Equal(t, 200, code, body)
	for _, path := range []string{"/pool", "/routes"} {
		_, body := ask(h, "GET", path, "")
		assert.Regexp(t, `"canary": \{\s+"spec": "random seed=3",\s+"share": 0.25\s+\}`, body, path)
		assert.Contains(t, body, `"comparison": null`, path)
	}
	code, body = ask(h, "POST", "/swap?spec=random", "")
	assert.Equal(t, 400, code, body)
	r := httptest.NewRequest("POST", "/swap?spec=random", bytes.NewReader([]byte("\x00asm")))
	r.Header.Set("Content-Type", "application/wasm")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	assert.Equal(t, 422, w.Code)
	assert.Contains(t, w.Body.String(), "this proxy runs native engines")
}

func TestAModuleIsSentToTheAdminListener(t *testing.T) {
	b, h := served(t, func(c *Config) { c.Engine = "wasm" })
	code, err := os.ReadFile("../../../../wasm/dist/engine.wasm")
	require.NoError(t, err)
	send := func(wasm []byte, path ...string) (int, string) {
		r := httptest.NewRequest("POST", append(path, "/swap?spec=prequal+seed%3D5")[0], bytes.NewReader(wasm))
		r.Header.Set("Content-Type", "application/wasm")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	ours := b.Source().Module().DigestText()
	strangers := append(bytes.Clone(code), 0, 3, 1, 'x', 0) // another digest
	status, body := send(strangers)
	require.Equal(t, 200, status, body)
	assert.Equal(t, "prequal seed=5", b.Spec())
	status, body = send([]byte("not a module"))
	assert.Equal(t, 422, status)
	assert.Contains(t, body, "unusable module")
	assert.Equal(t, "prequal seed=5", b.Spec())
	status, body = send(nil)
	assert.Equal(t, 422, status)
	assert.Contains(t, body, "unusable module")

	// A spec alone is for the module that is live, however it came to be.
	theirs := b.Source().Module().DigestText()
	require.NotEqual(t, ours, theirs)
	respec := func(want, why string) {
		t.Helper()
		status, body := ask(h, "POST", "/swap", `{"spec":"random seed=1"}`)
		require.Equal(t, 200, status, body)
		assert.Equal(t, want, b.Source().Module().DigestText(), why)
	}
	step := func(path string) {
		t.Helper()
		status, body := ask(h, "POST", path, "")
		require.Equal(t, 200, status, body)
	}
	respec(theirs, "the module that was sent")
	status, body = send(code)
	require.Equal(t, 200, status, body)
	respec(ours, "the first again")
	status, body = send(strangers, "/canary?share=0.1&spec=random")
	require.Equal(t, 200, status, body)
	respec(ours, "a canary is not live")
	step("/promote")
	respec(theirs, "a promoted canary is")
	step("/rollback") // of the spec
	status, body = send(code)
	require.Equal(t, 200, status, body)
	step("/rollback")
	respec(theirs, "what was rolled back is withdrawn")
}

func TestTheRecordingIsFetchedFromTheAdminListener(t *testing.T) {
	b, h := served(t, func(c *Config) { c.Record = Duration(60e9) })
	p, err := b.Decide(context.Background(), host.Query{Key: "secret-user"})
	require.NoError(t, err)
	p.Done(engine.OutcomeSuccess)
	code, body := ask(h, "GET", "/record", "")
	require.Equal(t, 200, code)
	segments, err := trace.ReadRecording("admin", strings.NewReader(body))
	require.NoError(t, err)
	require.Len(t, segments, 1)
	assert.NotContains(t, body, "secret-user")
	code, body = ask(h, "GET", "/record?last=soon", "")
	assert.Equal(t, 400, code)
	assert.Contains(t, body, "give a duration such as 10s")
}

func TestTheAdminTokenGuardsWhatChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600))
	_, h := served(t, func(c *Config) { c.TokenFile, c.Record = file, Duration(1e9) })
	with := func(method, path, token, body string) int {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, token := range []string{"", "Bearer ", "Bearer 0123456789abcdeX", "0123456789abcdef", "Bearer 0123456789abcdef0"} {
		for _, path := range []string{"POST /swap", "POST /status", "POST /canary", "POST /share", "POST /promote", "POST /rollback", "POST /compare", "DELETE /compare", "GET /record", "HEAD /record"} {
			method, path, _ := strings.Cut(path, " ")
			assert.Equal(t, 401, with(method, path, token, "{}"), "%s %s with %q", method, path, token)
		}
	}
	assert.Equal(t, 200, with("GET", "/pool", "", ""), "looking is free")
	assert.Equal(t, 200, with("GET", "/record", "Bearer 0123456789abcdef", ""))
	swap, _ := json.Marshal(map[string]string{"spec": "random"})
	assert.Equal(t, 200, with("POST", "/swap", "Bearer 0123456789abcdef", string(swap)))

	require.NoError(t, os.WriteFile(file, []byte("short"), 0o600))
	c := Defaults()
	c.Endpoints, c.TokenFile = []Endpoint{{URL: "http://a:1"}}, file
	assert.ErrorContains(t, c.Validate(), "has 5 bytes: give at least 16")
}
