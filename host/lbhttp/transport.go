package lbhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// Transport is an http.RoundTripper that asks a balancer where each request goes. It is safe for
// concurrent use.
type Transport struct {
	balancer *host.Balancer
	opts     options
}

// NewTransport makes a transport over a balancer. It neither probes nor closes the balancer.
func NewTransport(b *host.Balancer, opts ...Option) *Transport {
	return &Transport{b, settings(opts)}
}

// errOpaque refuses a URL such as x:http://h/p. Its opaque part would be sent as it is, past the
// replica's address and past any rule about paths.
var errOpaque = errors.New("the URL is opaque: give one with a path, such as http://host/path")

// errClosed stands for a body that was closed before its end with its request still wanted.
var errClosed = errors.New("closed early")

// RoundTrip places the request, sends it and returns the answer; the placement stays open until
// the end of the body. The URL's scheme and host are replaced by the replica's, the Host that
// the caller asked for is kept. Errors: [ErrNotPlaced] with the engine's reason, an [*Error] for an
// attempt without an answer that can be passed on, the context's error if it ended before the first
// attempt, or one about an opaque URL.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var query host.Query
	if t.opts.key != nil {
		query.Key = t.opts.key(req)
	}
	if t.opts.hint != nil {
		query.Hint = t.opts.hint(req)
	}
	a := attempt{req: req, body: replay{req: req, src: req.Body}}
	if req.URL.Opaque != "" {
		a.body.abandon()
		return nil, errOpaque
	}
	defer t.rescue(&a)
	resp, err := t.run(&a, query)
	a.returned = true
	return resp, err
}

// run makes attempts until one settles.
func (t *Transport) run(a *attempt, query host.Query) (*http.Response, error) {
	req := a.req
	for {
		p, permit, refused := t.place(req.Context(), &query)
		if refused != nil && a.made == 0 {
			a.body.abandon()
			if gone := req.Context().Err(); gone != nil {
				return nil, gone
			}
			return nil, fmt.Errorf("%w: %w", ErrNotPlaced, refused)
		}
		if refused != nil {
			return t.settle(a) // every replica was tried: the last answer stands, good or bad
		}
		if a.made > 0 {
			if !a.body.again() {
				p.Done(engine.OutcomeCancelled)
				t.opts.gate.Report(p.Endpoint.Name, permit, engine.OutcomeCancelled)
				return t.settle(a)
			}
			discard(a.resp)
		}
		a.made++
		a.placement, a.permit, a.told, a.ended = p, permit, false, false
		t.opts.watcher.Sent(p.Endpoint.Name)
		a.resp, a.err = t.send(req, p.Endpoint, a.body.next())
		t.opts.watcher.Answered(p.Endpoint.Name, a.err)
		if a.made > t.opts.retries || !t.repeatable(a) {
			return t.settle(a)
		}
		t.tell(a, a.err)
		query.Tried = append(query.Tried, p.Endpoint.Name)
	}
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

// end ends the attempt's placement and its permit, once.
func (t *Transport) end(a *attempt, o engine.Outcome) {
	if a.ended {
		return
	}
	a.ended = true
	a.placement.Done(o)
	t.opts.gate.Report(a.placement.Endpoint.Name, a.permit, o)
}

// attempt is how far a round trip has come.
type attempt struct {
	req       *http.Request
	body      replay
	placement *host.Placement
	permit    uint64 // the gate's
	resp      *http.Response
	err       error
	made      int  // attempts, this one included
	told      bool // how it ended is being told
	ended     bool // the placement and the permit are
	returned  bool // the round trip came to its end
}

// rescue ends the placement when a base transport or a caller's function panics.
func (t *Transport) rescue(a *attempt) {
	if a.returned || a.placement == nil {
		return
	}
	t.end(a, engine.OutcomeCancelled)
	if !a.told {
		t.opts.watcher.Ended(a.placement.Endpoint.Name)
	}
}

func (t *Transport) repeatable(a *attempt) bool {
	return a.req.Context().Err() == nil && a.body.repeatable() && t.opts.retryable(a.req, a.resp, a.err)
}

// tell ends the attempt's placement, once.
func (t *Transport) tell(a *attempt, err error) {
	if a.told {
		return
	}
	a.told = true
	t.opts.watcher.Ended(a.placement.Endpoint.Name)
	if gone := a.req.Context().Err(); err != nil && gone != nil {
		err = gone
	}
	resp := a.resp
	if a.err != nil {
		resp = nil
	}
	t.end(a, t.opts.outcome(resp, err))
}

// send makes one attempt.
func (t *Transport) send(req *http.Request, ep host.Endpoint, body io.ReadCloser) (*http.Response, error) {
	url := *req.URL
	if err := address(&url, ep.Addr); err != nil {
		if body != nil {
			_ = body.Close()
		}
		return nil, err
	}
	out := hushed(req.WithContext(req.Context()))
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

// settle turns the last attempt into the transport's answer and ends its placement, now or at
// the end of the body.
func (t *Transport) settle(a *attempt) (*http.Response, error) {
	if a.err != nil {
		why := a.err
		if a.body.broke() {
			why = context.Canceled // the caller's body failed, not the replica
		}
		t.tell(a, why)
		a.body.abandon()
		return nil, &Error{Endpoint: a.placement.Endpoint.Name, Attempts: a.made, Err: a.err}
	}
	a.body.adopt()
	resp := a.resp
	resp.Request = a.req // so that a relative Location resolves against what the caller asked for
	t.report(a.placement.Endpoint.Name, resp.Header)
	strip(resp.Trailer)
	if duplex, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &duplexBody{ReadWriteCloser: duplex, end: func() { t.tell(a, nil) }}
		return resp, nil
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		t.tell(a, nil)
		return resp, nil
	}
	resp.Body = &endBody{ReadCloser: resp.Body, end: func(err error) {
		if err == nil {
			t.report(a.placement.Endpoint.Name, resp.Trailer)
		}
		if errors.Is(err, errClosed) && a.req.Context().Err() == nil {
			err = nil // the caller had what it wanted
		}
		t.tell(a, err)
	}}
	return resp, nil
}

// discard drops an answer that is retried, keeping its connection if it is short and there soon.
// The retry does not wait for it.
func discard(resp *http.Response) {
	if resp == nil || resp.Body == nil {
		return
	}
	if resp.ContentLength <= 0 || resp.ContentLength > maxAnswer {
		_ = resp.Body.Close()
		return
	}
	go func() {
		late := time.AfterFunc(discardWait, func() { _ = resp.Body.Close() })
		_, _ = io.Copy(io.Discard, resp.Body)
		late.Stop()
		_ = resp.Body.Close()
	}()
}

const discardWait = 100 * time.Millisecond

// CloseIdleConnections closes what the base transport keeps open unused; http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.opts.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
