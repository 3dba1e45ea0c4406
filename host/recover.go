package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// seat is who decides for a shard: a guest, a native engine, or for the time being the native
// engine that stands in for a guest that failed.
type seat struct {
	arm     *arm
	machine engine.Machine // nil until a new one has been started
	standIn bool
	serial  uint64 // of those machines that know what is open, from 1 on
	since   time.Time
	served  uint64 // decisions of this machine
	late    int    // slowOneIn for each that was slow, less one for each that was not
	block   []byte // its state of a moment ago, when it was well
	kept    engine.Instant
	next    blank         // a spare that is to sit when the present call is through
	wait    time.Duration // before the next one is started
}

// failed says whether an error is a machine's failure, and not its answer.
func failed(err error) bool {
	return errors.Is(err, ErrTrap) || errors.Is(err, ErrAnswer) || errors.Is(err, ErrSlow) || errors.Is(err, abi.ErrInternal)
}

// keepEvery is how old the state may be from which the next machine starts.
const keepEvery = engine.Instant(10 * time.Millisecond)

func (s *shard) keepAtTimes(now engine.Instant) {
	if now-s.kept >= keepEvery {
		s.keep()
	}
}

// keep copies the state block, from which the next machine starts if this one fails.
func (s *shard) keep() {
	if s.machine == nil || s.standIn || !s.arm.source.guest {
		return
	}
	s.kept = s.b.Now()
	block, err := s.machine.Snapshot(s.block[:0])
	if err != nil {
		_ = s.contain(err)
		return
	}
	s.block = block
}

// A guest that keeps failing is quarantined ever longer: the first is replaced at once, and
// one that served long or much before it failed counts as a first.
const (
	firstWait = 10 * time.Millisecond
	mostWait  = 5 * time.Second
	trusted   = 4096 // decisions
)

// contain discards a guest that failed: its state is undefined. Another is started beside the
// traffic. Until it is there a native engine stands in, if the policy is known natively, with
// the guest's state of a moment ago. The caller holds the lock.
func (s *shard) contain(err error) error {
	if err == nil || !failed(err) {
		return err
	}
	arm, own := s.tallies()
	arm.trapped()
	own.trapped()
	s.b.told(err)
	dead := s.machine
	if s.served >= trusted || time.Since(s.since) > mostWait {
		s.wait = 0
	}
	wait := s.wait
	s.wait = min(max(2*wait, firstWait), mostWait)
	stoodIn := s.standIn
	s.machine, s.standIn = nil, false
	if s.retired || stoodIn { // no machine is wanted any more, or one is on its way
		s.b.background.Go(func() { _ = closeMachine(context.Background(), dead) })
		return err
	}
	if twin := s.twin(); twin != nil {
		if err := s.sit(twin, s.state()); err == nil {
			s.standIn = true
		}
	}
	if wait == 0 {
		s.next = s.arm.spares.take()
	}
	ready := s.next != nil
	s.b.background.Go(func() {
		_ = closeMachine(context.Background(), dead)
		if !ready {
			s.revive(wait)
		}
	})
	return err
}

// replace seats the spare that was taken. It is not done in the midst of a call: the query that
// the guest failed at is the stand-in's. The caller holds the lock.
func (s *shard) replace() {
	bl := s.next
	s.next = nil
	err := ErrClosed
	if s.wanted() {
		var m engine.Machine
		if m, _, err = bl.configured(s.arm.source.spec, s.salt); err == nil {
			err = s.sit(m, s.state())
		}
	}
	if err == nil {
		s.standIn = false
		s.b.counts.rebuilds.Add(1)
		return
	}
	s.b.background.Go(func() {
		_ = bl.Close(context.Background())
		s.revive(firstWait)
	})
}

// twin is a native engine of the guest's policy, if it is our module's.
func (s *shard) twin() engine.Machine {
	if s.b.opts.twin == nil || s.b.opts.closed || !s.arm.source.guest || s.arm.source.foreign {
		return nil
	}
	m, _, err := nativeBlank{s.b.opts.twin}.configured(s.arm.spec, s.salt)
	if err != nil {
		return nil
	}
	return m
}

// wanted says whether a machine is any use here. The caller holds the lock.
func (s *shard) wanted() bool { return !s.gone && !s.retired }

// revive starts machines, each a wait after the last, until one sits, the shard retires or the
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

// rebuild seats a fresh machine, if one is wanted.
func (s *shard) rebuild() error {
	s.mu.Lock()
	a, wanted := s.arm, s.wanted()
	s.release()
	if !wanted {
		return nil
	}
	m, _, err := a.start(context.Background(), s.salt)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.release()
	if !s.wanted() || s.arm != a || s.machine != nil && !s.standIn { // a swap or a spare was faster
		_ = closeMachine(context.Background(), m)
		return nil
	}
	if err := s.sit(m, s.state()); err != nil {
		_ = closeMachine(context.Background(), m)
		return err
	}
	s.standIn = false
	s.b.counts.rebuilds.Add(1)
	return nil
}
