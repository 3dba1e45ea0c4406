package host

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// beside is a machine that is compared with a shard's. It works on a goroutine of its own: what the live
// machine is told waits in a queue, and nobody waits for it. When the queue is full the machine has
// fallen behind: it misses what comes, and starts from the live state again when it is through.
type beside struct {
	c      *Comparison
	shard  int
	queue  chan event
	behind bool          // it has missed something; under the shard's lock
	spare  chan []byte   // room for live states, from which differences are explained
	quit   atomic.Bool   // what waits is not worth doing
	done   chan struct{} // closed when the goroutine is through

	// The rest is the goroutine's.
	machine engine.Machine
	open    map[*Placement]engine.ID // what it counts in flight, and where
	before  []byte                   // its state before a decision
}

// event is something that the compared machine is told. An error ends the comparison with the shard.
type event func(n *beside) error

const (
	mostWaiting = 4096 // events
	mostBefore  = 8    // of them with a live state, which may be large
)

// standBeside puts a machine beside the shard's, in place of the one that may stand there.
func (s *shard) standBeside(c *Comparison, m engine.Machine) {
	s.mu.Lock()
	defer s.release()
	s.leave(true)
	n := &beside{
		c: c, shard: s.index, machine: m, behind: true,
		queue: make(chan event, mostWaiting), spare: make(chan []byte, mostBefore), done: make(chan struct{}),
	}
	for range mostBefore {
		n.spare <- nil
	}
	s.beside = n
	s.b.background.Go(n.work)
	s.follow()
}

// leave ends the comparison with this shard; hurry drops what waits. The caller holds the lock.
func (s *shard) leave(hurry bool) {
	if n := s.beside; n != nil {
		s.beside = nil
		if hurry {
			n.quit.Store(true)
		}
		close(n.queue)
	}
}

// follow has a machine beside that is behind, and through with its queue, start anew from what the live
// machine knows now. It is called before a decision and nowhere else: in the midst of a call the
// live machine may know of it already, and the machine beside would hear of it twice. The caller
// holds the lock.
func (s *shard) follow() {
	n := s.beside
	switch {
	case n == nil || !n.behind && !n.quit.Load():
		return
	case n.quit.Load(): // it failed
		s.leave(true)
		return
	case len(n.queue) > 0:
		return
	}
	h, open := s.state(), s.inFlight()
	counted := [...]map[*Placement]engine.ID{countsAll: {}, countsSame: {}, countsNone: {}}
	for p := s.open; p != nil; p = p.later {
		counted[countsAll][p] = p.Decision.ID
		if p.counted == s.serial {
			counted[countsSame][p] = p.Decision.ID
		}
	}
	n.behind = false
	n.queue <- func(n *beside) error { // there is room: who holds the lock is alone in sending
		counts, err := h.give(n.machine, open, true)
		n.open = counted[counts]
		return err
	}
}

// pass leaves an event for the machine beside; it is false if that misses it.
func (s *shard) pass(f event) bool {
	n := s.beside
	if n == nil || n.behind || n.quit.Load() {
		return false
	}
	select {
	case n.queue <- f:
		return true
	default:
		n.behind = true
		return false
	}
}

// tellBeside tells the compared machine what the live one was told.
func (s *shard) tellBeside(m message) {
	if s.beside == nil {
		return
	}
	s.pass(func(n *beside) error {
		if err := m.tell(n.machine); failed(err) {
			return err
		}
		return nil // it has its own word on the rest
	})
}

// setBeside tells it of a fleet. One that refuses what the live machine took is not compared any more.
func (s *shard) setBeside(f *fleet) {
	if s.beside != nil {
		now := s.b.Now()
		s.pass(func(n *beside) error { return n.machine.SetCandidates(now, f.candidates) })
	}
}

// reportBeside tells the compared machine that its own choice ended as the live one did.
func (s *shard) reportBeside(p *Placement, r engine.Report) {
	if s.beside == nil {
		return
	}
	now := p.ended
	s.pass(func(n *beside) error {
		id, ok := n.open[p]
		if !ok {
			return nil
		}
		delete(n.open, p)
		own := r
		own.ID = id
		if err := n.machine.Report(now, own); failed(err) {
			return err
		}
		return nil
	})
}

// work does what waits, until the comparison ends.
func (n *beside) work() {
	defer close(n.done)
	for f := range n.queue {
		if n.quit.Load() {
			continue
		}
		if err := n.try(f); err != nil {
			n.c.fail(err)
			n.quit.Store(true)
		}
	}
	_ = closeMachine(context.Background(), n.machine)
}

func (n *beside) try(f event) (err error) {
	defer caught(&err) // a policy may be anybody's, its words on a decision too
	return f(n)
}

// wait waits until the machine is through.
func (n *beside) wait(ctx context.Context) {
	select {
	case <-n.done:
	case <-ctx.Done():
		n.quit.Store(true)
	}
}

// compared is a decision that is made a second time.
type compared struct {
	query     engine.Query
	fleet     *fleet
	placement *Placement // nil if it was refused
	live      engine.Decision
	liveError error
	liveSpec  string
	before    []byte // the live state before it; nil where nobody would explain it
	salt      uint64
	twin      Parse
}

// beforeCompared keeps the state from which a difference can be explained, if there is room for it.
func (s *shard) beforeCompared() []byte {
	n := s.beside
	if n == nil || n.behind || s.machine == nil || s.b.opts.twin == nil {
		return nil
	}
	select {
	case room := <-n.spare:
		block, err := s.machine.Snapshot(room[:0])
		if s.contain(err) == nil {
			return block
		}
		n.spare <- room
	default: // it has enough to explain
	}
	return nil
}

// compare has the compared machine decide the query that was just placed, or refused.
func (s *shard) compare(p *Placement, liveError error, before []byte) {
	n := s.beside
	if n == nil {
		return
	}
	d := &compared{
		query: s.query, fleet: s.fleet, placement: p, live: s.decision, liveError: liveError, liveSpec: s.arm.spec,
		before: before, salt: s.salt, twin: s.b.opts.twin,
	}
	d.query.Tried = slices.Clone(d.query.Tried) // the shard's own room
	if !s.pass(d.decide) && !n.quit.Load() {
		n.c.missed.Add(1)
		n.free(before)
	}
}

func (n *beside) free(block []byte) {
	if block != nil {
		n.spare <- block
	}
}

func (d *compared) decide(n *beside) (err error) {
	if d.before != nil {
		if n.before, err = n.machine.Snapshot(n.before[:0]); err != nil {
			return err
		}
	}
	var other engine.Decision
	refused := n.machine.Decide(&d.query, &other)
	switch {
	case failed(refused):
		return refused
	case refused == nil && d.placement != nil:
		n.open[d.placement] = other.ID
	case refused == nil: // nobody runs it
		err := n.machine.Report(d.query.Now, engine.Report{ID: other.ID, Outcome: engine.OutcomeCancelled, Latency: engine.UnknownLatency})
		if failed(err) {
			return err
		}
	}
	n.c.decisions.Add(1)
	if refused == nil && d.liveError == nil && other.ID != d.live.ID || (refused == nil) != (d.liveError == nil) {
		n.c.differ(d.difference(n, other, refused))
	}
	n.free(d.before)
	return nil
}

func (d *compared) difference(n *beside, other engine.Decision, refused error) Disagreement {
	x := Disagreement{At: d.query.Now, Shard: n.shard, LiveError: d.liveError, OtherError: refused}
	if d.liveError == nil {
		x.Live, x.LiveEndpoint = d.live, d.fleet.name(d.live.ID)
	}
	if refused == nil {
		x.Other, x.OtherEndpoint = other, d.fleet.name(other.ID)
	}
	x.LiveReason, x.OtherReason = d.reason(d.liveSpec, d.before), d.reason(n.c.arm.spec, n.before)
	return x
}

// reason explains the query from a state, natively; it is empty where that cannot be had.
func (d *compared) reason(spec string, block []byte) string {
	if d.before == nil {
		return ""
	}
	p, err := d.twin(spec)
	if err != nil {
		return ""
	}
	e := engine.New(p, engine.Config{Salt: d.salt})
	if e.SetCandidates(d.query.Now-before, d.fleet.candidates) != nil || e.Restore(block) != nil {
		return ""
	}
	return e.Explain(&d.query).Sentence(d.fleet.name)
}
