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
	life   context.Context // of requests
	cut    context.CancelCauseFunc
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
	probes := w.upstream.Probes()
	var wg sync.WaitGroup
	wg.Go(func() {
		// It ends with its context; there is no other reason for it to return.
		_ = (&host.Prober{Probe: w.probing(lbhttp.ProbeURL(probes, ""))}).Run(background, b)
	})
	wg.Go(func() { _ = w.monitor.Run(background) }) // likewise
	if c.File != "" {
		follow := followFile(c.File, w)
		wg.Go(func() { follow(background) })
	}
	rt.stop = func() error {
		end()
		wg.Wait()
		probes.CloseIdleConnections()
		w.attempts.transport.CloseIdleConnections()
		return free()
	}
	return rt, nil
}

// assemble makes a route of its parts.
func assemble(name string, c Config, b *host.Balancer, e *engines, w *watch, log *slog.Logger) *running {
	rt := &running{name: name, b: b, engines: e, watch: w, now: c, handler: newProxy(b, w, c, log)}
	rt.life, rt.cut = context.WithCancelCause(context.Background())
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

// errRemoved cuts off what is still open of a route that was removed.
var errRemoved = errors.New("the route was removed")

// serve is the handler for a request that has entered. It ends with the route at the latest.
func (rt *running) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cut := context.WithCancelCause(r.Context())
	defer cut(nil)
	defer context.AfterFunc(rt.life, func() { cut(errRemoved) })()
	rt.handler.ServeHTTP(w, r.WithContext(ctx))
}

// cutGrace is how long requests have to end once they were cut off.
const cutGrace = time.Second

// retire closes the route, waits for its requests, at most so long, cuts off the rest, and ends it.
func (rt *running) retire(within time.Duration) error {
	rt.closed.Store(true)
	rt.settle(within)
	rt.cut(errRemoved)
	rt.settle(cutGrace)
	return rt.stop()
}

// settle waits until no request is open, at most so long.
func (rt *running) settle(within time.Duration) {
	late := time.NewTimer(within)
	defer late.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for rt.open.Load() > 0 {
		select {
		case <-late.C:
			return
		case <-look.C:
		}
	}
}
