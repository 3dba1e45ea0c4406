package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/headroom-lb/headroom/engine"
)

// Swap replaces the policy under traffic: another module, another spec, or both. The new machines
// are started and tried beside the old ones; then each shard changes machines between two
// decisions. The state block is handed over, and where the new machine's differs the readings
// and the open placements are. No query is lost, and on an error the old machines serve on. A
// canary or a comparison that runs goes on.
func (b *Balancer) Swap(ctx context.Context, src Source) error {
	defer b.announce()
	b.changes.Lock()
	defer b.changes.Unlock()
	return b.swap(ctx, src, ChangeSwap)
}

// swap makes a source the live one. The caller holds the lock of changes.
func (b *Balancer) swap(ctx context.Context, src Source, kind ChangeKind) error {
	old := b.live.Load()
	err := b.prepared(ctx, src, func(next *arm, ms []engine.Machine) error {
		for i, s := range old.shards {
			if err := s.rehearse(ms[i]); err != nil {
				return err
			}
		}
		next.generation, next.shards, next.spares = b.generations.Add(1), old.shards, b.keepSpare(src)
		for i, s := range old.shards {
			s.change(next, ms[i])
		}
		b.live.Store(next)
		return nil
	})
	if err != nil {
		return err
	}
	old.spares.end()
	b.counts.swaps.Add(1)
	b.previous = &old.source
	if kind == ChangePromote {
		b.endCanary(nil)
	}
	b.changed(kind, old, b.live.Load())
	return nil
}

// prepared makes an arm of a source, for as many shards as are live, and has it put in force, with the
// fleet held as it is. If that fails, or the balancer has closed, nothing remains of it. The caller
// holds the lock of changes.
func (b *Balancer) prepared(ctx context.Context, src Source, install func(next *arm, ms []engine.Machine) error) error {
	next, ms, err := b.prepare(ctx, src, salts(b.live.Load().shards))
	if err != nil {
		return err
	}
	b.membership.Lock()
	defer b.membership.Unlock()
	if err = ErrClosed; !b.isClosed() {
		err = install(next, ms)
	}
	if err != nil {
		closeAll(ctx, ms)
	}
	return err
}

func salts(shards []*shard) []uint64 {
	out := make([]uint64, len(shards))
	for i, s := range shards {
		out[i] = s.salt
	}
	return out
}

// rehearse hands the present state to a machine that is to come, to see that it bears it.
func (s *shard) rehearse(m engine.Machine) error {
	s.mu.Lock()
	h, open := s.state(), s.inFlight()
	s.release()
	if err := m.SetCandidates(h.at-before, h.fleet.candidates); err != nil {
		return err
	}
	fresh, err := m.Snapshot(nil)
	if err != nil {
		return err
	}
	if _, err := h.give(m, open, true); err != nil {
		return err
	}
	return m.Restore(fresh)
}

// change seats another arm's machine.
func (s *shard) change(a *arm, m engine.Machine) {
	s.mu.Lock()
	defer s.release()
	h := s.state() // a guest that fails at it is still the old arm's to replace
	old, spare := s.machine, s.next
	s.arm, s.next = a, nil
	err := s.sit(m, h)
	s.standIn = false
	if err != nil {
		s.machine = m
		_ = s.contain(fmt.Errorf("%w: taking over: %w", ErrTrap, err))
	} else {
		s.wait, s.block = 0, nil
		s.keep()
	}
	s.b.background.Go(func() {
		_ = closeMachine(context.Background(), old)
		if spare != nil {
			_ = spare.Close(context.Background())
		}
	})
}

// ErrNoCanary says that no canary runs.
var ErrNoCanary = errors.New("no canary runs")

// Canary gives a share of the queries, in parts per 10,000, to another source's machines, which
// start from the live ones' state and learn from their own queries. Queries with a key go one
// way for as long as the share stands. A canary that runs already is replaced.
func (b *Balancer) Canary(ctx context.Context, src Source, share uint32) error {
	if share > wholeShare {
		return fmt.Errorf("%w: a share of %d, want 0 to %d parts", engine.ErrConfig, share, wholeShare)
	}
	defer b.announce()
	b.changes.Lock()
	defer b.changes.Unlock()
	live := b.live.Load()
	return b.prepared(ctx, src, func(next *arm, ms []engine.Machine) error {
		next.generation, next.share = b.generations.Add(1), share
		tally := &tally{}
		for i, s := range live.shards {
			twin := &shard{b: b, index: i, salt: s.salt, tally: tally, seat: seat{arm: next, serial: 1}}
			next.shards = append(next.shards, twin)
			if err := s.found(twin, ms[i]); err != nil {
				return err
			}
		}
		next.spares = b.keepSpare(src)
		b.endCanary(next)
		b.changed(ChangeCanary, live, next)
		return nil
	})
}

// found lets a canary's shard begin with this shard's state, without its open placements.
func (s *shard) found(c *shard, m engine.Machine) error {
	s.mu.Lock()
	defer s.release()
	h := s.state()
	if _, err := h.give(m, nil, false); err != nil {
		return err
	}
	c.fleet = h.fleet
	c.take(m)
	return nil
}

// SetShare changes the share of the canary that runs, in parts per 10,000: [ErrNoCanary].
func (b *Balancer) SetShare(share uint32) error {
	if share > wholeShare {
		return fmt.Errorf("%w: a share of %d, want 0 to %d parts", engine.ErrConfig, share, wholeShare)
	}
	defer b.announce()
	b.membership.Lock() // a fleet that the canary refuses would end it meanwhile
	defer b.membership.Unlock()
	c := b.canary.Load()
	if c == nil {
		return ErrNoCanary
	}
	next := *c
	next.share = share
	b.canary.Store(&next)
	b.changed(ChangeShare, b.live.Load(), &next)
	return nil
}

// Promote makes the canary's policy the live one: [ErrNoCanary]. The live machines' state goes on.
func (b *Balancer) Promote(ctx context.Context) error {
	defer b.announce()
	b.changes.Lock()
	defer b.changes.Unlock()
	c := b.canary.Load()
	if c == nil {
		return ErrNoCanary
	}
	return b.swap(ctx, c.source, ChangePromote)
}

// ErrNothingBefore says that there is nothing to go back to.
var ErrNothingBefore = errors.New("nothing to roll back: no canary runs, and no swap was made or the last one is rolled back already; to go forward, swap")

// Rollback ends the canary if one runs, and else swaps back to what was live before the last swap, or is
// [ErrNothingBefore]. It goes one step back and never forward: after it there is nothing to go back to until the
// next swap.
func (b *Balancer) Rollback(ctx context.Context) error {
	defer b.announce()
	b.changes.Lock()
	defer b.changes.Unlock()
	b.membership.Lock()
	c := b.endCanary(nil)
	if c != nil {
		b.changed(ChangeRollback, c, b.live.Load())
	}
	b.membership.Unlock()
	switch {
	case c != nil:
		return nil
	case b.previous == nil:
		return ErrNothingBefore
	}
	if err := b.swap(ctx, *b.previous, ChangeRollback); err != nil {
		return err
	}
	b.previous = nil
	return nil
}

// endCanary puts another in the place of the one that runs, if any, and returns that one. Its
// placements end where they were made. The caller holds the lock of the fleet.
func (b *Balancer) endCanary(next *arm) *arm {
	old := b.canary.Swap(next)
	if old == nil {
		return nil
	}
	old.spares.end()
	b.leaving.add(old.shards)
	for _, s := range old.shards {
		s.retire()
	}
	return old
}

// leaving are shards of ended canaries that wait for the last of their placements.
type leaving struct {
	mu     sync.Mutex
	shards map[*shard]bool
}

func (l *leaving) add(shards []*shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shards == nil {
		l.shards = map[*shard]bool{}
	}
	for _, s := range shards {
		l.shards[s] = true
	}
}

func (l *leaving) remove(s *shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shards, s)
}

func (l *leaving) all() []*shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.shards))
}
