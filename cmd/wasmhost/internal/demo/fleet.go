package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/lifecycle"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/replicaproc"
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

// fleet is one round's replicas and balancers, all made anew, so that no round inherits what another left behind.
type fleet struct {
	servers   []*lifecycle.Server
	balancers []*host.Balancer
	proxies   []string // base URLs
	stop      context.CancelFunc
	probers   sync.WaitGroup
	late      atomic.Uint64   // probes that were not answered in time
	base      *http.Transport // from balancers to replicas, with its own connections
}

// newFleet starts the replicas of the scenario and a proxy for each balancer, all on loopback.
func newFleet(ctx context.Context, m *host.Module, s Scenario, spec string, seed uint64) (_ *fleet, err error) {
	ctx, stop := context.WithCancel(ctx)
	f := &fleet{stop: stop, base: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()

	endpoints := make([]host.Endpoint, s.Replicas)
	for i := range endpoints {
		set := replicaproc.Defaults()
		set.Slots, set.Service = s.Slots, replicaproc.Duration(s.Service)
		if i < s.Noisy {
			set.SlowFactor, set.SlowShare = s.SlowFactor, 1
		}
		name := fmt.Sprintf("replica-%d", i)
		r, err := replicaproc.New(name, set, seed+uint64(i))
		if err != nil {
			return f, err
		}
		url, err := f.serve(r.Handler())
		if err != nil {
			return f, err
		}
		endpoints[i] = host.Endpoint{Name: name, Addr: url, Status: engine.StatusReady}
	}

	ask := lbhttp.ProbeURL(&http.Client{Transport: f.base}, "")
	probe := func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		rd, err := ask(ctx, ep)
		if errors.Is(err, context.DeadlineExceeded) {
			f.late.Add(1)
		}
		return rd, err
	}
	for i := range s.Balancers {
		b, err := host.NewBalancer(ctx, m, spec, host.WithSeed(seed+1000+uint64(i)))
		if err != nil {
			return f, err
		}
		f.balancers = append(f.balancers, b)
		if err := b.SetEndpoints(endpoints); err != nil {
			return f, err
		}
		f.probers.Go(func() {
			// It ends with the round; there is no other reason for it to return.
			_ = (&host.Prober{Probe: probe}).Run(ctx, b)
		})
		url, err := f.serve(lbhttp.NewProxy(b, lbhttp.WithBase(f.base)))
		if err != nil {
			return f, err
		}
		f.proxies = append(f.proxies, url)
	}
	return f, nil
}

// serve starts one server on a free port and returns its base URL.
func (f *fleet) serve(h http.Handler) (string, error) {
	ln, err := lifecycle.Listen("a demo listener", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	f.servers = append(f.servers, lifecycle.Start(ln, h))
	return "http://" + ln.Addr().String(), nil
}

// count adds what the balancers counted to a result.
func (f *fleet) count(r *Result) {
	r.Probes.Late += f.late.Load()
	for i, b := range f.balancers {
		st := b.Stats()
		for regime, n := range st.ByRegime {
			if n > 0 {
				r.Regimes[engine.Regime(regime).String()] += n
			}
		}
		for cause, n := range st.ByCause {
			if name := engine.Cause(cause).String(); n > 0 && name != "" {
				r.Causes[name] += n
			}
		}
		r.Probes.Sent += st.Probes.Sent
		r.Probes.Answered += st.Probes.Answered
		r.Probes.Failed += st.Probes.Failed
		r.Probes.Shed += st.Probes.Shed
		r.Traps += st.Traps
		if i == 0 {
			r.Fit = newFit(st.Fit)
		}
	}
}

// close stops proxies, balancers and replicas. All queries have ended by then, so nothing is waited for long.
func (f *fleet) close() error {
	f.stop()
	f.probers.Wait()
	// Connections first: a server waits for those that were opened and never used.
	f.base.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var errs []error
	for i := len(f.servers) - 1; i >= 0; i-- {
		errs = append(errs, f.servers[i].Drain(time.Second))
	}
	for _, b := range f.balancers {
		errs = append(errs, b.Close(ctx))
	}
	return errors.Join(errs...)
}
