package host

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// Comparison is another source's machines beside the live ones: they are told everything that
// those are told and decide every query too, but nobody follows them.
type Comparison struct {
	b         *Balancer
	arm       *arm
	decisions atomic.Uint64
	different atomic.Uint64

	mu      sync.Mutex
	samples []Disagreement
	failure error
}

// Disagreement is a query that two machines decided differently. The reasons are empty where
// the policy is not known natively: see [WithTwin].
type Disagreement struct {
	At                      engine.Instant
	Shard                   int
	Live, Other             engine.Decision
	LiveError, OtherError   error
	LiveReason, OtherReason string
}

// mostSamples is how many disagreements are kept, the last ones.
const mostSamples = 64

// ComparisonReport is what came of a comparison so far.
type ComparisonReport struct {
	Live, Other string // canonical specs
	Decisions   uint64
	Different   uint64 // of them were decided for another replica, or refused differently
	Samples     []Disagreement
	Failure     error // of a machine; it is not compared any more
}

// Compare begins a comparison with another source, in place of the one that runs. The machines
// start from the live ones' state. After the first difference their states go apart, as they
// would have: the other machine is told that its own choice was taken, and ended as the live one's did.
func (b *Balancer) Compare(ctx context.Context, src Source) (*Comparison, error) {
	b.changes.Lock()
	defer b.changes.Unlock()
	c := &Comparison{b: b}
	err := b.prepared(ctx, src, func(next *arm, ms []engine.Machine) error {
		c.arm = next
		for i, s := range b.live.Load().shards {
			if err := s.standBeside(&beside{c: c, machine: ms[i], shard: i}); err != nil {
				return err
			}
		}
		b.comparison.Store(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// beside is a machine that is compared with a shard's.
type beside struct {
	c       *Comparison
	machine engine.Machine
	shard   int
	before  []byte // the two blocks before the decision, to explain a difference
	other   []byte
}

func (s *shard) standBeside(n *beside) error {
	s.mu.Lock()
	defer s.release()
	s.leave(context.Background())
	h := s.state()
	counts, err := h.give(n.machine, s.inFlight(), true)
	if err != nil {
		return err
	}
	for p := s.open; p != nil; p = p.later {
		if counts == countsAll || counts == countsSame && p.counted == s.serial {
			p.beside, p.other = n, p.Decision.ID
		}
	}
	s.beside = n
	return nil
}

// leave ends the comparison with this shard. The caller holds the lock.
func (s *shard) leave(ctx context.Context) {
	if n := s.beside; n != nil {
		s.beside = nil
		_ = closeMachine(ctx, n.machine)
	}
}

// tellBeside tells the compared machine what the live one was told.
func (s *shard) tellBeside(f func(engine.Machine) error) {
	n := s.beside
	if n == nil {
		return
	}
	if err := f(n.machine); failed(err) {
		n.c.mu.Lock()
		n.c.failure = err
		n.c.mu.Unlock()
		s.leave(context.Background())
	}
}

// beforeCompared keeps the states from which a difference can be explained.
func (s *shard) beforeCompared() {
	n := s.beside
	if n == nil || s.machine == nil || s.b.opts.twin == nil {
		return
	}
	n.before, _ = s.machine.Snapshot(n.before[:0])
	n.other, _ = n.machine.Snapshot(n.other[:0])
}

// compare has the compared machine decide the query that was just placed.
func (s *shard) compare(p *Placement, liveError error) {
	n := s.beside
	if n == nil {
		return
	}
	var d engine.Decision
	var refused error
	s.tellBeside(func(m engine.Machine) error {
		refused = m.Decide(&s.query, &d)
		return refused
	})
	if failed(refused) {
		return
	}
	if p != nil && refused == nil {
		p.beside, p.other = n, d.ID
	}
	n.c.decisions.Add(1)
	if refused == nil && liveError == nil && d.ID == s.decision.ID || refused != nil && liveError != nil {
		return
	}
	n.c.different.Add(1)
	x := Disagreement{At: s.query.Now, Shard: n.shard, Other: d, OtherError: refused, LiveError: liveError}
	if liveError == nil {
		x.Live = s.decision
	}
	x.LiveReason, x.OtherReason = s.reason(s.arm.spec, n.before), s.reason(n.c.arm.spec, n.other)
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if len(n.c.samples) == mostSamples {
		n.c.samples = append(n.c.samples[:0], n.c.samples[1:]...)
	}
	n.c.samples = append(n.c.samples, x)
}

// reason explains the query from a state, natively.
func (s *shard) reason(spec string, block []byte) string {
	if s.b.opts.twin == nil || len(block) == 0 {
		return ""
	}
	p, err := s.b.opts.twin(spec)
	if err != nil {
		return ""
	}
	e := engine.New(p, engine.Config{Salt: s.salt})
	if e.SetCandidates(s.query.Now-before, s.fleet.candidates) != nil || e.Restore(block) != nil {
		return ""
	}
	return e.Explain(&s.query).Sentence(s.fleet.name)
}

// reportBeside tells the compared machine that its own choice ended as the live one did.
func (s *shard) reportBeside(p *Placement, r engine.Report) {
	if p.beside == nil || p.beside != s.beside {
		return
	}
	r.ID = p.other
	s.tellBeside(func(m engine.Machine) error { return m.Report(p.ended, r) })
}

// Report says what came of the comparison so far.
func (c *Comparison) Report() ComparisonReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ComparisonReport{
		Live: c.b.live.Load().spec, Other: c.arm.spec,
		Decisions: c.decisions.Load(), Different: c.different.Load(),
		Samples: append([]Disagreement(nil), c.samples...), Failure: c.failure,
	}
}

// Stop ends the comparison.
func (c *Comparison) Stop(ctx context.Context) {
	c.b.changes.Lock()
	defer c.b.changes.Unlock()
	for _, s := range c.b.live.Load().shards {
		s.mu.Lock()
		if s.beside != nil && s.beside.c == c {
			s.leave(ctx)
		}
		s.release()
	}
	c.b.comparison.CompareAndSwap(c, nil)
}
