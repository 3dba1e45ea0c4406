package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
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
	start      maker
	spec       string
	salt       uint64
	began      time.Time
	shards     []*shard
	counts     counts
	fit        engine.Fit // as configured: what the policy asks of its host
	asks       bool       // the policy decides on the answers to a query's own probes
	background sync.WaitGroup

	membership sync.Mutex // one change at a time
	fleet      atomic.Pointer[fleet]
	closed     bool           // under admit
	ended      chan struct{}  // closed when it is
	open       sync.WaitGroup // placements; guarded against use after Wait by admit
	admit      sync.RWMutex
	prober     atomic.Pointer[chan ticket]
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
	return newBalancer(ctx, func(ctx context.Context, salt uint64) (engine.Machine, string, error) {
		in, err := m.Instantiate(ctx, spec, salt)
		if err != nil {
			return nil, "", err
		}
		return in, in.Spec(), nil
	}, spec, opts)
}

// NewNativeBalancer makes the same balancer over native engines: parse is policy.Parse, or
// one's own.
func NewNativeBalancer(parse func(spec string) (engine.Policy, error), spec string, opts ...Option) (*Balancer, error) {
	return newBalancer(context.Background(), func(_ context.Context, salt uint64) (engine.Machine, string, error) {
		p, err := parse(spec)
		if err != nil {
			return nil, "", err
		}
		return engine.New(p, engine.Config{Salt: salt}), p.Spec(), nil
	}, spec, opts)
}

func newBalancer(ctx context.Context, start maker, spec string, opts []Option) (*Balancer, error) {
	b := &Balancer{start: start, began: time.Now(), opts: options{shards: 1, wait: DefaultProbeWait}, ended: make(chan struct{})}
	for _, opt := range opts {
		opt(&b.opts)
	}
	if b.opts.shards < 1 || b.opts.shards > 256 {
		return nil, fmt.Errorf("%d shards: want 1 to 256", b.opts.shards)
	}
	if b.opts.wait <= 0 || b.opts.wait > time.Minute {
		return nil, fmt.Errorf("a probe wait of %v: want more than 0, at most 1m", b.opts.wait)
	}
	b.salt = b.opts.seed
	if b.salt == 0 && !slices.ContainsFunc(strings.Fields(spec), func(w string) bool { return strings.HasPrefix(w, "seed=") }) {
		b.salt = rand.Uint64() | 1
	}
	empty, _ := newFleet(nil)
	b.fleet.Store(empty)
	for i := range b.opts.shards {
		salt := b.salt + uint64(i)
		m, canonical, err := start(ctx, salt)
		if err != nil {
			return nil, errors.Join(err, b.Close(ctx))
		}
		b.spec = canonical
		b.shards = append(b.shards, &shard{b: b, salt: salt, machine: m, serial: 1, fleet: empty})
		if err := m.Inspect(&engine.Counters{}, &b.fit); err != nil {
			return nil, errors.Join(err, b.Close(ctx))
		}
		b.asks = b.fit.Probes > 0
	}
	return b, nil
}

// told does not wait for the handler: a shard's lock may be held, and the handler may ask the
// balancer something.
func (b *Balancer) told(err error) {
	if b.opts.trap != nil {
		go b.opts.trap(err)
	}
}

// Spec is the canonical spec line.
func (b *Balancer) Spec() string { return b.spec }

// Now is the balancer's clock, on which its engine's instants lie.
func (b *Balancer) Now() engine.Instant { return engine.Instant(time.Since(b.began)) }

// InFlight is the number of placements that are not done. It never waits.
func (b *Balancer) InFlight() int64 { return b.counts.inFlight.Load() }

// SetEndpoints replaces the whole set. State is kept by name: what is known of an endpoint
// survives every change that keeps its name. On an error the old set serves.
func (b *Balancer) SetEndpoints(eps []Endpoint) error {
	next, err := newFleet(eps)
	if err != nil {
		return err
	}
	b.membership.Lock()
	defer b.membership.Unlock()
	old := b.fleet.Load()
	for i, s := range b.shards {
		if err := s.setFleet(next); err != nil {
			for _, done := range b.shards[:i] {
				_ = done.setFleet(old)
			}
			return err
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
	for _, s := range b.shards {
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
	var p *Placement
	var err error
	if b.asks {
		p, err = b.placeAsking(ctx, q)
	} else {
		p, err = b.acquire().decide(q, nil)
	}
	if err != nil {
		b.open.Done()
		return nil, err
	}
	b.counts.byRegime[p.Decision.Regime].Add(1)
	b.counts.byCause[p.Decision.Cause].Add(1)
	b.counts.inFlight.Add(1)
	return p, nil
}

// acquire takes a free shard, in order: low traffic stays on the first, whose pool it keeps
// fresh. Waiting comes last, because a holder that the kernel put to sleep holds for
// milliseconds.
func (b *Balancer) acquire() *shard {
	for range 4 {
		for _, s := range b.shards {
			if s.mu.TryLock() {
				return s
			}
		}
		runtime.Gosched()
	}
	s := b.shards[rand.IntN(len(b.shards))]
	s.mu.Lock()
	return s
}

// decide runs under the shard's lock and releases it.
func (s *shard) decide(q *Query, answers []engine.Answer) (*Placement, error) {
	defer s.mu.Unlock()
	s.query = engine.Query{Now: s.b.Now(), Tried: s.tried[:0], Answers: answers}
	if q.Key != "" {
		s.query.Key = engine.KeyOf(q.Key)
	}
	for _, name := range q.Tried {
		s.query.Tried = append(s.query.Tried, engine.IDOf(name))
	}
	if s.machine == nil {
		if s.gone { // the query was under way when the balancer closed
			return nil, ErrClosed
		}
		return s.withoutGuest(ErrTrap)
	}
	if err := s.machine.Decide(&s.query, &s.decision); err != nil {
		if s.contain(err); s.machine == nil {
			return s.withoutGuest(err)
		}
		return nil, err
	}
	p := s.placement()
	p.counted = s.serial
	s.collect()
	return p, nil
}

func (s *shard) placement() *Placement {
	return &Placement{Endpoint: s.fleet.endpoints[s.decision.Index], Decision: s.decision, shard: s, at: s.query.Now}
}

// withoutGuest decides uniformly among the eligible while no guest can.
func (s *shard) withoutGuest(cause error) (*Placement, error) {
	if s.b.opts.closed {
		return nil, cause
	}
	if len(s.fleet.candidates) == 0 {
		return nil, engine.ErrNoCandidates
	}
	open := 0
	for i, c := range s.fleet.candidates {
		if !c.Status.Eligible() || slices.Contains(s.query.Tried, c.ID) {
			continue
		}
		if open++; rand.IntN(open) == 0 {
			s.decision = engine.Decision{
				ID: c.ID, Index: uint32(i), Threshold: engine.NoThreshold,
				Regime: engine.RegimeFallback, Cause: engine.CauseTrap,
			}
		}
	}
	if open == 0 {
		return nil, engine.ErrNoneEligible
	}
	return s.placement(), nil
}

// Record takes a reading that came with an ordinary answer, as of now. It goes to the first
// shard, so that it informs no more decisions than its uses. Unknown endpoints are
// [engine.ErrUnknownID].
func (b *Balancer) Record(name string, rd engine.Reading) error {
	err := b.shards[0].with(func(m engine.Machine) error {
		now := b.Now()
		rd.Asked = now
		_, err := m.Record(now, engine.IDOf(name), rd)
		return err
	})
	if errors.Is(err, engine.ErrUnknownID) {
		return fmt.Errorf("%w: %q", err, name)
	}
	return err
}

// RecordLoad takes a load report that came with an answer, as of now. It goes to every shard:
// policies that weigh load keep it until the next. Unknown endpoints are [engine.ErrUnknownID].
func (b *Balancer) RecordLoad(name string, l engine.LoadReport) error {
	var failed error
	for _, s := range b.shards {
		err := s.with(func(m engine.Machine) error { return m.RecordLoad(b.Now(), engine.IDOf(name), l) })
		if errors.Is(err, engine.ErrUnknownID) {
			return fmt.Errorf("%w: %q", err, name)
		}
		failed = errors.Join(failed, err) // a shard whose guest traps does not keep it from the others
	}
	return failed
}

// Forget drops what every shard holds of an endpoint.
func (b *Balancer) Forget(name string) {
	for _, s := range b.shards {
		_ = s.with(func(m engine.Machine) error {
			now := b.Now()
			return m.Forget(now, engine.IDOf(name), now)
		})
	}
}

// Close refuses new queries, waits for open placements until the context ends, and frees the
// machines.
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
		err = fmt.Errorf("%d placements still open: %w", b.counts.inFlight.Load(), ctx.Err())
	}
	for _, s := range b.shards {
		err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	b.background.Wait()
	return err
}
