package lbhttp

import (
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

const (
	leastHedgeAfter = time.Millisecond // what is sooner would hedge noise
	mostHedgedBody  = 64 << 10         // bytes

	paceWindow   = 512
	paceAge      = 60 * engine.Second
	paceQuantile = probe.Unit * 95 / 100
	leastPaces   = 32
)

// hedging is when to hedge, and how often.
type hedging struct {
	after  time.Duration // HedgeAt95th for the pace's
	budget *budget

	mu   sync.Mutex
	pace probe.Window // times to first attempts' headers, in microseconds
}

func newHedging(o options) *hedging {
	if !o.hedge {
		return nil
	}
	h := &hedging{after: o.hedgeAfter, budget: newBudget(o.hedgeShare, 0)}
	if h.after != HedgeAt95th {
		h.after = max(h.after, leastHedgeAfter)
	}
	h.pace.Init(paceWindow, paceAge, paceQuantile)
	h.pace.Bind(make([]uint64, h.pace.Words()))
	return h
}

// suits reports whether a request may be sent twice at the same time.
func (h *hedging) suits(body *replay) bool {
	req := body.req
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return protocol(req.Header) == "" &&
			(body.empty() || req.GetBody != nil && req.ContentLength > 0 && req.ContentLength <= mostHedgedBody)
	}
	return false
}

// delay is how long to wait for an answer's headers. Until there are some times it is not known.
func (h *hedging) delay(now engine.Instant) (time.Duration, bool) {
	if h.after != HedgeAt95th {
		return h.after, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace.Expire(now)
	if h.pace.Len() < leastPaces {
		return 0, false
	}
	return max(time.Duration(h.pace.Threshold())*time.Microsecond, leastHedgeAfter), true
}

// took adds a first attempt's time. One that was cut short counts as what it took by then: it is
// above the delay, and for a quantile it does not matter how far. Leaving it out would shorten the
// delay with every hedge. One that failed sooner is left out: a failure must not shorten it either.
func (h *hedging) took(now engine.Instant, d engine.Duration) {
	if h.after != HedgeAt95th {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace.Add(now, uint32(min(max(int64(d)/int64(time.Microsecond), 0), math.MaxUint32)))
}
