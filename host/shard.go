package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// maker starts machines of one kind: guests of a module, or native engines.
type maker func(ctx context.Context, salt uint64) (engine.Machine, string, error)

// closer is what a machine that holds resources has besides.
type closer interface {
	Close(ctx context.Context) error
}

// shard is one serial machine and the fleet it was told of.
type shard struct {
	b    *Balancer
	salt uint64

	mu       sync.Mutex
	machine  engine.Machine // nil until a new one has been started
	serial   uint64         // of the machine, from 1 on
	fleet    *fleet
	query    engine.Query
	tried    [engine.MaxTried]engine.ID
	decision engine.Decision
	due      []engine.ID
	gone     bool
	born     time.Time     // when the machine took the fleet
	wait     time.Duration // before the next one is started
}

// with runs f on the machine, if there is one, and handles its failure.
func (s *shard) with(f func(engine.Machine) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil {
		return nil
	}
	return s.contain(f(s.machine))
}

// contain discards a guest that failed: its state is undefined. Another is started beside
// the traffic. The caller holds the lock.
func (s *shard) contain(err error) error {
	if err == nil || !errors.Is(err, ErrTrap) && !errors.Is(err, ErrAnswer) && !errors.Is(err, abi.ErrInternal) {
		return err
	}
	s.b.counts.traps.Add(1)
	s.b.told(err)
	dead := s.machine
	s.machine = nil
	if time.Since(s.born) > mostWait {
		s.wait = 0 // it served long enough to be trusted again
	}
	wait := s.wait
	s.wait = min(max(2*wait, firstWait), mostWait)
	s.b.background.Go(func() {
		_ = closeMachine(context.Background(), dead)
		s.revive(wait)
	})
	return err
}

// A guest that keeps failing is quarantined ever longer: the first is replaced at once.
const (
	firstWait = 10 * time.Millisecond
	mostWait  = 5 * time.Second
)

// revive starts machines, each a wait after the last, until one takes the fleet or the
// balancer closes.
func (s *shard) revive(wait time.Duration) {
	for {
		select {
		case <-s.b.ended:
			return
		case <-time.After(wait):
		}
		err := s.rebuild()
		if err == nil {
			return
		}
		s.b.told(fmt.Errorf("starting a machine anew: %w", err))
		wait = min(max(2*wait, firstWait), mostWait)
	}
}

// rebuild starts a fresh machine for the fleet of the moment.
func (s *shard) rebuild() error {
	m, _, err := s.b.start(context.Background(), s.salt)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		_ = closeMachine(context.Background(), m)
		return nil
	}
	if err := m.SetCandidates(s.b.Now(), s.fleet.candidates); err != nil {
		_ = closeMachine(context.Background(), m)
		return err
	}
	s.machine, s.born = m, time.Now()
	s.serial++
	s.b.counts.rebuilds.Add(1)
	return nil
}

func closeMachine(ctx context.Context, m engine.Machine) error {
	if c, ok := m.(closer); ok {
		return c.Close(ctx)
	}
	return nil
}

// setFleet tells the machine of new candidates; on an error the old ones stand.
func (s *shard) setFleet(f *fleet) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.fleet
	s.fleet = f
	if s.machine == nil {
		return nil
	}
	if err := s.contain(s.machine.SetCandidates(s.b.Now(), f.candidates)); err != nil && s.machine != nil {
		s.fleet = old
		return err
	}
	return nil // a guest that failed is started anew for the new fleet
}

func (s *shard) setStatus(f *fleet, id engine.ID, st engine.Status) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet = f
	if s.machine == nil {
		return nil
	}
	if err := s.contain(s.machine.SetStatus(s.b.Now(), id, st)); err != nil && s.machine != nil {
		return err
	}
	return nil
}

// close frees the machine; later calls find none.
func (s *shard) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machine
	s.machine, s.gone = nil, true
	return closeMachine(ctx, m)
}
