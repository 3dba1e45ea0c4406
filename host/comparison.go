package host

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// Comparison is another source's machines beside the live ones: they are told what those are told and
// decide every query too, a moment later, but nobody follows them, and nobody waits for them.
type Comparison struct {
	b         *Balancer
	arm       *arm
	decisions atomic.Uint64
	different atomic.Uint64
	missed    atomic.Uint64

	mu      sync.Mutex
	samples []Disagreement
	failure error
}

// Disagreement is a query that two machines decided differently. The names are those of the time,
// empty where the query was refused. The reasons are empty where the policy is not known natively, see
// [WithTwin], and where differences came faster than they could be explained.
type Disagreement struct {
	At                          engine.Instant
	Shard                       int
	Live, Other                 engine.Decision
	LiveEndpoint, OtherEndpoint string
	LiveError, OtherError       error
	LiveReason, OtherReason     string
}

// mostSamples is how many disagreements are kept, the last ones.
const mostSamples = 64

// ComparisonReport is what came of a comparison so far.
type ComparisonReport struct {
	Live, Other string // canonical specs
	Decisions   uint64
	Different   uint64 // of them were decided for another replica, or refused differently
	Missed      uint64 // decisions that were not compared: the other machine had fallen behind
	Samples     []Disagreement
	Failure     error // of a machine; it is not compared any more
}

// Compare begins a comparison with another source, in place of the one that runs. The machines
// start from the live ones' state. After the first difference their states go apart, as they
// would have: the other machine is told that its own choice was taken, and ended as the live one's did.
//
// The other machines work beside the traffic. One that is slower than the traffic falls behind: it misses
// decisions, which are counted, and starts from the live state again when it is through with what
// it had. Live decisions wait for none of it, but for copies of the state.
func (b *Balancer) Compare(ctx context.Context, src Source) (*Comparison, error) {
	b.changes.Lock()
	defer b.changes.Unlock()
	c := &Comparison{b: b}
	err := b.prepared(ctx, src, func(next *arm, ms []engine.Machine) error {
		c.arm = next
		for i, s := range b.live.Load().shards {
			s.standBeside(c, ms[i])
		}
		b.comparison.Store(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Comparison) differ(x Disagreement) {
	c.different.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == mostSamples {
		c.samples = slices.Delete(c.samples, 0, 1)
	}
	c.samples = append(c.samples, x)
}

func (c *Comparison) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
}

// Report says what came of the comparison so far.
func (c *Comparison) Report() ComparisonReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ComparisonReport{
		Live: c.b.live.Load().spec, Other: c.arm.spec,
		Decisions: c.decisions.Load(), Different: c.different.Load(), Missed: c.missed.Load(),
		Samples: slices.Clone(c.samples), Failure: c.failure,
	}
}

// Stop ends the comparison. What was decided before it is compared yet, if the context lasts.
func (c *Comparison) Stop(ctx context.Context) {
	for _, n := range c.end() {
		n.wait(ctx)
	}
}

func (c *Comparison) end() (ending []*beside) {
	c.b.changes.Lock()
	defer c.b.changes.Unlock()
	for _, s := range c.b.live.Load().shards {
		s.mu.Lock()
		if n := s.beside; n != nil && n.c == c {
			ending = append(ending, n)
			s.leave(false)
		}
		s.release()
	}
	c.b.comparison.CompareAndSwap(c, nil)
	return ending
}
