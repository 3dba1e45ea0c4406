package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	s.machine, s.standIn = nil, false
	if twin := s.twin(); twin != nil {
		if err := s.sit(twin); err == nil {
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
	if !s.gone {
		var m engine.Machine
		if m, _, err = bl.configured(s.arm.source.spec, s.salt); err == nil {
			err = s.sit(m)
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
	p, err := s.b.opts.twin(s.arm.spec)
	if err != nil {
		return nil
	}
	return engine.New(p, engine.Config{Salt: s.salt})
}

// revive starts machines, each a wait after the last, until one sits or the balancer closes.
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

// rebuild seats a fresh machine.
func (s *shard) rebuild() error {
	s.mu.Lock()
	a := s.arm
	s.release()
	m, _, err := a.start(context.Background(), s.salt)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.release()
	if s.gone || s.arm != a || s.machine != nil && !s.standIn { // a swap or a spare was faster
		_ = closeMachine(context.Background(), m)
		return nil
	}
	if err := s.sit(m); err != nil {
		_ = closeMachine(context.Background(), m)
		return err
	}
	s.standIn = false
	s.b.counts.rebuilds.Add(1)
	return nil
}

// before is how much earlier than now a machine that takes over is told of the fleet: readings
// are handed to it at the instants of their receipt, and nobody is new to the fleet for that.
const before = engine.Instant(time.Hour)

// sit puts a machine in place and hands over what is known: the state block of the one
// that leaves, or the last one kept; to a machine that does not take that, the readings. What
// is open it is told by name. On an error nothing has changed. The caller holds the lock.
func (s *shard) sit(m engine.Machine) error {
	now := s.b.Now()
	if err := m.SetCandidates(now-before, s.fleet.candidates); err != nil {
		return err
	}
	block, exact := s.block, false
	var entries []engine.Entry
	if s.machine != nil {
		if b, err := s.machine.Snapshot(nil); err == nil {
			block, exact = b, true
			entries, _ = s.machine.Entries(now, nil)
		}
	}
	switch err := m.Restore(block); {
	case failed(err):
		return err
	case err != nil:
		exact = false
		if err := replay(m, entries); err != nil {
			return err
		}
	}
	switch err := m.SetInFlight(s.inFlight()); {
	case errors.Is(err, ErrOldGuest) && exact: // the block has the counts
	case errors.Is(err, ErrOldGuest):
		if err := errors.Join(m.SetCandidates(now-before, nil), m.SetCandidates(now-before, s.fleet.candidates)); err != nil {
			return err
		}
		s.serial++ // it counts its own from now on
	case err != nil:
		return err
	default:
		for p := s.open; p != nil; p = p.later {
			p.counted = s.serial
		}
	}
	if m, ok := s.machine.(*recorded); ok {
		m.finish()
	}
	s.machine, s.since, s.served, s.late, s.kept = s.recording(m), time.Now(), 0, 0, now-before
	return nil
}

// replay hands readings over, in the order of their receipt.
func replay(m engine.Machine, entries []engine.Entry) error {
	slices.SortFunc(entries, func(a, b engine.Entry) int { return cmp.Compare(a.At, b.At) })
	for _, e := range entries {
		_, err := m.Record(e.At, e.ID, engine.Reading{RIF: e.RawRIF, Latency: e.RawLatency, Asked: e.Asked})
		if failed(err) {
			return err
		}
	}
	return nil
}
