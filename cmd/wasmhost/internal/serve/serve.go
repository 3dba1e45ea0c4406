package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/lifecycle"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/module"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
	"github.com/headroom-lb/headroom/host/observe"
	headroom "github.com/headroom-lb/headroom/host/observe/prometheus"
)

// InputError is a setting that was found wrong only when it was used, such as a file that is not a module.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// Run serves a validated config until ctx ends, then drains. It prints one line per listener on out once both are
// open, and logs the rest.
func Run(ctx context.Context, c Config, out io.Writer, log *slog.Logger) (err error) {
	defer func() {
		if err == nil {
			log.Info("stopped")
		}
	}()
	// Listeners come first: a port in use is said at once, not after a module was compiled.
	ln, err := lifecycle.Listen("--listen", c.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	var adminLn net.Listener
	if c.Admin != AdminOff {
		if adminLn, err = lifecycle.Listen("--admin", c.Admin); err != nil {
			return err
		}
		defer adminLn.Close()
	}

	front, err := edge.New(c.Edge, log)
	if err != nil {
		return &InputError{err}
	}
	reg := newRegistry()
	f := newFleet(log, reg, len(c.Routes) > 0)
	defer func() { err = errors.Join(err, f.end()) }()
	first, err := beginAll(ctx, c.served(), f)
	if err != nil {
		return err
	}
	f.serve(first, 0)

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { front.Run(background) })
	reload := newReloader(c, f, front.Certificates(), log)
	wg.Go(func() {
		for {
			select {
			case <-background.Done():
				return
			case <-c.Hangup:
				reload.onSignal(background)
			}
		}
	})

	var draining atomic.Bool
	reg.MustRegister(edgeCollector{front})
	quiet := func(s *http.Server) { s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) } // what strangers send is no error of ours
	proxy := lifecycle.Start(front.Listener(ln), headroom.Instrument(reg, front.Handler(f)), front.Tune, quiet)
	fmt.Fprintf(out, "proxy listens on %s://%s with %s\n", c.Edge.Scheme(), ln.Addr(), f.policies())
	var admin *lifecycle.Server
	adminFailed := make(<-chan error)
	if adminLn != nil {
		admin = lifecycle.Start(adminLn, newAdmin(f, &draining, reload, c.token))
		adminFailed = admin.Failed()
		fmt.Fprintf(out, "admin listens on http://%s\n", adminLn.Addr())
	}

	select {
	case err := <-proxy.Failed():
		return fmt.Errorf("the proxy's listener failed: %w", err)
	case err := <-adminFailed:
		return fmt.Errorf("the admin listener failed: %w", err)
	case <-ctx.Done():
	}
	draining.Store(true)
	log.Info("draining", "in_flight", f.inFlight(), "at_most", time.Duration(c.Drain))
	err = proxy.Drain(time.Duration(c.Drain))
	// The admin listener goes last: it is where the drain can be watched.
	if admin != nil {
		_ = admin.Drain(time.Second)
	}
	return err
}

// beginAll begins routes, or none.
func beginAll(ctx context.Context, routes []Route, f *fleet) (out []placed, err error) {
	for _, r := range routes {
		rt, err := begin(ctx, r, f.logOf(r.Name))
		if err != nil {
			for _, p := range out {
				err = errors.Join(err, p.stop())
			}
			if f.several {
				err = fmt.Errorf("route %q: %w", r.Name, err)
			}
			return nil, err
		}
		out = append(out, placed{r.Match, rt})
	}
	return out, nil
}

// policyText is the spec as given and, where that says something else, in its canonical form, which leaves settings at
// their default out. Drawn says which seed the host drew, empty for none; the zero of the policy's own is no news then.
func policyText(given, canonical, drawn string) string {
	var notes []string
	if drawn != "" && !namesSeed(given) {
		canonical = strings.Replace(canonical, " seed=0", "", 1)
	}
	if given != canonical {
		notes = append(notes, "canonical, without what is at its default: "+canonical)
	}
	if drawn != "" {
		notes = append(notes, drawn)
	}
	if len(notes) == 0 {
		return given
	}
	return given + " (" + strings.Join(notes, "; ") + ")"
}

func namesSeed(spec string) bool {
	return slices.ContainsFunc(strings.Fields(spec), func(w string) bool { return strings.HasPrefix(w, "seed=") })
}

// policy is what the route runs, in words.
func (rt *running) policy() string {
	drawn := ""
	if salt := rt.b.Stats().Salt; salt != 0 {
		drawn = fmt.Sprintf("the host drew seed %d", salt)
	}
	return policyText(rt.now.Spec, rt.b.Spec(), drawn)
}

// newProxy is the library's proxy that also logs what the client is not told. The watch learns of its transport, which
// metrics and the pool view read.
func newProxy(b *host.Balancer, w *watch, c Config, log *slog.Logger) http.Handler {
	opts := append(c.Attempts.options(), lbhttp.WithWatcher(w), lbhttp.WithGate(w.monitor), lbhttp.WithBase(w.upstream.Requests()))
	if c.Key != "" {
		opts = append(opts, lbhttp.WithKey(func(r *http.Request) string { return r.Header.Get(c.Key) }))
	}
	if c.Hint != "" {
		opts = append(opts, lbhttp.WithHint(func(r *http.Request) string { return r.Header.Get(c.Hint) }))
	}
	w.attempts = attempts{c.Attempts, lbhttp.NewTransport(b, opts...)}
	p := w.attempts.transport.Proxy()
	answer := p.ErrorHandler
	p.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		if fault := edge.FaultOf(r.Context()); fault != nil {
			fault.Answer(w)
			return
		}
		if errors.Is(context.Cause(r.Context()), errRemoved) {
			http.Error(w, errRemoved.Error(), http.StatusServiceUnavailable)
			return
		}
		if r.Context().Err() == nil {
			log.Warn("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		answer(w, r, err)
	}
	p.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	return p
}

// newBalancer makes the balancer of a config, with its endpoints, and what frees it.
func newBalancer(ctx context.Context, c Config, log *slog.Logger, more ...host.Option) (*host.Balancer, *engines, func() error, error) {
	opts := append([]host.Option{
		host.WithShards(c.Shards),
		host.WithProbeWait(time.Duration(c.ProbeWait)),
		host.WithTwin(policy.Parse),
	}, more...)
	opts = append(opts, (&observe.Log{Logger: log, Sample: sampled}).Options()...)
	if c.Record > 0 {
		opts = append(opts, host.WithRecorder(newRecorder(c, log)))
	}
	b, e, free, err := machine(ctx, c, log, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := b.SetEndpoints(hostEndpoints(c.Endpoints)); err != nil {
		return nil, nil, nil, errors.Join(&InputError{err}, free())
	}
	return b, e, free, nil
}

// newRecorder keeps what was decided lately. On an anomaly it says so: the way to look is to fetch the recording.
func newRecorder(c Config, log *slog.Logger) *host.Recorder {
	return &host.Recorder{Keep: time.Duration(c.Record), OnAnomaly: func(reason string) {
		log.Warn("something is wrong; fetch what was recorded with: wasmhost record", "reason", reason)
	}}
}

// sampled is one in how many decisions is logged, where the log's level is debug.
const sampled = 100

// callLimit is how long one call may take into a module that can have no fuel. Calls take microseconds: one that takes
// this long does not end by itself.
const callLimit = 250 * time.Millisecond

// machine makes the balancer with its engine: native, the built-in module, or one from a file.
func machine(ctx context.Context, c Config, log *slog.Logger, opts []host.Option) (*host.Balancer, *engines, func() error, error) {
	// Placements may stay open for ever on a hijacked connection; the process does not wait for those.
	closing := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, time.Second) }
	if c.Engine == "native" {
		b, err := host.NewNativeBalancer(policy.Parse, c.Spec, opts...)
		if err != nil {
			return nil, nil, nil, err
		}
		return b, &engines{b: b}, func() error { ctx, cancel := closing(); defer cancel(); return b.Close(ctx) }, nil
	}
	code, err := c.readModule()
	if err != nil {
		return nil, nil, nil, &InputError{err}
	}
	rt, m, err := module.Open(ctx, c.Cache, code, callLimit, host.WithFuel(c.Fuel),
		host.WithWarningHandler(func(err error) { log.Warn("the module is slow", "module", c.Module, "error", err) }))
	if errors.Is(err, host.ErrModule) {
		return nil, nil, nil, &InputError{fmt.Errorf("--module %s: %w", c.Module, err)}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if c.Module != "" {
		log.Info("module loaded", "module", c.Module, "sha256", m.DigestText(), "guard", m.Guard().String())
	}
	b, err := host.NewBalancer(ctx, m, c.Spec, opts...)
	if err != nil {
		return nil, nil, nil, errors.Join(err, rt.Close(ctx))
	}
	return b, &engines{b: b, runtime: rt}, func() error {
		ctx, cancel := closing()
		defer cancel()
		return errors.Join(b.Close(ctx), rt.Close(context.WithoutCancel(ctx)))
	}, nil
}
