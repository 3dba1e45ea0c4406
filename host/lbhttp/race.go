package lbhttp

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// race is an attempt and, once that has taken too long, another one beside it: the hedge. The first answer
// that stands decides. The first attempt is made and ended on the caller's goroutine; the hedge is made
// on one of its own, which also ends it unless it won or ended before anything was decided.
type race struct {
	t     *Transport
	tr    *trip
	query host.Query

	cancels [2]context.CancelFunc // of the first attempt and, once it has begun, of the hedge

	mu      sync.Mutex
	begun   chan struct{} // nil until the hedge's goroutine is at work, closed when it has ended
	decided bool          // for an answer, or for no hedge
	won     bool          // by the hedge
	failed  bool          // the hedge ended undecided
	hedge   attempt       // with no placement if there is no other replica
	panics  any           // what the hedge's goroutine panicked with, for the caller
}

// hedged makes the trip's first attempt and, if it takes long, a hedge; it gives back the one that counts.
func (t *Transport) hedged(tr *trip, query *host.Query) *attempt {
	a, req, began := &tr.first, tr.req(), t.balancer.Now()
	after, known := t.hedge.delay(began)
	ctx := req.Context()
	var timer *time.Timer
	if known {
		r := &race{t: t, tr: tr, query: *query}
		a.race, r.hedge.race, r.hedge.beside = r, r, true
		ctx, r.cancels[0] = context.WithCancel(ctx)
		timer = time.AfterFunc(after, r.run)
	}
	t.exchange(ctx, req, a, tr.body.next())
	now := t.balancer.Now()
	if d := engine.Duration(now - began); a.sound() || known && d >= engine.Duration(after) {
		t.hedge.took(now, d)
	}
	if !known {
		return a
	}
	timer.Stop()
	return a.race.finish(a, query)
}

// finish ends the race for the caller, whose attempt has ended.
func (r *race) finish(a *attempt, query *host.Query) *attempt {
	t, h := r.t, &r.hedge
	stands := r.stands(a)
	r.mu.Lock()
	begun, failed := r.begun, r.failed
	mine := !r.decided && (stands || begun == nil)
	open := !r.decided && !mine
	r.decided = r.decided || mine
	r.mu.Unlock()
	r.tr.hedged = begun != nil
	if mine {
		if failed {
			h.discard()
		}
		r.stop(true)
		return a
	}
	if open { // it failed, and the hedge may still mend it
		t.tell(r.tr.req(), a, a.err)
	}
	<-begun
	switch {
	case r.panics != nil:
		panic(r.panics)
	case r.won:
		t.counts.hedgesWon.Add(1)
		t.forget(a)
		return h
	case h.placement == nil:
		r.stop(true)
		return a
	}
	// Both failed. An answer says more than an error, and the first one as much as the second.
	r.tr.made++
	query.Tried = append(query.Tried, h.endpoint())
	if a.err != nil && h.err == nil {
		a.discard()
		return h
	}
	h.discard()
	return a
}

// run is the hedge's goroutine.
func (r *race) run() {
	defer r.end()
	t, h := r.t, &r.hedge
	req := r.begin()
	if req == nil || !r.place(req) {
		return
	}
	t.exchange(req.Context(), req, h, req.Body)
	stands := r.stands(h)
	r.mu.Lock()
	if stands && !r.decided {
		r.decided, r.won = true, true
		r.stop(false)
	}
	won, lost := r.won, r.decided && !r.won
	r.mu.Unlock()
	if won {
		return
	}
	t.counts.hedgesLost.Add(1)
	if lost {
		t.forget(h)
		return
	}
	t.tell(req, h, h.err)
	r.mu.Lock()
	lost, r.failed = r.decided, true
	r.mu.Unlock()
	if lost { // while it was told
		h.discard()
	}
}

// begin is the request to hedge with, or nil if there is to be no hedge. While it works the caller waits:
// afterwards the request may be the caller's again, to change.
func (r *race) begin() *http.Request {
	t, from := r.t, r.tr.req()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.decided {
		return nil
	}
	if !t.hedge.budget.take(t.balancer.Now(), t.counts.queries.Load()) {
		t.counts.hedgesRefused.Add(1)
		return nil
	}
	body := from.Body
	if !r.tr.body.empty() {
		var err error
		if body, err = from.GetBody(); err != nil {
			t.hedge.budget.giveBack()
			return nil
		}
	}
	r.begun = make(chan struct{})
	r.query.Tried = append(slices.Clone(r.query.Tried), r.tr.first.endpoint())
	ctx, cancel := context.WithCancel(from.Context())
	r.cancels[1] = cancel
	req := from.Clone(ctx)
	req.Body = body
	return req
}

// place finds a replica for the hedge, if there is another one and the answer has not come meanwhile.
func (r *race) place(req *http.Request) bool {
	p, permit, err := r.t.place(req.Context(), &r.query)
	r.mu.Lock()
	ok := err == nil && !r.decided
	if ok {
		r.hedge.placement, r.hedge.permit = p, permit
	}
	r.mu.Unlock()
	if ok {
		return true
	}
	if err == nil {
		r.t.unplace(p, permit)
	}
	r.t.hedge.budget.giveBack()
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return false
}

// end tells the caller that the hedge's goroutine is done, and hands on what it panicked with. Once the
// query has its answer, a panic can reach nobody but the whole process, which is not worth it.
func (r *race) end() {
	panics := recover()
	r.mu.Lock()
	overtaken := r.decided
	if panics != nil && !overtaken {
		r.decided, r.won, r.panics = true, true, panics
		r.stop(false)
		if r.begun == nil {
			r.begun = make(chan struct{})
		}
	}
	begun := r.begun
	r.mu.Unlock()
	if panics != nil && overtaken {
		r.t.forget(&r.hedge)
	}
	if begun != nil {
		close(begun)
	}
}

// stands reports whether an attempt has an answer that is not worth waiting for a better one.
func (r *race) stands(a *attempt) bool {
	return a.sound() && !r.t.unwanted(r.tr.req(), a)
}

// stop cancels the hedge or the first attempt. A hedge that has not begun by the time that the race is decided never
// will.
func (r *race) stop(beside bool) {
	cancel := r.cancels[0]
	if beside {
		cancel = r.cancels[1]
	}
	if cancel != nil {
		cancel()
	}
}

// abandon is for a caller that panics: whoever holds the hedge lets go of it.
func (r *race) abandon() {
	r.mu.Lock()
	mine := r.won || r.failed
	r.decided = true
	r.mu.Unlock()
	r.stop(true)
	if mine {
		r.t.forget(&r.hedge)
	}
}
