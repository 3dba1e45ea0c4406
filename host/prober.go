package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// ProbeFunc asks an endpoint for a reading. The prober fills in when it was asked.
type ProbeFunc func(ctx context.Context, ep Endpoint) (engine.Reading, error)

// Prober runs the probes that a balancer's engine says are due, or those that queries of a
// synchronous policy wait for. Probes hardly wait: when the
// workers are busy and as many probes are waiting, or an endpoint has its share outstanding,
// a probe is shed and counted, because a late reading is worth less than the next one.
type Prober struct {
	Probe       ProbeFunc
	Timeout     time.Duration // for one probe; zero means 100 ms; at most [WithProbeWait] where queries wait for it
	Concurrency int           // probes outstanding in all; zero means 256
	PerEndpoint int           // probes outstanding for one endpoint, of each kind; zero means 4, and 64 of those that queries wait for
}

// ticket is a probe that is due.
type ticket struct {
	shard    *shard
	endpoint *Endpoint // in a fleet, which does not change
	question *question // of a query that waits, or nil
}

// idleCheck is how often a balancer without traffic is asked who is due.
const idleCheck = 50 * time.Millisecond

// ErrProberRuns says that a balancer has a prober already.
var ErrProberRuns = errors.New("a prober runs for this balancer already")

// collect hands due probes to the prober, if one runs. The caller holds the lock.
func (s *shard) collect() {
	tickets := s.b.prober.Load()
	if tickets == nil || s.machine == nil || s.arm.asks() || !s.drawDue() {
		return
	}
	for _, id := range s.due {
		slot, ok := s.fleet.byID[id]
		if !ok {
			continue
		}
		select {
		case *tickets <- ticket{s, &s.fleet.endpoints[slot], nil}:
		default:
			s.b.counts.shed.Add(1)
		}
	}
}

// drawDue has the machine say who is due; it is false if that failed.
func (s *shard) drawDue() bool {
	now := s.b.Now()
	s.tellBeside(message{kind: tellProbes, at: now})
	var err error
	s.due, err = s.machine.Probes(now, s.due[:0])
	return s.contain(err) == nil
}

// record leaves a reading for the machine, as of now.
func (s *shard) record(id engine.ID, rd engine.Reading) {
	s.post(&letter{tell: &message{kind: tellReading, at: s.b.Now(), id: id, reading: rd}})
}

// Run probes for a balancer until the context ends, and returns the context's error. One
// prober serves a balancer at a time: a second is [ErrProberRuns].
func (p *Prober) Run(ctx context.Context, b *Balancer) error {
	workers := orDefault(p.Concurrency, 256)
	tickets := make(chan ticket, workers)
	if !b.prober.CompareAndSwap(nil, &tickets) {
		return ErrProberRuns
	}
	defer b.prober.Store(nil)
	shares := &shares{open: map[share]int{}}
	var wg sync.WaitGroup
	defer wg.Wait()
	for range workers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case t := <-tickets:
					its := share{t.endpoint.Name, t.question != nil}
					if t.late() || !shares.take(its, p.most(its)) {
						b.shed(t)
						continue
					}
					if t.question != nil {
						p.answer(ctx, b, t)
					} else {
						p.one(ctx, b, t)
					}
					shares.give(its)
				}
			}
		})
	}
	every := time.NewTicker(idleCheck)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
			for _, s := range b.all() {
				s.mu.Lock()
				s.collect()
				s.release()
			}
		}
	}
}

func orDefault[T int | time.Duration](v, unset T) T {
	if v > 0 {
		return v
	}
	return unset
}

// one asks, and gives the answer to the shard that wanted it. A replica that does not answer
// loses its entry, unless a later probe brought that: what is known may no longer hold.
func (p *Prober) one(ctx context.Context, b *Balancer, t ticket) {
	ctx, cancel := context.WithTimeout(ctx, orDefault(p.Timeout, 100*time.Millisecond))
	defer cancel()
	asked := b.Now()
	b.counts.sent.Add(1)
	rd, err := p.Probe(ctx, *t.endpoint)
	id := engine.IDOf(t.endpoint.Name)
	if err != nil {
		b.counts.failed.Add(1)
		t.shard.post(&letter{tell: &message{kind: tellForget, at: b.Now(), id: id, asked: asked}})
		return
	}
	b.counts.answered.Add(1)
	rd.Asked = asked
	t.shard.record(id, rd)
}

// share is what may be outstanding for one endpoint. Policies change under a prober, and a canary's may be
// of the other kind, so probes that queries wait for have a share of their own.
type share struct {
	endpoint string
	awaited  bool
}

func (p *Prober) most(s share) int {
	if s.awaited {
		return orDefault(p.PerEndpoint, 64)
	}
	return orDefault(p.PerEndpoint, 4)
}

// shares counts what is outstanding.
type shares struct {
	mu   sync.Mutex
	open map[share]int
}

func (s *shares) take(its share, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[its] >= most {
		return false
	}
	s.open[its]++
	return true
}

func (s *shares) give(its share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[its]--; s.open[its] == 0 {
		delete(s.open, its)
	}
}
