package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
	"github.com/headroom-lb/headroom/wasm/dist"
)

// reloader brings a changed configuration to a running proxy: endpoints, spec and module. Pools, requests in flight and
// health go on; a configuration that is wrong anywhere changes nothing.
type reloader struct {
	again   func() (Config, error) // reads and checks the configuration anew
	b       *host.Balancer
	engines *engines
	keeper  *discovery.Keeper
	shown   *edge.Certificates // nil without TLS
	log     *slog.Logger

	mu  sync.Mutex
	now Config
}

// newReloader takes over the endpoints of a configuration that lists them; a file's are followed by its own keeper.
func newReloader(c Config, b *host.Balancer, e *engines, w *watch, shown *edge.Certificates, log *slog.Logger) *reloader {
	r := &reloader{again: c.Again, b: b, engines: e, shown: shown, log: log, now: c}
	if c.File == "" {
		r.keeper = w.newKeeper()
	}
	return r
}

// errNoConfig says that there is no file to read again.
var errNoConfig = errors.New("nothing to reload: the proxy was started without --config")

// reload says what it changed, in words.
func (r *reloader) reload(ctx context.Context) (done []string, err error) {
	if r.again == nil {
		return nil, errNoConfig
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.again()
	if err != nil {
		return nil, err
	}
	if fixed := needRestart(r.now, next); len(fixed) > 0 {
		return nil, fmt.Errorf("%s can only be changed by a restart", strings.Join(fixed, ", "))
	}
	src, err := r.source(ctx, next)
	if err != nil {
		return nil, err
	}
	// What is live may be another's doing: a swap or a rollback through the admin listener. The file is what is asked for.
	live := r.b.Source()
	swap := src.Spec() != live.Spec() || src.Module() != live.Module()
	moved := r.keeper != nil && !slices.Equal(next.Endpoints, r.now.Endpoints)
	if moved {
		// The keeper learns of those that serve only now: it has an order of its own, and the operator's is nicer to look at.
		if err := errors.Join(r.keeper.Update(snapshotOf(r.now.Endpoints)), r.keeper.Update(snapshotOf(next.Endpoints))); err != nil {
			return nil, err
		}
		done = append(done, "endpoints")
	}
	if swap {
		if err := r.b.Swap(ctx, src); err != nil {
			if moved {
				err = errors.Join(err, r.keeper.Update(snapshotOf(r.now.Endpoints)))
			}
			return nil, fmt.Errorf("--spec %q: %w", next.Spec, err)
		}
		done = append(done, "policy")
	}
	r.now = next
	if r.shown != nil {
		changed, err := r.shown.Load(next.Edge.TLSCert, next.Edge.TLSKey)
		if err != nil {
			return done, err // it was right a moment ago
		}
		if changed {
			done = append(done, "certificate")
		}
	}
	return done, nil
}

// source is what the configuration asks for: the live one's module where that is the same.
func (r *reloader) source(ctx context.Context, c Config) (host.Source, error) {
	code, err := c.readModule()
	if err != nil {
		return host.Source{}, err
	}
	if code == nil && c.Engine != "native" {
		code = dist.Engine
	}
	src, err := r.engines.source(ctx, c.Spec, code)
	if err != nil && c.Module != "" {
		err = fmt.Errorf("--module %s: %w", c.Module, err)
	}
	return src, err
}

// live are the settings that a reload changes.
var live = []string{"spec", "module", "endpoints", "tls_cert", "tls_key"}

// needRestart names the settings that differ and are read at the start only.
func needRestart(was, is Config) (names []string) {
	before := map[string]any{}
	eachSetting(reflect.ValueOf(was), func(name string, _ reflect.StructField, v reflect.Value) { before[name] = v.Interface() })
	eachSetting(reflect.ValueOf(is), func(name string, _ reflect.StructField, v reflect.Value) {
		if !slices.Contains(live, name) && !reflect.DeepEqual(before[name], v.Interface()) {
			names = append(names, name)
		}
	})
	if was.Edge.TLS() != is.Edge.TLS() {
		names = append(names, "TLS")
	}
	return names
}

func snapshotOf(endpoints []Endpoint) discovery.Snapshot {
	return discovery.Snapshot{Endpoints: hostEndpoints(endpoints)}
}

func hostEndpoints(endpoints []Endpoint) []host.Endpoint {
	out := make([]host.Endpoint, len(endpoints))
	for i, e := range endpoints {
		out[i] = host.Endpoint{
			Name: e.Name, Addr: e.URL, Weight: e.Weight, Priority: e.Priority, Locality: e.Locality, Status: engine.StatusReady,
		}
	}
	return out
}

// onSignal reloads and logs what came of it.
func (r *reloader) onSignal(ctx context.Context) {
	done, err := r.reload(ctx)
	switch {
	case err != nil:
		r.log.Error("the configuration was not taken; the old one serves on", "error", err)
	case len(done) == 0:
		r.log.Info("configuration reloaded: nothing changed")
	default:
		r.log.Info("configuration reloaded", "changed", strings.Join(done, ", "), "spec", r.b.Spec())
	}
}

// answer is POST /reload.
func (r *reloader) answer(w http.ResponseWriter, req *http.Request) {
	done, err := r.reload(context.WithoutCancel(req.Context()))
	switch {
	case errors.Is(err, errNoConfig):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	default:
		writeJSON(w, map[string][]string{"changed": append([]string{}, done...)})
	}
}
