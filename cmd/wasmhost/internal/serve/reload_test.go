package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/dist"
)

// reloaded is a proxy's balancer that is configured by a file, and POST /reload.
func reloaded(t *testing.T, text string) (*host.Balancer, *watch, *reloader, string, func(code int, want string)) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
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
	b, e, free, err := newBalancer(context.Background(), c, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, free()) })
	w, err := newWatch(b, c, log)
	require.NoError(t, err)
	f := fleetOf(c, b, e, w)
	r := newReloader(c, f, nil, log)
	h := newAdmin(f, new(atomic.Bool), r, "")
	return b, w, r, file, func(code int, want string) {
		t.Helper()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("POST", "/reload", nil))
		require.Equal(t, code, rec.Code, rec.Body.String())
		require.Contains(t, rec.Body.String(), want)
	}
}

func TestAReloadKeepsWhatIsKnown(t *testing.T) {
	const engineAndHealth = "engine: native\nhealth_interval: 0s\nhealth_failures: 0\n"
	config := func(spec, endpoints string) string {
		return engineAndHealth + "spec: " + spec + "\nendpoints: [" + endpoints + "]\n"
	}
	b, w, r, file, reload := reloaded(t, config("prequal seed=1 min_pool=1", "http://a, http://b"))
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }

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
	assert.EqualValues(t, 1, r.fleet.routes()[0].keeper.Stats().Added, "those that were there are not")
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

// A module's file that cannot be read, or is no module, or knows no such policy, leaves the one in use serving.
func TestAReloadWithoutItsModuleChangesNothing(t *testing.T) {
	code, err := os.ReadFile("../../../../wasm/dist/engine.wasm")
	require.NoError(t, err)
	module := filepath.Join(t.TempDir(), "mine.wasm")
	put := func(code []byte) { require.NoError(t, os.WriteFile(module, code, 0o600)) }
	put(append(bytes.Clone(code), 0, 3, 1, 'x', 0))
	config := func(module, spec string) []byte {
		return []byte("health_interval: 0s\nendpoints: [http://a]\nmodule: " + module + "\nspec: " + spec + "\n")
	}
	b, _, _, file, reload := reloaded(t, string(config(module, "random seed=1")))
	mine := b.Source().Module().DigestText()
	stands := func() {
		t.Helper()
		assert.Equal(t, mine, b.Source().Module().DigestText())
		assert.EqualValues(t, 1, b.Stats().Generation)
	}
	reload(200, `"changed": []`)
	for _, other := range []string{module + ".not", filepath.Dir(module)} {
		require.NoError(t, os.WriteFile(file, config(other, "random seed=1"), 0o600))
		reload(422, "--module "+other+" cannot be read: ")
		stands()
	}
	require.NoError(t, os.WriteFile(file, config(module, "my_own seed=1"), 0o600))
	reload(422, `--spec "my_own seed=1": `)
	stands()
	require.NoError(t, os.WriteFile(file, config(module, "random seed=1"), 0o600))
	for _, wrong := range [][]byte{{}, []byte("not a module")} {
		put(wrong)
		reload(422, "--module "+module+": unusable module")
		stands()
	}
	require.NoError(t, os.Remove(module))
	reload(422, "--module "+module+" cannot be read: no such file or directory")
	stands()
	put(append(bytes.Clone(code), 0, 3, 1, 'y', 0))
	reload(200, `"policy"`)
	assert.NotEqual(t, mine, b.Source().Module().DigestText(), "the same path with another module is a change")
	require.NoError(t, os.WriteFile(file, config(`""`, "random seed=1"), 0o600))
	reload(200, `"policy"`)
	assert.Equal(t, dist.Digest(), b.Source().Module().DigestText())
}

// The file says what is to be in force. A swap through the admin listener stands until somebody asks for the file again.
func TestAReloadWithdrawsWhatTheAdminListenerChanged(t *testing.T) {
	const spec = "random seed=1"
	b, _, _, _, reload := reloaded(t, "engine: native\nhealth_interval: 0s\nendpoints: [http://a]\nspec: "+spec+"\n")
	for name, change := range map[string]func() error{
		"a swap": func() error { return b.Swap(context.Background(), b.Source().With("round_robin seed=1")) },
		"a promotion": func() error {
			return errors.Join(b.Canary(context.Background(), b.Source().With("least_loaded"), 100), b.Promote(context.Background()))
		},
		"a rollback": func() error { return b.Rollback(context.Background()) },
	} {
		if name == "a rollback" { // to something else than the file's
			require.NoError(t, b.Swap(context.Background(), b.Source().With("round_robin seed=2")))
			require.NoError(t, b.Swap(context.Background(), b.Source().With(spec)))
		}
		require.NoError(t, change(), name)
		require.NotEqual(t, spec, b.Spec(), name)
		reload(200, `"policy"`)
		assert.Equal(t, spec, b.Spec(), name)
		reload(200, `"changed": []`)
	}
	require.NoError(t, b.Canary(context.Background(), b.Source().With("least_loaded"), 100))
	reload(200, `"changed": []`)
	assert.NotNil(t, b.Stats().Canary, "a canary beside the file's policy goes on")
}

// TestACertificateThatIsGoneChangesNothing has the files of a certificate vanish after they were looked at.
func TestACertificateThatIsGoneChangesNothing(t *testing.T) {
	f, _, _ := routed(t, nativeWithoutHealth+route("a", "path: /a", "  endpoints: [http://a]\n"))
	a := f.named("a")
	r := newReloader(Config{Routes: []Route{{Name: "a", Match: Match{Path: "/a"}, Config: a.now}}}, f, &edge.Certificates{}, f.log)
	r.now.Edge.TLSCert, r.now.Edge.TLSKey = "no.pem", "no.key"
	r.again = func() (Config, error) {
		next := r.now
		next.Routes = slices.Clone(next.Routes)
		next.Routes[0].Config.Spec = "random seed=9"
		return next, nil
	}
	_, err := r.reload(t.Context())
	require.ErrorContains(t, err, "--tls-cert no.pem cannot be read")
	require.Equal(t, "prequal seed=1 min_pool=1", a.b.Spec())
}
