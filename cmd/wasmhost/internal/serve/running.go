package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
	"github.com/headroom-lb/headroom/host/lbhttp"
	headroom "github.com/headroom-lb/headroom/host/observe/prometheus"
)

// running is a route that is served: a balancer with its prober, its health and its endpoints.
type running struct {
	name    string
	b       *host.Balancer
	engines *engines
	watch   *watch
	keeper  *discovery.Keeper // of endpoints that the config lists; a file's are followed by their own
	handler http.Handler
	admin   http.Handler
	metrics []prometheus.Collector
	stop    func() error // ends what runs and frees what is held

	now Config // with a reload's lock

	open   atomic.Int64 // requests
	closed atomic.Bool
}

// begin makes a route and starts what runs beside its requests. The context is of what the module is compiled by; it does
// not end the route.
func begin(ctx context.Context, r Route, log *slog.Logger) (_ *running, err error) {
	c := r.Config
	if c.File != "" {
		if c.Endpoints, err = readEndpoints(c.File); err != nil {
			return nil, &InputError{err}
		}
	}
	ctx = context.WithoutCancel(ctx)
	latencies := headroom.NewLatencies()
	b, e, free, err := newBalancer(ctx, c, log, host.WithObserver(latencies.Observe))
	if err != nil {
		return nil, err
	}
	w, err := newWatch(b, c, log)
	if err != nil {
		return nil, errors.Join(err, free())
	}
	rt := assemble(r.Name, c, b, e, w, log)
	rt.metrics = append(rt.metrics, latencies)
	background, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		// It ends with its context; there is no other reason for it to return.
		_ = (&host.Prober{Probe: w.probing(lbhttp.ProbeURL(w.upstream.Probes(), ""))}).Run(background, b)
	})
	wg.Go(func() { _ = w.monitor.Run(background) }) // likewise
	if c.File != "" {
		follow := followFile(c.File, w)
		wg.Go(func() { follow(background) })
	}
	rt.stop = func() error { end(); wg.Wait(); return free() }
	return rt, nil
}

// assemble makes a route of its parts.
func assemble(name string, c Config, b *host.Balancer, e *engines, w *watch, log *slog.Logger) *running {
	rt := &running{name: name, b: b, engines: e, watch: w, now: c, handler: newProxy(b, w, c, log)}
	rt.admin = routeAdmin(b, w, &control{b: b, engines: e})
	rt.metrics = []prometheus.Collector{headroom.NewCollector(b), healthCollector{w.monitor}, attemptsCollector{&w.attempts}}
	if c.File == "" {
		rt.keeper = w.newKeeper(hostEndpoints(c.Endpoints))
	}
	return rt
}

// enter is false if the route has been closed: another may have its requests by now.
func (rt *running) enter() bool {
	rt.open.Add(1)
	if rt.closed.Load() {
		rt.open.Add(-1)
		return false
	}
	return true
}

func (rt *running) leave() { rt.open.Add(-1) }

// retire closes the route, waits for its requests, at most so long, and ends it.
func (rt *running) retire(within time.Duration) error {
	rt.closed.Store(true)
	late := time.NewTimer(within)
	defer late.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for rt.open.Load() > 0 {
		select {
		case <-late.C:
			return rt.stop()
		case <-look.C:
		}
	}
	return rt.stop()
}
