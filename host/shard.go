package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// shard is one serial machine and the fleet it was told of.
type shard struct {
	b     *Balancer
	index int
	salt  uint64
	tally *tally // of a canary; nil on live shards

	inbox atomic.Pointer[letter] // what has not been told yet, the latest first
	used  atomic.Int64           // instant of the last decision

	mu sync.Mutex
	seat
	fleet    *fleet // that the machine was told of
	query    engine.Query
	tried    [engine.MaxTried]engine.ID
	decision engine.Decision
	due      []engine.ID
	open     *Placement // placements not done, linked
	beside   *beside    // a machine that is compared with this one, or nil
	counters grown
	fitted   engine.Fit // as last asked
	retired  bool       // nobody new comes
	gone     bool       // no machine comes any more
}

// letter is something to tell a machine, when somebody holds it the next time.
type letter struct {
	next *letter
	done *Placement // that ended, or
	tell *message
}

// post leaves a letter and never waits: a holder that the kernel put to sleep holds for
// milliseconds.
func (s *shard) post(l *letter) {
	for {
		l.next = s.inbox.Load()
		if s.inbox.CompareAndSwap(l.next, l) {
			break
		}
	}
	if s.mu.TryLock() {
		s.release()
	}
}

// release ends a hold. Letters that came meanwhile are read first; one that comes between the
// last look and the unlocking finds the lock taken, so we look again.
func (s *shard) release() {
	for {
		s.read()
		if s.next != nil {
			s.replace()
		}
		s.mu.Unlock()
		if s.inbox.Load() == nil || !s.mu.TryLock() {
			return
		}
	}
}

// read reads the letters, in order of arrival.
func (s *shard) read() {
	latest := s.inbox.Swap(nil)
	var first *letter
	for latest != nil {
		next := latest.next
		latest.next, first = first, latest
		latest = next
	}
	for l := first; l != nil; {
		next := l.next
		l.next = nil
		if l.done != nil {
			s.end(l.done)
		} else {
			_ = s.tell(*l.tell)
		}
		l = next
	}
}

// tell tells the machine something, if there is one, and who is compared with it, which hears of it on
// another goroutine. The caller holds the lock.
func (s *shard) tell(m message) error {
	s.tellBeside(m)
	if s.machine == nil {
		return nil
	}
	return s.contain(m.tell(s.machine))
}

// told is tell for those who do not hold the lock.
func (s *shard) told(m message) error {
	s.mu.Lock()
	defer s.release()
	return s.tell(m)
}

// look reads from the machine, if there is one.
func (s *shard) look(f func(engine.Machine) error) {
	s.mu.Lock()
	defer s.release()
	if s.machine != nil {
		_ = s.contain(f(s.machine))
	}
}

// setFleet tells the machine of new candidates; on an error the old ones stand.
func (s *shard) setFleet(f *fleet) error {
	s.mu.Lock()
	defer s.release()
	old := s.fleet
	s.fleet = f
	if s.machine != nil {
		if err := s.contain(s.machine.SetCandidates(s.b.Now(), f.candidates)); err != nil && !failed(err) {
			s.fleet = old
			return err
		}
	}
	s.setBeside(f)
	s.keep()
	return nil // a guest that failed is started anew for the new fleet
}

func (s *shard) setStatus(f *fleet, id engine.ID, st engine.Status) error {
	s.mu.Lock()
	defer s.release()
	s.fleet = f
	if err := s.tell(message{kind: tellStatus, at: s.b.Now(), id: id, status: st}); err != nil && !failed(err) {
		return err
	}
	s.keep()
	return nil
}

// close frees the machine; later calls find none.
func (s *shard) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.release()
	m := s.machine
	s.machine, s.gone = nil, true
	s.leave(true)
	return closeMachine(ctx, m)
}

// errMoved says that the shard was retired between being found and being taken.
var errMoved = errors.New("the shard has retired")

// decide runs under the shard's lock and releases it.
func (s *shard) decide(q *Query, answers []engine.Answer) (*Placement, error) {
	defer s.release()
	if s.retired {
		return nil, errMoved
	}
	if s.gone { // the query was under way when the balancer closed
		return nil, ErrClosed
	}
	s.query = engine.Query{Now: s.b.Now(), Tried: s.tried[:0], Answers: answers}
	if q.Key != "" {
		s.query.Key = engine.KeyOf(q.Key)
	}
	for _, name := range q.Tried {
		s.query.Tried = append(s.query.Tried, engine.IDOf(name))
	}
	s.used.Store(int64(s.query.Now))
	s.follow()
	known := s.beforeCompared()
	err := s.ask()
	if failed(err) && s.machine != nil { // another machine stands in already
		err = s.ask()
	}
	counted := s.serial
	if failed(err) {
		if s.b.opts.closed {
			s.beside.free(known)
			return nil, err
		}
		counted = 0
		err = s.decideUniformly()
	}
	if err != nil {
		s.compare(nil, err, known)
		return nil, err
	}
	p := &Placement{
		Endpoint: s.fleet.endpoints[s.decision.Index], Decision: s.decision, Generation: s.arm.generation, Canary: s.tally != nil,
		shard: s, at: s.query.Now, counted: counted,
	}
	s.link(p)
	s.compare(p, nil, known)
	if s.machine != nil {
		s.collect()
		s.keepAtTimes(p.at)
	}
	return p, nil
}

// ask has the machine decide. [ErrTrap] if there is none.
func (s *shard) ask() error {
	if s.machine == nil {
		return ErrTrap
	}
	began := s.watch()
	err := s.contain(s.machine.Decide(&s.query, &s.decision))
	if err == nil && s.arm.source.foreign {
		err = s.contain(s.slow(began))
	}
	if err != nil {
		return err
	}
	s.served++
	if s.standIn {
		s.decision.Regime, s.decision.Cause = engine.RegimeFallback, engine.CauseTrap
	}
	return nil
}

// decideUniformly decides among the eligible while no machine can.
func (s *shard) decideUniformly() error {
	if len(s.fleet.candidates) == 0 {
		return engine.ErrNoCandidates
	}
	open := uint64(0)
	for i, c := range s.fleet.candidates {
		if !c.Status.Eligible() || slices.Contains(s.query.Tried, c.ID) {
			continue
		}
		if open++; rand.Uint64N(open) == 0 {
			s.decision = engine.Decision{
				ID: c.ID, Index: uint32(i), Threshold: engine.NoThreshold,
				Regime: engine.RegimeFallback, Cause: engine.CauseTrap,
			}
		}
	}
	if open == 0 {
		return engine.ErrNoneEligible
	}
	return nil
}

// link notes an open placement, so that a machine that takes over can be told of it.
func (s *shard) link(p *Placement) {
	if p.later = s.open; s.open != nil {
		s.open.earlier = p
	}
	s.open = p
}

// end tells the machine that a placement has ended.
func (s *shard) end(p *Placement) {
	if p.earlier != nil {
		p.earlier.later = p.later
	} else {
		s.open = p.later
	}
	if p.later != nil {
		p.later.earlier = p.earlier
	}
	p.earlier, p.later = nil, nil
	r := engine.Report{ID: p.Decision.ID, Outcome: p.outcome, Latency: engine.Duration(p.ended - p.at)}
	// The machine that counts it in flight may be gone: another's count is not touched.
	if s.machine != nil && p.counted == s.serial {
		_ = s.contain(s.machine.Report(p.ended, r))
	}
	s.reportBeside(p, r)
	if s.retired && s.open == nil {
		s.depart()
	}
}

// retire lets no new query in. The machine goes with the last open placement.
func (s *shard) retire() {
	s.mu.Lock()
	defer s.release()
	if s.retired = true; s.open == nil {
		s.depart()
	}
}

func (s *shard) depart() {
	if m := s.machine; m != nil {
		s.b.background.Go(func() { _ = closeMachine(context.Background(), m) })
	}
	s.machine, s.gone = nil, true
	s.b.leaving.remove(s)
}

// inFlight is what is open, replica by replica.
func (s *shard) inFlight() []engine.InFlight {
	var open []engine.InFlight
	at := map[engine.ID]int{}
	for p := s.open; p != nil; p = p.later {
		i, ok := at[p.Decision.ID]
		if !ok {
			i = len(open)
			at[p.Decision.ID] = i
			open = append(open, engine.InFlight{ID: p.Decision.ID})
		}
		open[i].Queries++
	}
	return open
}

// slowest is how long a foreign guest may take to decide. It is replaced when it took longer slowMost
// times, of which each slowOneIn decisions in time forgive one.
const (
	slowest   = 10 * time.Millisecond
	slowMost  = 8
	slowOneIn = 64
)

func (s *shard) watch() (began time.Time) {
	if s.arm.source.foreign {
		began = time.Now()
	}
	return began
}

// slow takes note of a decision that took too long, and fails a guest that makes a habit of it.
func (s *shard) slow(began time.Time) error {
	if time.Since(began) <= slowest {
		s.late = max(s.late-1, 0)
		return nil
	}
	s.b.counts.slow.Add(1)
	if s.late += slowOneIn; s.late <= (slowMost-1)*slowOneIn {
		return nil
	}
	return ErrSlow
}
