package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// Other stands for all endpoints that are not shown by name.
const Other = "other"

// rankEvery is how often an endpoint may lose its place to a busier one. A place that changes hands is
// a new series for whoever stores them.
const rankEvery = time.Minute

// Endpoints counts queries by endpoint and shows the n busiest by name, the rest as [Other]: never more
// than n+1 series, whatever the fleet. An endpoint keeps its place until it leaves the fleet or another
// got more than twice its queries for a minute; what either got before counts as other, so that no count
// falls. Give Observe to [host.WithObserver]. One Endpoints serves one balancer.
type Endpoints struct {
	n      int
	mu     sync.RWMutex
	all    map[string]*tally
	gone   EndpointCounts // of those that left
	ranked time.Time
}

// EndpointCounts are the counts of one endpoint.
type EndpointCounts struct {
	Endpoint string
	Queries  uint64
	Failures uint64 // outcomes failure and overloaded
}

// NewEndpoints shows at most n endpoints by name, at least one.
func NewEndpoints(n int) *Endpoints {
	return &Endpoints{n: max(n, 1), all: map[string]*tally{}}
}

type tally struct {
	name                     string
	queries, ended, failures atomic.Uint64
	end                      func(engine.Outcome, time.Duration)

	// Under the lock:
	shown   bool
	counted bool           // as other, before
	base    EndpointCounts // what it had then: that stays other's
	before  uint64         // queries at the last ranking
}

// Observe is a [host.Observer].
func (e *Endpoints) Observe(_ context.Context, _ host.Query, p *host.Placement, err error) func(engine.Outcome, time.Duration) {
	if err != nil {
		return nil
	}
	name := p.Endpoint.Name
	e.mu.RLock()
	t := e.all[name]
	if t != nil {
		t.queries.Add(1) // under the lock, so that nobody who was counted is dropped
	}
	e.mu.RUnlock()
	if t == nil {
		t = e.enter(name)
	}
	return t.end
}

func (e *Endpoints) enter(name string) *tally {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.all[name]
	if t == nil {
		t = &tally{name: name}
		t.end = func(o engine.Outcome, _ time.Duration) {
			if o == engine.OutcomeFailure || o == engine.OutcomeOverloaded {
				t.failures.Add(1)
			}
			t.ended.Add(1)
		}
		e.all[name] = t
	}
	t.queries.Add(1)
	return t
}

// read gives the counts of those shown, by name, and of the rest.
func (e *Endpoints) read(fleet []host.Endpoint) []EndpointCounts {
	present := make(map[string]bool, len(fleet))
	for _, ep := range fleet {
		present[ep.Name] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, t := range e.all {
		if present[name] {
			continue
		}
		t.shown = false
		if t.ended.Load() == t.queries.Load() {
			e.gone.Queries += t.queries.Load()
			e.gone.Failures += t.failures.Load()
			delete(e.all, name)
		}
	}
	e.rank(present)
	out, other := []EndpointCounts{}, e.gone
	for _, t := range e.all {
		now := EndpointCounts{t.name, t.queries.Load(), t.failures.Load()}
		if !t.shown {
			t.counted = true
			other.Queries, other.Failures = other.Queries+now.Queries, other.Failures+now.Failures
			continue
		}
		other.Queries, other.Failures = other.Queries+t.base.Queries, other.Failures+t.base.Failures
		out = append(out, EndpointCounts{t.name, now.Queries - t.base.Queries, now.Failures - t.base.Failures})
	}
	slices.SortFunc(out, func(a, b EndpointCounts) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	other.Endpoint = Other
	return append(out, other)
}

// rank fills free places with the busiest, and now and then lets a much busier one take a place.
func (e *Endpoints) rank(present map[string]bool) {
	type ranked struct {
		*tally
		lately uint64
	}
	var in, out []ranked
	for name, t := range e.all {
		r := ranked{t, t.queries.Load() - t.before}
		switch {
		case t.shown:
			in = append(in, r)
		case present[name] && name != Other && utf8.ValidString(name): // what a label may be
			out = append(out, r)
		}
	}
	busiest := func(a, b ranked) int { return cmp.Or(cmp.Compare(b.lately, a.lately), cmp.Compare(a.name, b.name)) }
	slices.SortFunc(in, busiest)
	slices.SortFunc(out, busiest)
	show := func(t *tally) {
		t.shown = true
		if t.counted {
			t.base = EndpointCounts{Queries: t.queries.Load(), Failures: t.failures.Load()}
		}
	}
	if free := min(e.n-len(in), len(out)); free > 0 {
		for _, r := range out[:free] {
			show(r.tally)
		}
		out = out[free:]
	}
	if time.Since(e.ranked) < rankEvery {
		return
	}
	if !e.ranked.IsZero() {
		for i := 0; i < min(len(in), len(out)) && out[i].lately > 2*in[len(in)-1-i].lately; i++ {
			in[len(in)-1-i].shown = false
			show(out[i].tally)
		}
	}
	e.ranked = time.Now()
	for _, t := range e.all {
		t.before = t.queries.Load()
	}
}
