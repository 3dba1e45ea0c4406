package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// arm is a group of shards that decide alike: the live one, or a canary. It does not change.
type arm struct {
	source     Source
	spec       string // canonical
	fit        engine.Fit
	generation uint64
	share      uint32 // of the queries, for a canary: parts per 10,000
	shards     []*shard
	spares     *spares // nil without any
}

// asks says that the policy decides on the answers to a query's own probes.
func (a *arm) asks() bool { return a.fit.Probes > 0 }

// start makes a machine, out of a spare one if there is any.
func (a *arm) start(ctx context.Context, salt uint64) (engine.Machine, string, error) {
	if bl := a.spares.take(); bl != nil {
		if m, spec, err := bl.configured(a.source.spec, salt); err == nil {
			return m, spec, nil
		}
		_ = bl.Close(ctx)
	}
	return a.source.start(ctx, salt)
}

// acquire takes a free shard, in order: low traffic stays on the first, whose pool it keeps
// fresh. A shard without traffic has no pool to speak of, so the first round passes it over: who
// holds the others does so for a microsecond. Waiting comes last, because a holder that the
// kernel put to sleep holds for milliseconds.
func (a *arm) acquire() *shard {
	if s := a.shards[0]; s.mu.TryLock() {
		return s
	}
	for round := range 4 {
		now := a.shards[0].b.Now()
		for i, s := range a.shards {
			if (i == 0 || round > 0 || s.warm(now)) && s.mu.TryLock() {
				return s
			}
		}
		runtime.Gosched()
	}
	s := a.shards[rand.IntN(len(a.shards))]
	s.mu.Lock()
	return s
}

// warmFor is how long a shard has a pool after its last decision, about.
const warmFor = engine.Instant(100 * time.Millisecond)

func (s *shard) warm(now engine.Instant) bool { return now-engine.Instant(s.used.Load()) < warmFor }

// wholeShare is a share of everything.
const wholeShare = 10_000

// takes says whether a canary gets a query. Queries of one key go one way.
func (a *arm) takes(key string) bool {
	if key == "" {
		return rand.Uint32N(wholeShare) < a.share
	}
	h := uint64(engine.KeyOf(key)) * 0x9e3779b97f4a7c15 // policies place by the hash itself
	return uint32(h>>32*wholeShare>>32) < a.share
}

// spares keeps one blank guest ready, so that a failure costs no start.
type spares struct {
	ready chan blank
	over  chan struct{}
}

// keepSpare prepares blanks until the arm is over or the balancer closes.
func (b *Balancer) keepSpare(src Source) *spares {
	if !src.guest || b.opts.noSpare {
		return nil
	}
	sp := &spares{ready: make(chan blank), over: make(chan struct{})}
	b.background.Go(func() {
		wait := firstWait
		for {
			bl, err := src.prepare(context.Background())
			if err != nil {
				b.told(err)
				select {
				case <-time.After(wait):
				case <-sp.over:
					return
				case <-b.ended:
					return
				}
				wait = min(2*wait, mostWait)
				continue
			}
			wait = firstWait
			select {
			case sp.ready <- bl:
				continue
			case <-sp.over:
			case <-b.ended:
			}
			_ = bl.Close(context.Background())
			return
		}
	})
	return sp
}

func (sp *spares) take() blank {
	if sp == nil {
		return nil
	}
	select {
	case bl := <-sp.ready:
		return bl
	default:
		return nil
	}
}

func (sp *spares) end() {
	if sp != nil {
		close(sp.over)
	}
}

// prepare makes an arm's machines, one for each salt, and tries them: each is told of the
// fleet, decides a few times and goes back to where it was. Nothing that serves is touched.
func (b *Balancer) prepare(ctx context.Context, src Source, salts []uint64) (a *arm, ms []engine.Machine, err error) {
	defer func() {
		if err != nil {
			closeAll(ctx, ms)
		}
	}()
	a = &arm{source: src}
	for _, salt := range salts {
		m, spec, err := src.start(ctx, salt)
		if err != nil {
			return nil, ms, err
		}
		a.spec, ms = spec, append(ms, m)
		if err := m.Inspect(&engine.Counters{}, &a.fit); err != nil {
			return nil, ms, err
		}
		if err := b.try(m); err != nil {
			return nil, ms, err
		}
	}
	return a, ms, nil
}

func closeAll(ctx context.Context, ms []engine.Machine) {
	for _, m := range ms {
		_ = closeMachine(context.WithoutCancel(ctx), m)
	}
}

// tryouts is how many decisions a machine makes before it serves.
const tryouts = 64

func (b *Balancer) try(m engine.Machine) error {
	now := b.Now() - before
	if err := m.SetCandidates(now, b.fleet.Load().candidates); err != nil {
		return err
	}
	block, err := m.Snapshot(nil)
	if err != nil {
		return err
	}
	var d engine.Decision
	for range tryouts {
		if err := m.Decide(&engine.Query{Now: now}, &d); failed(err) {
			return err
		} else if err != nil { // such as that nobody is eligible at the moment
			break
		}
	}
	if err := m.Restore(block); err != nil {
		return errors.Join(errors.New("it does not take back its own state block"), err)
	}
	return nil
}
