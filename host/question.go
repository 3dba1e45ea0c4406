package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// question is the probing of one query under a synchronous policy. Answers that come while the
// query waits are its own; a later one goes to the machine as a reading, so that slow replicas
// too are seen in the policy's view of the fleet. Each goes one way or the other, never both.
type question struct {
	hint  string
	asked engine.Instant // one for all probes: the order of their sending must not settle a tie
	until time.Time

	mu      sync.Mutex
	left    int // probes that may still be answered
	wait    int // answers that are enough
	answers []engine.Answer
	decided bool
	enough  chan struct{} // closed when waiting longer brings nothing
}

// tell takes what came of one probe; it is false for an answer that came after the decision.
func (q *question) tell(a engine.Answer, answered bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left--
	if q.decided {
		return !answered
	}
	before := len(q.answers) >= q.wait
	if answered {
		q.answers = append(q.answers, a)
	}
	if now := len(q.answers) >= q.wait; !before && (now || q.left == 0) {
		close(q.enough)
	}
	return true
}

// take ends the waiting.
func (q *question) take() []engine.Answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.decided = true
	return q.answers
}

// redraws is how often a query that must avoid replicas has others drawn.
const redraws = 3

// ask probes replicas for a query and returns the answers that came while it waited, in order of
// receipt. Only the context's end is an error: with few answers, or none, the policy decides.
func (b *Balancer) ask(ctx context.Context, a *arm, query *Query) ([]engine.Answer, error) {
	tickets := b.prober.Load()
	if tickets == nil {
		return nil, nil
	}
	var room [engine.MaxAnswers]ticket
	due := a.acquire().dueFor(query.Tried, room[:0])
	if len(due) == 0 {
		return nil, nil
	}
	q := &question{
		hint: query.Hint, asked: b.Now(), until: time.Now().Add(b.opts.wait),
		left: len(due), wait: min(int(a.fit.Wait), len(due)), enough: make(chan struct{}),
		answers: make([]engine.Answer, 0, len(due)),
	}
	for _, t := range due {
		t.question = q
		select {
		case *tickets <- t:
		default:
			b.shed(t)
		}
	}
	limit := time.NewTimer(b.opts.wait)
	defer limit.Stop()
	select {
	case <-q.enough:
	case <-limit.C:
	case <-ctx.Done():
		q.take()
		return nil, ctx.Err()
	}
	return q.take(), nil
}

// dueFor draws the replicas to probe for a query, without those that it must avoid. It runs
// under the shard's lock and releases it.
func (s *shard) dueFor(tried []string, due []ticket) []ticket {
	defer s.release()
	wanted, rounds := int(s.arm.fit.Probes), 1
	if len(tried) > 0 {
		rounds += redraws
	}
	for range rounds {
		if s.machine == nil {
			return due
		}
		if !s.drawDue() {
			return due
		}
		for _, id := range s.due {
			if slot, ok := s.fleet.byID[id]; ok && len(due) < wanted {
				due = addTicket(due, ticket{shard: s, endpoint: &s.fleet.endpoints[slot]}, tried)
			}
		}
		if len(due) == wanted {
			break
		}
	}
	return due
}

// addTicket leaves out who was tried, or is to be probed already.
func addTicket(due []ticket, t ticket, tried []string) []ticket {
	name := t.endpoint.Name
	if slices.Contains(tried, name) || slices.ContainsFunc(due, func(d ticket) bool { return d.endpoint.Name == name }) {
		return due
	}
	return append(due, t)
}

// shed lets a probe go unsent, and tells the query that waits for it.
func (b *Balancer) shed(t ticket) {
	b.counts.shed.Add(1)
	if t.question != nil {
		t.question.tell(engine.Answer{}, false)
	}
}

// late reports whether nobody waits for the probe any more.
func (t *ticket) late() bool { return t.question != nil && !time.Now().Before(t.question.until) }

// answer asks for a query that waits. The probe goes on when the query has decided, until its
// time is up: its answer is then a reading.
func (p *Prober) answer(ctx context.Context, b *Balancer, t ticket) {
	q := t.question
	until := q.until
	if p.Timeout > 0 {
		until = earlier(until, time.Now().Add(p.Timeout))
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if q.hint != "" {
		ctx = context.WithValue(ctx, hintKey{}, q.hint)
	}
	b.counts.sent.Add(1)
	rd, err := p.Probe(ctx, *t.endpoint)
	rd.Asked = q.asked
	a := engine.Answer{ID: engine.IDOf(t.endpoint.Name), Reading: rd}
	inTime := q.tell(a, err == nil)
	if err != nil {
		b.counts.failed.Add(1)
		return
	}
	b.counts.answered.Add(1)
	if inTime {
		return
	}
	b.counts.late.Add(1)
	t.shard.record(a.ID, rd)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

type hintKey struct{}

// Hint is what the query said of itself ([Query].Hint) for which a [ProbeFunc] is called, from the
// context that it is given; empty if it said nothing, or if no query waits.
func Hint(ctx context.Context) string {
	hint, _ := ctx.Value(hintKey{}).(string)
	return hint
}
