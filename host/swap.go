package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// Swap replaces the policy under traffic: another module, another spec, or both. The new machines
// are started and tried beside the old ones; then each shard changes machines between two
// decisions. The state block is handed over, and where the new machine's differs the readings
// and the open placements are. No query is lost, and on an error the old machines serve on. A
// canary or a comparison that runs goes on.
func (b *Balancer) Swap(ctx context.Context, src Source) error {
	b.changes.Lock()
	defer b.changes.Unlock()
	old := b.live.Load()
	if err := b.swap(ctx, src); err != nil {
		return err
	}
	b.previous = &old.source
	return nil
}

func (b *Balancer) swap(ctx context.Context, src Source) error {
	live := b.live.Load()
	next, ms, err := b.prepare(ctx, src, salts(live.shards))
	if err != nil {
		return err
	}
	b.membership.Lock()
	defer b.membership.Unlock()
	if b.isClosed() {
		closeAll(ctx, ms)
		return ErrClosed
	}
	for i, s := range live.shards {
		if err := s.rehearse(ms[i]); err != nil {
			closeAll(ctx, ms)
			return err
		}
	}
	next.generation, next.shards, next.spares = b.generations.Add(1), live.shards, b.keepSpare(src)
	for i, s := range live.shards {
		s.change(next, ms[i])
	}
	b.live.Store(next)
	live.spares.end()
	b.counts.swaps.Add(1)
	return nil
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
	if err := m.SetCandidates(s.b.Now()-before, s.b.fleet.Load().candidates); err != nil {
		return err
	}
	fresh, err := m.Snapshot(nil)
	if err != nil {
		return err
	}
	s.mu.Lock()
	var block []byte
	if s.machine != nil {
		block, _ = s.machine.Snapshot(nil)
	}
	s.release()
	if err := m.Restore(block); failed(err) {
		return err
	}
	return m.Restore(fresh)
}

// change seats another arm's machine.
func (s *shard) change(a *arm, m engine.Machine) {
	s.mu.Lock()
	defer s.release()
	old := s.machine
	s.arm = a
	if err := s.sit(m); err != nil {
		s.machine = m
		s.contain(fmt.Errorf("%w: taking over: %w", ErrTrap, err))
	} else {
		s.standIn, s.wait, s.block = false, 0, nil
		s.keep()
	}
	s.b.background.Go(func() { _ = closeMachine(context.Background(), old) })
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
	b.changes.Lock()
	defer b.changes.Unlock()
	live := b.live.Load()
	next, ms, err := b.prepare(ctx, src, salts(live.shards))
	if err != nil {
		return err
	}
	b.membership.Lock()
	defer b.membership.Unlock()
	if b.isClosed() {
		closeAll(ctx, ms)
		return ErrClosed
	}
	next.generation, next.share = b.generations.Add(1), share
	tally := &tally{}
	for i, s := range live.shards {
		twin := &shard{b: b, index: i, salt: s.salt, tally: tally, fleet: b.fleet.Load(), seat: seat{arm: next, serial: 1}}
		next.shards = append(next.shards, twin)
		if err := s.found(twin, ms[i]); err != nil {
			closeAll(ctx, ms)
			return err
		}
	}
	next.spares = b.keepSpare(src)
	b.endCanary(next)
	return nil
}

// found lets a canary's shard begin with this shard's state, without its open placements.
func (s *shard) found(c *shard, m engine.Machine) error {
	s.mu.Lock()
	defer s.release()
	c.machine = s.machine
	err := c.sit(m)
	if err != nil {
		c.machine = nil
	}
	return err
}

// SetShare changes the share of the canary that runs, in parts per 10,000: [ErrNoCanary].
func (b *Balancer) SetShare(share uint32) error {
	if share > wholeShare {
		return fmt.Errorf("%w: a share of %d, want 0 to %d parts", engine.ErrConfig, share, wholeShare)
	}
	b.changes.Lock()
	defer b.changes.Unlock()
	c := b.canary.Load()
	if c == nil {
		return ErrNoCanary
	}
	next := *c
	next.share = share
	b.canary.Store(&next)
	return nil
}

// Promote makes the canary's policy the live one: [ErrNoCanary]. The live machines' state goes on.
func (b *Balancer) Promote(ctx context.Context) error {
	b.changes.Lock()
	defer b.changes.Unlock()
	c := b.canary.Load()
	if c == nil {
		return ErrNoCanary
	}
	old := b.live.Load()
	if err := b.swap(ctx, c.source); err != nil {
		return err
	}
	b.previous = &old.source
	b.endCanary(nil)
	return nil
}

// ErrNothingBefore says that there is nothing to go back to.
var ErrNothingBefore = errors.New("nothing to roll back: no canary runs and no swap was made")

// Rollback ends the canary if one runs, and else swaps back to what was live before the last swap.
func (b *Balancer) Rollback(ctx context.Context) error {
	b.changes.Lock()
	defer b.changes.Unlock()
	if b.canary.Load() != nil {
		b.endCanary(nil)
		return nil
	}
	if b.previous == nil {
		return ErrNothingBefore
	}
	old := b.live.Load()
	if err := b.swap(ctx, *b.previous); err != nil {
		return err
	}
	b.previous = &old.source
	return nil
}

// endCanary puts another in the place of the one that runs, if any, whose placements end
// where they were made.
func (b *Balancer) endCanary(next *arm) {
	old := b.canary.Swap(next)
	if old == nil {
		return
	}
	old.spares.end()
	for _, s := range old.shards {
		s.retire()
	}
}
