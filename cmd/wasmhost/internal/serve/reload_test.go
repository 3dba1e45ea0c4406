package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

func TestAReloadKeepsWhatIsKnown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	read := func() (Config, error) {
		c := Defaults()
		if err := c.Load(file); err != nil {
			return c, err
		}
		return c, c.Validate()
	}
	const engineAndHealth = "engine: native\nhealth_interval: 0s\nhealth_failures: 0\n"
	config := func(spec, endpoints string) string {
		return engineAndHealth + "spec: " + spec + "\nendpoints: [" + endpoints + "]\n"
	}
	write(config("prequal seed=1 min_pool=1", "http://a, http://b"))
	c, err := read()
	require.NoError(t, err)
	c.Again = read
	log := slog.New(slog.DiscardHandler)
	b, e, free, err := newBalancer(context.Background(), c, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, free()) })
	w, err := newWatch(b, c, log)
	require.NoError(t, err)
	f := fleetOf(c, b, e, w)
	r := newReloader(c, f, nil, log)
	h := newAdmin(f, new(atomic.Bool), r, "")
	reload := func(code int, want string) {
		t.Helper()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("POST", "/reload", nil))
		require.Equal(t, code, rec.Code, rec.Body.String())
		require.Contains(t, rec.Body.String(), want)
	}

	require.NoError(t, b.Record("a", engine.Reading{RIF: 3, Latency: 5}))
	require.NoError(t, w.monitor.SetAdmin("b", engine.StatusDraining))
	open, err := b.Decide(context.Background(), host.Query{})
	require.NoError(t, err)
	w.Sent(open.Endpoint.Name)
	require.Equal(t, "a", open.Endpoint.Name)
	pool := func() (names []string) {
		for _, entry := range b.Entries() {
			names = append(names, entry.Endpoint)
		}
		return names
	}
	statuses := func() map[string]string {
		out := map[string]string{}
		for _, ep := range b.Endpoints() {
			out[ep.Name] = ep.Status.String()
		}
		return out
	}

	reload(200, `"changed": []`)
	assert.EqualValues(t, 1, b.Stats().Generation, "nothing changed: nothing was touched")
	write(config("prequal seed=1 min_pool=1", "http://a, http://b, http://c"))
	reload(200, `"endpoints"`)
	assert.Equal(t, map[string]string{"a": "ready", "b": "draining", "c": "ready"}, statuses())
	assert.Equal(t, []string{"a"}, pool())

	for text, want := range map[string]string{
		config("prequal quantile=7", "http://a"):                          "quantile=7",
		config("prequal seed=1", "http://a, nowhere"):                     `endpoint "nowhere" is not a base URL`,
		config("prequal seed=1", "http://a") + "shards: 4\n":              "shards can only be changed by a restart",
		config("prequal seed=1", "http://a") + "health_panic: 9\n":        "health_panic can only be changed by a restart",
		config("prequal seed=1", "http://a") + "listen: [1]\n":            fmt.Sprintf("%s:6: want text", file),
		config("prequal seed=1", "http://a") + "admin: off\ndrain: 99s\n": "admin, drain can only be changed by a restart",
	} {
		write(text)
		reload(422, want)
		assert.Equal(t, map[string]string{"a": "ready", "b": "draining", "c": "ready"}, statuses(), "a wrong file changes nothing")
		assert.EqualValues(t, 1, b.Stats().Generation)
	}

	write(config("prequal seed=1 min_pool=1 quantile=0.5", "http://b, http://c"))
	reload(200, `"policy"`)
	assert.Contains(t, b.Spec(), "quantile=0.5")
	assert.Equal(t, []string{"a"}, pool(), "readings are handed over")
	assert.Equal(t, map[string]string{"a": "draining", "b": "draining", "c": "ready"}, statuses(), "who leaves drains first")
	assert.EqualValues(t, 1, b.Stats().InFlight)
	open.Done(engine.OutcomeSuccess)
	w.Ended("a")
	assert.Eventually(t, func() bool { return len(statuses()) == 2 }, 10e9, 10e6)

	r.again = nil
	reload(409, "started without --config")
}
