package host

import (
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// Placement is a decision bound to an endpoint, open until Done.
type Placement struct {
	Endpoint   Endpoint
	Decision   engine.Decision
	Generation uint64 // of the policy that decided: it grows with each [Balancer.Swap] and [Balancer.Canary]

	letter
	shard          *shard
	counted        uint64 // by which machines of the shard; 0 for none
	at, ended      engine.Instant
	Canary         bool // a canary decided; here it costs no room
	outcome        engine.Outcome
	closed         atomic.Bool
	earlier, later *Placement // of the shard's open ones
	observed       func(engine.Outcome, time.Duration)
}

// Done ends the placement and tells the engine how. Call it exactly once, when the answer is
// complete; later calls are ignored. It is safe for concurrent use and waits for nobody.
func (p *Placement) Done(o engine.Outcome) {
	if p.closed.Swap(true) {
		return
	}
	b := p.shard.b
	p.outcome, p.ended, p.done = o, b.Now(), p
	arm, own := p.shard.tallies()
	arm.end(o)
	own.end(o)
	p.shard.post(&p.letter)
	b.open.Done()
	if p.observed != nil {
		p.observed(o, time.Duration(p.ended-p.at))
	}
}
