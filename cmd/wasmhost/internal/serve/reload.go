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
)

// reloader brings a changed configuration to a running proxy: endpoints, specs, modules, the certificate, and routes. Pools,
// requests in flight and health go on; a configuration that is wrong anywhere changes nothing.
type reloader struct {
	again func() (Config, error) // reads and checks the configuration anew
	fleet *fleet
	shown *edge.Certificates // nil without TLS
	log   *slog.Logger

	mu  sync.Mutex
	now Config
}

func newReloader(c Config, f *fleet, shown *edge.Certificates, log *slog.Logger) *reloader {
	return &reloader{again: c.Again, fleet: f, shown: shown, log: log, now: c}
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
	if err := r.fixed(next); err != nil {
		return nil, err
	}
	var pair *edge.Pair
	if r.shown != nil {
		if pair, err = edge.LoadPair(next.Edge.TLSCert, next.Edge.TLSKey); err != nil {
			return nil, err
		}
	}
	done, err = r.fleet.reload(ctx, next)
	if err != nil {
		return nil, err
	}
	r.now = next
	if r.shown != nil && r.shown.Show(pair) {
		done = append(done, "certificate")
	}
	return done, nil
}

// fixed refuses changes of the whole proxy that need a restart. What concerns routes they see to themselves.
func (r *reloader) fixed(next Config) error {
	if (len(r.now.Routes) > 0) != (len(next.Routes) > 0) {
		return errors.New("routes can be given, or left out altogether, by a restart only: metrics are named by them")
	}
	names := needRestart(r.now, next)
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(perRoute, name) })
	if r.now.Edge.TLS() != next.Edge.TLS() {
		names = append(names, "TLS")
	}
	return restart(names)
}

func restart(names []string) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s can only be changed by a restart", strings.Join(names, ", "))
}

// live are the settings that a reload changes.
var live = []string{"spec", "module", "endpoints", "tls_cert", "tls_key", "routes"}

// needRestart names the settings that differ and are read at the start only.
func needRestart(was, is Config) (names []string) {
	before := map[string]any{}
	eachSetting(reflect.ValueOf(was), func(name string, _ reflect.StructField, v reflect.Value) { before[name] = v.Interface() })
	eachSetting(reflect.ValueOf(is), func(name string, _ reflect.StructField, v reflect.Value) {
		if !slices.Contains(live, name) && !reflect.DeepEqual(before[name], v.Interface()) {
			names = append(names, name)
		}
	})
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
		r.log.Info("configuration reloaded", "changed", strings.Join(done, ", "), "policy", r.fleet.policies())
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
