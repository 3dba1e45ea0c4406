package serve

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const twoRoutes = `
spec: prequal seed=1
health_interval: 1s
endpoints: [http://a]
routes:
- name: api
  match: {path: /api/}
  spec: least_loaded seed=2
  health_interval: 2s
  endpoints: [http://b, http://c]
- name: shop
  match: {host: Shop.example.com}
  shards: 3
`

func TestRoutesHaveTheirOwnAndTheRestFromOutside(t *testing.T) {
	c, err := load(t, twoRoutes)
	require.NoError(t, err)
	require.Len(t, c.served(), 2)
	api, shop := c.served()[0], c.served()[1]
	assert.Equal(t, Match{Path: "/api"}, api.Match)
	assert.Equal(t, "least_loaded seed=2", api.Config.Spec)
	assert.Equal(t, Duration(2*time.Second), api.Config.Health.Interval)
	assert.Equal(t, []Endpoint{{URL: "http://b", Name: "b"}, {URL: "http://c", Name: "c"}}, api.Config.Endpoints)
	assert.Equal(t, 1, api.Config.Shards)
	assert.Equal(t, Match{Host: "shop.example.com"}, shop.Match)
	assert.Equal(t, "prequal seed=1", shop.Config.Spec)
	assert.Equal(t, Duration(time.Second), shop.Config.Health.Interval)
	assert.Equal(t, []Endpoint{{URL: "http://a", Name: "a"}}, shop.Config.Endpoints)
	assert.Equal(t, 3, shop.Config.Shards)

	c, err = load(t, "endpoints_file: e.json\nroutes:\n- name: a\n  endpoints: [http://a]\n- name: b\n  match: {path: /b}\n")
	require.NoError(t, err)
	assert.Empty(t, c.served()[0].Config.File, "one way to name the replicas goes over the other")
	assert.Equal(t, "e.json", c.served()[1].Config.File)

	require.NoError(t, c.Validate(), "it may be validated again, as after flags")
	c, err = load(t, "endpoints: [http://a]\n")
	require.NoError(t, err)
	require.Equal(t, []Route{{Name: "default", Config: c}}, c.served())
}

func TestRoutesAreRefused(t *testing.T) {
	const first = "endpoints: [http://a]\nroutes:\n- name: a\n  match: {path: /a}\n"
	for text, want := range map[string]string{
		first + "- name: a\n":                                                `proxy.yaml:5: route "a": another route has this name`,
		first + "- name: b\n  match: {path: /a/}\n":                          `proxy.yaml:6: route "b": route "a" has the same match, so that this one would have no requests`,
		first + "- {match: {host: x}}\n":                                     `proxy.yaml:5: a route has the name ""`,
		first + "- name: a b\n":                                              `a route has the name "a b"`,
		first + "- name: b\n  match: {path: b}\n":                            `proxy.yaml:6: route "b": the path "b" is none: give one such as /api`,
		first + "- name: b\n  match: {host: \"x:80\"}\n":                     `the host "x:80" is none: give a name such as example.com, without port`,
		first + "- name: b\n  spec: fastest\n":                               `proxy.yaml:6: route "b": --spec "fastest"`,
		first + "- name: b\n  health_panic: 101\n":                           `proxy.yaml:6: route "b": --health-panic is 101`,
		first + "- name: b\n  endpoints: [http://a, b]\n":                    `route "b": endpoint "b" is not a base URL`,
		first + "- name: b\n  shards: many\n":                                `proxy.yaml:6: "many" is not a whole number`,
		first + "- name: b\n  shards: 1.5\n":                                 `proxy.yaml:6: "1.5" is not a whole number`,
		first + "- name: b\n  listen: 127.0.0.1:1\n":                         `proxy.yaml:6: listen is a setting of the whole proxy: give it outside of routes`,
		first + "- name: b\n  routes: []\n":                                  `proxy.yaml:6: routes is a setting of the whole proxy`,
		first + "- name: b\n  lisen: 1\n  sahrds: 1\n":                       `proxy.yaml:7: unknown setting sahrds of a route: did you mean shards? use name, match, spec`,
		first + "- name: b\n  match: {hots: x}\n":                            `proxy.yaml:6: unknown key "hots" of a match: did you mean host? use host, path`,
		first + "- name: b\n  match: x\n":                                    `proxy.yaml:6: "x" is not a map of settings`,
		first + "- b\n":                                                      `proxy.yaml:5: a route is a map with name, match and settings`,
		first + "- name: b\n  module: x\n  engine: native\n":                 `route "b": --module and --engine native exclude each other`,
		"endpoints: [http://a]\nroutes: a\n":                                 `proxy.yaml:2: "a" is not a list of routes`,
		first + "- name: b\n  name: c\n":                                     `proxy.yaml:6: name is given twice`,
		first + "- name: b\n  match: {path: /b}\n  match: {path: /c}\n":      `proxy.yaml:7: match is given twice`,
		first + "- name: b\n  spec: random\n  spec: random\n":                `proxy.yaml:7: spec is given twice`,
		first + "- name: b\n  match: {path: /b/../a}\n":                      `the path "/b/../a" is none`,
		first + "- name: b\n  match: {path: //}\n":                           `the path "//" is none`,
		first + "- name: b\n  match: {host: .}\n":                            `the host "." is none`,
		"endpoints: [&m {url: http://a}]\nroutes:\n- name: b\n  match: *m\n": `unknown key "url" of a match`,
		first + "- name: b\n  retry_status: &a [*a]\n":                       `proxy.yaml:6: want a whole number`,
		"routes:\n- name: a\n":                                               `proxy.yaml:2: route "a": no endpoints`,
	} {
		_, err := load(t, text)
		require.ErrorContains(t, err, want, text)
		require.NotRegexp(t, `serve\.|!!|\bint\b|uint`, err.Error(), "names of Go or YAML types")
	}
}

func TestTheLongestMatchHasTheRequest(t *testing.T) {
	f := newFleet(slog.New(slog.DiscardHandler), newRegistry(), true)
	var table []placed
	for _, m := range []Match{{}, {Path: "/api"}, {Path: "/api/v2"}, {Host: "x.example"}, {Host: "x.example", Path: "/img"}} {
		table = append(table, placed{m, &running{name: m.String(), stop: func() error { return nil }, cut: func(error) {}}})
	}
	f.serve(table, 0)
	for target, want := range map[string]string{
		"http://y/":               "everything",
		"http://y/ap":             "everything",
		"http://y/apix":           "everything",
		"http://y/api":            "/api/",
		"http://y/api/":           "/api/",
		"http://y/api/v1":         "/api/",
		"http://y/api/v2":         "/api/v2/",
		"http://y/api/v2/x?y=z":   "/api/v2/",
		"http://y/%61pi/v2":       "/api/v2/",
		"http://x.example/":       "x.example/",
		"http://X.Example:81/api": "x.example/",
		"http://x.example./img/a": "x.example/img/",
		"http://y//api/v2":        "/api/v2/",
		"http://y/%2f/api///v2":   "/api/v2/",
		"http://y/ap//i":          "everything",
	} {
		assert.Equal(t, want, f.find(httptest.NewRequest("GET", target, nil)).name, target)
	}
	for _, path := range []string{"/api/../x", "/api/%2e%2e/x", "/api/..%2fx", "/x/./api", "/api/..;v=1/x", "/api/..%5cx", "/.."} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("GET", "http://y"+path, nil))
		assert.Equal(t, 400, w.Code, path)
	}
	for _, path := range []string{"/api/...", "/api/.well-known", "/api/a..b", "/api/x?y=/../z"} {
		assert.False(t, climbs(httptest.NewRequest("GET", "http://y"+path, nil).URL.Path), path)
	}
	f.serve(table[1:], 0)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "http://y/other", nil))
	assert.Equal(t, 404, w.Code)
	assert.Equal(t, "no route has this host and path\n", w.Body.String())
}
