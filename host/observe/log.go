package observe

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// Log writes what a balancer does to a structured log: changes of policy at level info, failures of guests
// as warnings at most once in TrapEvery, and at level debug one decision in so many, with its outcome. Keys
// of queries appear as hashes only, hints not at all, and text from elsewhere goes through [Redact]. Set its
// fields before a balancer gets it. It serves any number of balancers.
type Log struct {
	Logger    *slog.Logger  // nil means slog.Default
	Sample    int           // log one decision in so many; zero means none
	TrapEvery time.Duration // zero means a second

	decisions atomic.Uint64
	mu        sync.Mutex
	trapped   time.Time
	withheld  uint64
}

// Options connect a balancer to the log.
func (l *Log) Options() []host.Option {
	return []host.Option{host.WithObserver(l.Observe), host.WithTrapHandler(l.Trap), host.WithChangeHandler(l.Change)}
}

func (l *Log) logger() *slog.Logger {
	if l.Logger == nil {
		return slog.Default()
	}
	return l.Logger
}

// Observe is a [host.Observer]. A decision is one line, when its placement has ended; a refusal is one at once.
func (l *Log) Observe(ctx context.Context, q host.Query, p *host.Placement, err error) func(engine.Outcome, time.Duration) {
	if l.Sample <= 0 || l.decisions.Add(1)%uint64(l.Sample) != 0 {
		return nil
	}
	log := l.logger()
	if !log.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	attrs := []slog.Attr{slog.Int("one_in", l.Sample)}
	if q.Key != "" {
		attrs = append(attrs, slog.String("key_hash", fmt.Sprintf("%016x", uint64(engine.KeyOf(q.Key)))))
	}
	if len(q.Tried) > 0 {
		attrs = append(attrs, slog.Int("tried", len(q.Tried)))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", Redact(err.Error())))
		log.LogAttrs(ctx, slog.LevelDebug, "not placed", attrs...)
		return nil
	}
	attrs = append(attrs, slog.String("endpoint", Redact(p.Endpoint.Name)), slog.String("arm", Arm(p.Canary)), slog.Uint64("generation", p.Generation))
	attrs = append(attrs, decided(&p.Decision)...)
	ctx = context.WithoutCancel(ctx)
	return func(o engine.Outcome, took time.Duration) {
		log.LogAttrs(ctx, slog.LevelDebug, "decided", append(attrs, slog.String("outcome", o.String()), slog.Duration("took", took))...)
	}
}

// decided is a decision as attributes. What the rule did not use is left out.
func decided(d *engine.Decision) []slog.Attr {
	attrs := []slog.Attr{slog.String("regime", d.Regime.String())}
	if d.Cause != engine.CauseNone {
		attrs = append(attrs, slog.String("cause", d.Cause.String()))
	}
	attrs = append(attrs, slog.Uint64("offered", uint64(d.Offered)), slog.Uint64("cold", uint64(d.Cold)), slog.Uint64("hot", uint64(d.Hot)))
	if d.Threshold != engine.NoThreshold {
		attrs = append(attrs, slog.Uint64("threshold", uint64(d.Threshold)))
	}
	if d.Regime == engine.RegimeCold || d.Regime == engine.RegimeHot {
		attrs = append(attrs, slog.Uint64("rif", uint64(d.RIF)), slog.Duration("age", time.Duration(d.Age)), slog.Uint64("uses_left", uint64(d.UsesLeft)))
		if d.Latency != engine.UnknownLatency {
			attrs = append(attrs, slog.Duration("latency", time.Duration(d.Latency)))
		}
	}
	return attrs
}

// Trap is for [host.WithTrapHandler]. A guest that fails always would fill a disk: what is withheld is
// counted in the next line, and metrics count all.
func (l *Log) Trap(err error) {
	every := l.TrapEvery
	if every <= 0 {
		every = time.Second
	}
	now := time.Now()
	l.mu.Lock()
	if !l.trapped.IsZero() && now.Sub(l.trapped) < every {
		l.withheld++
		l.mu.Unlock()
		return
	}
	withheld := l.withheld
	l.trapped, l.withheld = now, 0
	l.mu.Unlock()
	l.logger().Warn("the guest failed and is replaced; queries are placed by the host meanwhile", "error", Redact(err.Error()), "withheld", withheld)
}

// Change is for [host.WithChangeHandler].
func (l *Log) Change(c host.Change) {
	attrs := []slog.Attr{
		slog.String("kind", string(c.Kind)), slog.String("from", c.From), slog.String("spec", c.Spec), slog.Uint64("generation", c.Generation),
	}
	if c.Kind == host.ChangeCanary || c.Kind == host.ChangeShare {
		attrs = append(attrs, slog.Float64("share", float64(c.Share)/perUnit))
	}
	l.logger().LogAttrs(context.Background(), slog.LevelInfo, "policy changed", attrs...)
}
