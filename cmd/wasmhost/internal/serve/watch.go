package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
	"github.com/headroom-lb/headroom/host/health"
)

// watch keeps what is known of each endpoint: who may have requests, from the monitor, and for GET /pool its requests
// in flight and its last probe.
type watch struct {
	log      *slog.Logger
	b        *host.Balancer
	upstream edge.Upstream
	monitor  *health.Monitor
	keeper   *discovery.Keeper // of the endpoints, where they are followed; nil for none
	attempts attempts          // the proxy's, set before it serves

	known  sync.RWMutex
	states map[string]*endpointState
}

type endpointState struct {
	given    host.Endpoint // as configured, or as its source says
	inFlight atomic.Int64

	mu       sync.Mutex
	probedAt time.Time
	probeErr error
	failed   int // probes in a row
}

// failuresToWarn is how many probes of one endpoint fail in a row before that is logged.
const failuresToWarn = 3

// newWatch makes the monitor of a config over its balancer. Its Run must be called for time to pass.
func newWatch(b *host.Balancer, c Config, log *slog.Logger) (*watch, error) {
	upstream, err := edge.NewUpstream(c.Edge)
	if err != nil {
		return nil, &InputError{err}
	}
	w := &watch{log: log, b: b, upstream: upstream, states: map[string]*endpointState{}}
	settings := health.Config{Panic: c.Health.Panic, Log: log}
	if c.Health.Panic == 0 {
		settings.Panic = -1
	}
	if c.Health.Interval > 0 {
		settings.Active = &health.Active{
			Check: w.checker(c.Health.Path), Interval: time.Duration(c.Health.Interval), Timeout: time.Duration(c.Health.Timeout),
			Healthy: c.Health.Healthy, Unhealthy: c.Health.Unhealthy,
		}
	}
	if c.Health.Failures > 0 {
		settings.Circuit = &health.Circuit{Consecutive: c.Health.Failures}
	}
	if c.Health.Outlier {
		settings.Outlier = &health.Outlier{}
	}
	if c.Health.SlowStart > 0 {
		settings.SlowStart = &health.SlowStart{Window: time.Duration(c.Health.SlowStart)}
	}
	if w.monitor, err = health.New(settings, w.apply); err != nil {
		return nil, err
	}
	return w, w.SetEndpoints(b.Endpoints())
}

// SetEndpoints changes the set, of the balancer and of the monitor at once. An endpoint that its source gives as draining
// or unavailable is that, whatever checks say.
func (w *watch) SetEndpoints(eps []host.Endpoint) error {
	names, next := make([]string, len(eps)), make(map[string]*endpointState, len(eps))
	w.known.RLock()
	for i, ep := range eps {
		names[i] = ep.Name
		s := &endpointState{}
		if was := w.states[ep.Name]; was != nil {
			s = was
		}
		next[ep.Name] = s
	}
	for name, s := range w.states {
		if next[name] == nil && s.inFlight.Load() != 0 {
			next[name] = s // its requests are still to end
		}
	}
	w.known.RUnlock()
	return w.monitor.SetEndpoints(names, func(verdicts []health.Verdict) error {
		byName := make(map[string]health.Verdict, len(verdicts))
		for _, v := range verdicts {
			byName[v.Name] = v
		}
		judged := slices.Clone(eps)
		for i := range judged {
			judge(&judged[i], eps[i], byName[eps[i].Name])
		}
		if err := w.b.SetEndpoints(judged); err != nil {
			return err
		}
		w.known.Lock()
		defer w.known.Unlock()
		for _, ep := range eps {
			next[ep.Name].given = ep
		}
		w.states = next
		return nil
	})
}

// judge makes an endpoint what its source and its verdict make of it.
func judge(ep *host.Endpoint, given host.Endpoint, v health.Verdict) {
	ep.Weight = v.Weight(given.Weight)
	if ep.Status = given.Status; given.Status == engine.StatusReady {
		ep.Status = v.Status
	}
}

// state is what is known of an endpoint. One that nobody gave has a state of its own, which is not kept.
func (w *watch) state(name string) *endpointState {
	w.known.RLock()
	defer w.known.RUnlock()
	if s := w.states[name]; s != nil {
		return s
	}
	return &endpointState{}
}

// inFlight is the number of this proxy's requests that an endpoint has open.
func (w *watch) inFlight(endpoint string) int64 { return w.state(endpoint).inFlight.Load() }

// apply passes changes on to the balancer.
func (w *watch) apply(changed []health.Verdict) {
	err := w.put(changed)
	if err != nil {
		w.log.Error("the balancer does not take what became of endpoints", "error", err)
	}
}

// put gives verdicts to the balancer, several of them or weights in one go.
func (w *watch) put(verdicts []health.Verdict) error {
	if len(verdicts) == 1 && verdicts[0].Share == 0 && w.state(verdicts[0].Name).given.Status == engine.StatusReady {
		return w.b.SetStatus(verdicts[0].Name, verdicts[0].Status)
	}
	byName := make(map[string]health.Verdict, len(verdicts))
	for _, v := range verdicts {
		byName[v.Name] = v
	}
	eps := w.b.Endpoints()
	for i := range eps {
		if v, ok := byName[eps[i].Name]; ok {
			judge(&eps[i], w.state(v.Name).given, v)
		}
	}
	return w.b.SetEndpoints(eps)
}

// probing passes probes on and keeps their results. A failed one takes nothing out, since not every replica answers
// probes: it has the endpoint checked.
func (w *watch) probing(next host.ProbeFunc) host.ProbeFunc {
	return func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		rd, err := next(ctx, ep)
		if errors.Is(err, context.Canceled) {
			return rd, err // the proxy is stopping
		}
		s := w.state(ep.Name)
		s.mu.Lock()
		was := s.failed
		s.probedAt, s.probeErr = time.Now(), err
		if s.failed++; err == nil {
			s.failed = 0
		}
		is := s.failed
		s.mu.Unlock()
		if err != nil {
			w.monitor.Suspect(ep.Name)
		}
		switch {
		case is == failuresToWarn:
			w.log.Warn("endpoint answers no probes", "endpoint", ep.Name, "error", err)
		case was >= failuresToWarn && is == 0:
			w.log.Info("endpoint answers probes again", "endpoint", ep.Name)
		}
		return rd, err
	}
}

// Sent, Answered and Ended make it an lbhttp.Watcher.
func (w *watch) Sent(endpoint string)   { w.state(endpoint).inFlight.Add(1) }
func (w *watch) Answered(string, error) {}
func (w *watch) Ended(endpoint string)  { w.state(endpoint).inFlight.Add(-1) }

// probeView is the last probe of an endpoint.
type probeView struct {
	OK    bool    `json:"ok"`
	Error string  `json:"error,omitempty"`
	AgeMS float64 `json:"age_ms"`
}

// show fills in what is known of an endpoint.
func (w *watch) show(v *endpointView, verdict health.Verdict) {
	v.Failing, v.Cause, v.Panic, v.Reason = verdict.Cause.Failing(), verdict.Cause.String(), verdict.Panic, verdict.Reason
	s := w.state(v.Name)
	v.InFlight = s.inFlight.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probedAt.IsZero() {
		return
	}
	v.LastProbe = &probeView{OK: s.probeErr == nil, AgeMS: float64(time.Since(s.probedAt)) / 1e6}
	if s.probeErr != nil {
		v.LastProbe.Error = s.probeErr.Error()
	}
}

// checker connects to an endpoint or, with a path, asks for it and wants a status of 200 to 399.
func (w *watch) checker(path string) health.CheckFunc {
	if path == "" {
		return func(ctx context.Context, name string) error { return connect(ctx, w.state(name).given.Addr) }
	}
	client := w.upstream.Checks()
	return func(ctx context.Context, name string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(w.state(name).given.Addr, "/")+path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("User-Agent", "wasmhost health check")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode < 200 || resp.StatusCode >= 400 {
			return fmt.Errorf("%s answers with status %d, want 200 to 399", path, resp.StatusCode)
		}
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		return err
	}
}

func connect(ctx context.Context, base string) error {
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), u.Scheme) // the scheme is the port's name
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
