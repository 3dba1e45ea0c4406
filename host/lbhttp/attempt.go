package lbhttp

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// trip is how far a round trip has come.
type trip struct {
	body     replay
	first    attempt // made on the caller's goroutine; each retry takes its place
	made     uint8   // attempts, a hedge included
	retried  uint8
	hedged   bool
	returned bool
}

func (tr *trip) req() *http.Request { return tr.body.req }

// attempt is a query at one replica, from its placement to the end of its answer.
type attempt struct {
	placement *host.Placement
	permit    uint64 // the gate's
	race      *race  // in which it takes part; nil for most
	resp      *http.Response
	err       error
	beside    bool // it is the hedge of its race
	told      bool // how it ended is being told
	ended     bool // the placement and the permit are
}

func (a *attempt) endpoint() string { return a.placement.Endpoint.Name }

// sound reports whether a replica answered that is not in trouble. Those in trouble may answer fastest.
func (a *attempt) sound() bool {
	return a.err == nil && a.resp.StatusCode < http.StatusInternalServerError && a.resp.StatusCode != http.StatusTooManyRequests
}

// place decides for an endpoint that the gate admits to.
func (t *Transport) place(ctx context.Context, query *host.Query) (*host.Placement, uint64, error) {
	for {
		p, err := t.balancer.Decide(ctx, *query)
		if err != nil {
			return nil, 0, err
		}
		permit, ok := t.opts.gate.Admit(p.Endpoint.Name)
		if ok {
			return p, permit, nil
		}
		p.Done(engine.OutcomeCancelled)
		if len(query.Tried) == engine.MaxTried {
			return nil, 0, engine.ErrNoneEligible
		}
		query.Tried = append(query.Tried, p.Endpoint.Name)
	}
}

// unplace ends a placement to which nothing was sent.
func (t *Transport) unplace(p *host.Placement, permit uint64) {
	p.Done(engine.OutcomeCancelled)
	t.opts.gate.Report(p.Endpoint.Name, permit, engine.OutcomeCancelled)
}

// exchange sends and waits for an answer's headers.
func (t *Transport) exchange(ctx context.Context, req *http.Request, a *attempt, body io.ReadCloser) {
	t.opts.watcher.Sent(a.endpoint())
	a.resp, a.err = t.send(ctx, req, a.placement.Endpoint, body)
	t.opts.watcher.Answered(a.endpoint(), a.err)
}

// send makes one attempt.
func (t *Transport) send(ctx context.Context, req *http.Request, ep host.Endpoint, body io.ReadCloser) (*http.Response, error) {
	url := *req.URL
	if err := address(&url, ep.Addr); err != nil {
		if body != nil {
			_ = body.Close()
		}
		return nil, err
	}
	out := hushed(req.WithContext(ctx))
	out.URL, out.Body = &url, body
	if t.opts.endpointHost {
		out.Host = ""
	} else if out.Host == "" {
		out.Host = req.URL.Host
	}
	resp, err := t.opts.base.RoundTrip(out)
	if err != nil {
		return resp, err
	}
	if err := refuse(req, resp); err != nil {
		if resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, err
	}
	return resp, nil
}

// unwanted reports whether an attempt ended in a way that another one might mend.
func (t *Transport) unwanted(req *http.Request, a *attempt) bool {
	return t.opts.retryable(req, a.resp, a.err) ||
		a.err == nil && repeatable(req) && slices.Contains(t.opts.retryStatus, a.resp.StatusCode)
}

// end ends the attempt's placement and its permit, once.
func (t *Transport) end(a *attempt, o engine.Outcome) {
	if a.ended {
		return
	}
	a.ended = true
	a.placement.Done(o)
	t.opts.gate.Report(a.endpoint(), a.permit, o)
}

// tell ends the attempt's placement, once.
func (t *Transport) tell(req *http.Request, a *attempt, err error) {
	if a.told {
		return
	}
	a.told = true
	t.opts.watcher.Ended(a.endpoint())
	if gone := req.Context().Err(); err != nil && gone != nil {
		err = gone
	}
	resp := a.resp
	if a.err != nil {
		resp = nil
	}
	o := engine.OutcomeCancelled
	defer func() { t.end(a, o) }() // the caller's function may panic
	o = t.opts.outcome(resp, err)
}

// forget ends an attempt that another one, or a panic, has overtaken. That says nothing about its replica.
func (t *Transport) forget(a *attempt) {
	if a.placement == nil {
		return
	}
	t.end(a, engine.OutcomeCancelled)
	if !a.told {
		a.told = true
		t.opts.watcher.Ended(a.endpoint())
	}
	if a.resp != nil && a.resp.Body != nil {
		_ = a.resp.Body.Close()
	}
	a.release()
}

// release frees what an attempt in a race holds until its answer's body has ended.
func (a *attempt) release() {
	if a.race != nil {
		a.race.stop(a.beside)
	}
}

// discard drops an answer that is retried, keeping its connection if it is short and there soon.
// The retry does not wait for it.
func (a *attempt) discard() {
	resp := a.resp
	if resp == nil || resp.Body == nil {
		a.release()
		return
	}
	if resp.ContentLength <= 0 || resp.ContentLength > maxAnswer {
		_ = resp.Body.Close()
		a.release()
		return
	}
	left := *a // a retry takes its place
	go func() {
		defer left.release()
		late := time.AfterFunc(discardWait, func() { _ = resp.Body.Close() })
		_, _ = io.Copy(io.Discard, resp.Body)
		late.Stop()
		_ = resp.Body.Close()
	}()
}

const discardWait = 100 * time.Millisecond
