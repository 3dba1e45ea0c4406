package host

import (
	"context"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// Observer hears of every decision, on the goroutine of the query, which waits for it. The placement
// is nil if there is an error. What it returns, if not nil, is called once when the placement ends,
// with how and after how long. It must not keep the placement.
type Observer func(ctx context.Context, q Query, p *Placement, err error) (ended func(engine.Outcome, time.Duration))

// WithObserver has decisions and their ends observed: see package observe for observers. Given
// more than once, all of them hear.
func WithObserver(f Observer) Option {
	return func(o *options) {
		first := o.observer
		if first == nil {
			o.observer = f
			return
		}
		o.observer = func(ctx context.Context, q Query, p *Placement, err error) func(engine.Outcome, time.Duration) {
			one, two := first(ctx, q, p, err), f(ctx, q, p, err)
			if one == nil || two == nil {
				if one == nil {
					one = two
				}
				return one
			}
			return func(out engine.Outcome, took time.Duration) { one(out, took); two(out, took) }
		}
	}
}

func (b *Balancer) observe(ctx context.Context, q Query, p *Placement, err error) {
	heard := false
	defer func() {
		if !heard && p != nil { // it panics: nobody gets the placement
			p.Done(engine.OutcomeCancelled)
		}
	}()
	if ended := b.opts.observer(ctx, q, p, err); p != nil {
		p.observed = ended
	}
	heard = true
}

// Change is a change of policy that came about.
type Change struct {
	Kind       ChangeKind
	From, Spec string // canonical: what decided before, or decides beside a canary; and what does now
	Generation uint64 // of Spec
	Share      uint32 // of the queries, for a canary: parts per 10,000
}

// ChangeKind names what was done.
type ChangeKind string

// The kinds of changes.
const (
	ChangeSwap     ChangeKind = "swap"
	ChangeCanary   ChangeKind = "canary"   // one begins
	ChangeShare    ChangeKind = "share"    // of the canary that runs
	ChangePromote  ChangeKind = "promote"  // the canary's policy is the live one now
	ChangeRollback ChangeKind = "rollback" // of a canary, or of a swap
	ChangeEnd      ChangeKind = "end"      // of a canary that refused the fleet
)

// WithChangeHandler is told of every change of policy, in their order and one at a time, on a goroutine
// that made one. Nothing of the balancer waits for it, and it may call what it likes: of a change that
// it makes itself it is told when it has returned.
func WithChangeHandler(f func(Change)) Option { return func(o *options) { o.change = f } }

// news are the changes that the handler has not been told of.
type news struct {
	mu      sync.Mutex
	waiting []Change
	telling bool
}

// changed notes a change, in the order in which changes are made: under their locks.
func (b *Balancer) changed(kind ChangeKind, from, to *arm) {
	if b.opts.change == nil {
		return
	}
	b.news.mu.Lock()
	defer b.news.mu.Unlock()
	b.news.waiting = append(b.news.waiting, Change{kind, from.spec, to.spec, to.generation, to.share})
}

// announce tells the handler what is new, under no lock, unless somebody is telling it already.
func (b *Balancer) announce() {
	for b.announceNext() {
	}
}

func (b *Balancer) announceNext() bool {
	n := &b.news
	n.mu.Lock()
	if n.telling || len(n.waiting) == 0 {
		n.mu.Unlock()
		return false
	}
	c := n.waiting[0]
	n.waiting, n.telling = n.waiting[1:], true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.telling = false
		n.mu.Unlock()
	}()
	b.opts.change(c)
	return true
}
