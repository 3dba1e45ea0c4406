package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// Balancer decides for many callers at once. Make one for each group of replicas and keep it.
type Balancer struct {
	opts       options
	salt       uint64
	began      time.Time
	counts     counts
	background sync.WaitGroup
	fleet      atomic.Pointer[fleet]
	prober     atomic.Pointer[chan ticket]

	live        atomic.Pointer[arm]
	canary      atomic.Pointer[arm] // nil if none runs
	comparison  atomic.Pointer[Comparison]
	generations atomic.Uint64
	changes     sync.Mutex // of policy: one at a time; taken before membership
	previous    *Source    // what was live before the last swap, nil once that is rolled back; under changes
	leaving     leaving
	news        news

	membership sync.Mutex // one change of the fleet at a time

	admit  sync.RWMutex
	closed bool           // under admit
	ended  chan struct{}  // closed when it is
	open   sync.WaitGroup // placements; guarded against use after Wait by admit
}

// Query is one unit of work to place.
type Query struct {
	Key   string   // affinity; empty for none
	Tried []string // endpoints that a retry or a hedge must avoid, at most engine.MaxTried
	Hint  string   // told to the replicas that are probed for this query: see [Hint]; empty for none
}

// NewBalancer makes a balancer whose decisions are made by instances of a module. A spec that
// the module refuses is an [engine.ErrConfig] with its reason.
func NewBalancer(ctx context.Context, m *Module, spec string, opts ...Option) (*Balancer, error) {
	return newBalancer(ctx, FromModule(m, spec), opts)
}

// NewNativeBalancer makes the same balancer over native engines: parse is policy.Parse, or
// one's own.
func NewNativeBalancer(parse Parse, spec string, opts ...Option) (*Balancer, error) {
	return newBalancer(context.Background(), FromPolicies(parse, spec), opts)
}

func newBalancer(ctx context.Context, src Source, opts []Option) (*Balancer, error) {
	b := &Balancer{began: time.Now(), opts: options{shards: 1, wait: DefaultProbeWait}, ended: make(chan struct{})}
	for _, opt := range opts {
		opt(&b.opts)
	}
	if b.opts.shards < 1 || b.opts.shards > 256 {
		return nil, fmt.Errorf("%d shards: want 1 to 256", b.opts.shards)
	}
	if b.opts.wait <= 0 || b.opts.wait > time.Minute {
		return nil, fmt.Errorf("a probe wait of %v: want more than 0, at most 1m", b.opts.wait)
	}
	if err := b.opts.recorder.serve(b); err != nil {
		return nil, err
	}
	b.salt = b.opts.seed
	if b.salt == 0 && !slices.ContainsFunc(strings.Fields(src.spec), func(w string) bool { return strings.HasPrefix(w, "seed=") }) {
		b.salt = rand.Uint64() | 1
	}
	empty, _ := newFleet(nil)
	b.fleet.Store(empty)
	live := &arm{source: src, generation: b.generations.Add(1)}
	for i := range b.opts.shards {
		salt := b.salt + uint64(i)
		m, canonical, err := src.start(ctx, salt)
		if err == nil {
			live.spec = canonical
			live.shards = append(live.shards, &shard{b: b, index: i, salt: salt, fleet: empty, seat: seat{arm: live, machine: m, serial: 1, since: b.began, kept: -before}})
			err = m.Inspect(&engine.Counters{}, &live.fit)
			live.shards[i].machine = live.shards[i].recording(m)
		}
		if err != nil {
			for _, s := range live.shards {
				err = errors.Join(err, s.close(ctx))
			}
			return nil, errors.Join(err, b.opts.recorder.leave(b))
		}
	}
	live.spares = b.keepSpare(src)
	b.live.Store(live)
	return b, nil
}

// all are the shards that a change of the fleet concerns.
func (b *Balancer) all() []*shard {
	shards := b.live.Load().shards
	if c := b.canary.Load(); c != nil {
		shards = append(slices.Clone(shards), c.shards...)
	}
	return shards
}

func (b *Balancer) isClosed() bool {
	b.admit.RLock()
	defer b.admit.RUnlock()
	return b.closed
}

// told does not wait for the handler: a shard's lock may be held, and the handler may ask the
// balancer something.
func (b *Balancer) told(err error) {
	if b.opts.trap != nil {
		go b.opts.trap(err)
	}
}

// Spec is the canonical spec line of the live policy.
func (b *Balancer) Spec() string { return b.live.Load().spec }

// Source is where the live policy comes from.
func (b *Balancer) Source() Source { return b.live.Load().source }

// Now is the balancer's clock, on which its engine's instants lie.
func (b *Balancer) Now() engine.Instant { return engine.Instant(time.Since(b.began)) }

// InFlight is the number of placements that are not done. It never waits.
func (b *Balancer) InFlight() int64 { return b.counts.inFlight() }

// SetEndpoints replaces the whole set. State is kept by name: what is known of an endpoint
// survives every change that keeps its name. On an error the old set serves.
func (b *Balancer) SetEndpoints(eps []Endpoint) error {
	next, err := newFleet(eps)
	if err != nil {
		return err
	}
	defer b.announce()
	b.membership.Lock()
	defer b.membership.Unlock()
	old, live := b.fleet.Load(), b.live.Load().shards
	for i, s := range live {
		if err := s.setFleet(next); err != nil {
			for _, done := range live[:i] {
				_ = done.setFleet(old)
			}
			return err
		}
	}
	if c := b.canary.Load(); c != nil {
		for _, s := range c.shards {
			if err := s.setFleet(next); err != nil {
				b.told(fmt.Errorf("the canary ends: it refuses the fleet: %w", err))
				b.endCanary(nil)
				b.changed(ChangeEnd, c, b.live.Load())
				break
			}
		}
	}
	b.fleet.Store(next)
	return nil
}

// SetStatus changes one endpoint's status: [engine.ErrUnknownID] if there is none of the name.
func (b *Balancer) SetStatus(name string, st engine.Status) error {
	b.membership.Lock()
	defer b.membership.Unlock()
	f := b.fleet.Load()
	slot, ok := f.byID[engine.IDOf(name)]
	if !ok {
		return fmt.Errorf("%w: %q", engine.ErrUnknownID, name)
	}
	if st > engine.StatusUnavailable {
		return fmt.Errorf("%w: no such status", engine.ErrConfig)
	}
	next := f.withStatus(slot, st)
	b.fleet.Store(next)
	var failed error
	for _, s := range b.all() {
		failed = errors.Join(failed, s.setStatus(next, next.candidates[slot].ID, st))
	}
	return failed
}

// Endpoints returns the present set.
func (b *Balancer) Endpoints() []Endpoint { return slices.Clone(b.fleet.Load().endpoints) }

// Decide places a query; call Done on the placement when it has ended. Under a synchronous policy
// it first probes replicas for this query, with the [Prober] that runs, and waits for the answers
// that the policy weighs, [WithProbeWait] at most; without a prober nobody answers. Errors are the
// engine's sentinels ([engine.ErrNoCandidates], [engine.ErrNoneEligible] and so on),
// [ErrClosed], the context's, and under [WithFailClosed] [ErrTrap] and [ErrAnswer].
func (b *Balancer) Decide(ctx context.Context, q Query) (*Placement, error) {
	p, err := b.place(ctx, &q)
	if err != nil {
		b.counts.errors.Add(1)
	}
	if b.opts.observer != nil {
		b.observe(ctx, q, p, err)
	}
	return p, err
}

func (b *Balancer) place(ctx context.Context, q *Query) (*Placement, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(q.Tried) > engine.MaxTried {
		return nil, fmt.Errorf("%w: %d endpoints tried, at most %d", engine.ErrCapacity, len(q.Tried), engine.MaxTried)
	}
	b.admit.RLock()
	if b.closed {
		b.admit.RUnlock()
		return nil, ErrClosed
	}
	b.open.Add(1)
	b.admit.RUnlock()
	p, err := b.decide(ctx, q)
	if err != nil {
		b.open.Done()
		return nil, err
	}
	arm, own := p.shard.tallies()
	arm.begin(p.Decision.Regime)
	own.begin(p.Decision.Regime)
	b.counts.byCause[p.Decision.Cause].Add(1)
	return p, nil
}

// decide asks the canary, if the query is one of its share, or the live arm.
func (b *Balancer) decide(ctx context.Context, q *Query) (*Placement, error) {
	if c := b.canary.Load(); c != nil && c.takes(q.Key) {
		if p, err := b.decideOn(ctx, c, q); err != errMoved {
			return p, err
		} // it ended while we asked
	}
	return b.decideOn(ctx, b.live.Load(), q)
}

func (b *Balancer) decideOn(ctx context.Context, a *arm, q *Query) (*Placement, error) {
	var answers []engine.Answer
	if a.asks() {
		var err error
		if answers, err = b.ask(ctx, a, q); err != nil {
			return nil, err
		}
	}
	return a.acquire().decide(q, answers)
}

// Record takes a reading that came with an ordinary answer, as of now. It goes to the first
// shard, so that it informs no more decisions than its uses. Unknown endpoints are
// [engine.ErrUnknownID].
func (b *Balancer) Record(name string, rd engine.Reading) error {
	now := b.Now()
	rd.Asked = now
	err := b.live.Load().shards[0].told(message{kind: tellReading, at: now, id: engine.IDOf(name), reading: rd})
	if errors.Is(err, engine.ErrUnknownID) {
		return fmt.Errorf("%w: %q", err, name)
	}
	return err
}

// RecordLoad takes a load report that came with an answer, as of now. It goes to every shard:
// policies that weigh load keep it until the next. Unknown endpoints are [engine.ErrUnknownID].
func (b *Balancer) RecordLoad(name string, l engine.LoadReport) error {
	var failed error
	for _, s := range b.all() {
		err := s.told(message{kind: tellLoad, at: b.Now(), id: engine.IDOf(name), load: l})
		if errors.Is(err, engine.ErrUnknownID) {
			return fmt.Errorf("%w: %q", err, name)
		}
		failed = errors.Join(failed, err) // a shard whose guest traps does not keep it from the others
	}
	return failed
}

// Forget drops what every shard holds of an endpoint.
func (b *Balancer) Forget(name string) {
	for _, s := range b.all() {
		now := b.Now()
		_ = s.told(message{kind: tellForget, at: now, id: engine.IDOf(name), asked: now})
	}
}

// Close refuses new queries, waits for open placements until the context ends, frees the machines, and waits
// for the sink of a recorder, if there is one: see [Recorder].
func (b *Balancer) Close(ctx context.Context) error {
	b.admit.Lock()
	if !b.closed {
		b.closed = true
		close(b.ended)
	}
	b.admit.Unlock()
	done := make(chan struct{})
	go func() { b.open.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("%d placements still open: %w", b.counts.inFlight(), ctx.Err())
	}
	b.changes.Lock() // a swap under way ends first
	defer b.changes.Unlock()
	for _, s := range append(b.all(), b.leaving.all()...) {
		err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	b.background.Wait()
	return errors.Join(err, b.opts.recorder.leave(b))
}
