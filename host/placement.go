package host

import (
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// Placement is a decision bound to an endpoint, open until Done.
type Placement struct {
	Endpoint Endpoint
	Decision engine.Decision

	shard   *shard
	counted uint64 // by which machine of the shard; 0 for none
	at      engine.Instant
	done    atomic.Bool
}

// Done ends the placement and tells the engine how. Call it exactly once, when the answer is
// complete; later calls are ignored. It is safe for concurrent use.
func (p *Placement) Done(o engine.Outcome) {
	if p.done.Swap(true) {
		return
	}
	b := p.shard.b
	now := b.Now()
	_ = p.shard.with(func(m engine.Machine) error {
		if p.counted != p.shard.serial {
			return nil // the machine that counts it in flight is gone: another's count is not touched
		}
		return m.Report(now, engine.Report{ID: p.Decision.ID, Outcome: o, Latency: engine.Duration(now - p.at)})
	})
	if int(o) < len(b.counts.outcomes) {
		b.counts.outcomes[o].Add(1)
	}
	b.counts.inFlight.Add(-1)
	b.open.Done()
}
