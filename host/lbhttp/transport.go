package lbhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/headroom-lb/headroom/host"
)

// Transport is an http.RoundTripper that asks a balancer where each request goes. It is safe for
// concurrent use.
type Transport struct {
	balancer *host.Balancer
	opts     options
	counts   counts
	retries  *budget
	hedge    *hedging // nil for none
}

// NewTransport makes a transport over a balancer. It neither probes nor closes the balancer.
func NewTransport(b *host.Balancer, opts ...Option) *Transport {
	o := settings(opts)
	return &Transport{balancer: b, opts: o, retries: newBudget(o.retryShare, o.retryLeast), hedge: newHedging(o)}
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
	tr := trip{body: replay{req: req, src: req.Body}}
	if req.URL.Opaque != "" {
		tr.body.abandon()
		return nil, errOpaque
	}
	defer t.rescue(&tr)
	resp, err := t.run(&tr, query)
	tr.returned = true
	return resp, err
}

// run makes attempts until one settles.
func (t *Transport) run(tr *trip, query host.Query) (*http.Response, error) {
	ctx, last := tr.req().Context(), &tr.first
	for {
		p, permit, refused := t.place(ctx, &query)
		switch {
		case tr.made == 0 && refused != nil:
			tr.body.abandon()
			if gone := ctx.Err(); gone != nil {
				return nil, gone
			}
			return nil, fmt.Errorf("%w: %w", ErrNotPlaced, refused)
		case tr.made == 0:
			t.counts.queries.Add(1)
		case refused != nil: // every replica was tried: the last answer stands, good or bad
			t.retries.giveBack()
			return t.settle(tr, last)
		case !tr.body.again():
			t.unplace(p, permit)
			t.retries.giveBack()
			return t.settle(tr, last)
		default:
			t.counts.retries.Add(1)
			last.discard()
		}
		tr.made++
		tr.first = attempt{placement: p, permit: permit}
		last = t.try(tr, &query)
		if int(tr.retried) == t.opts.retries || !t.repeatable(tr, last) {
			return t.settle(tr, last)
		}
		if !t.retries.take(t.balancer.Now(), t.counts.queries.Load()) {
			t.counts.retriesRefused.Add(1)
			return t.settle(tr, last)
		}
		tr.retried++
		t.tell(tr.req(), last, last.err)
		query.Tried = append(query.Tried, p.Endpoint.Name)
	}
}

// try makes an attempt, and gives back the one that counts: it, or the hedge beside it.
func (t *Transport) try(tr *trip, query *host.Query) *attempt {
	if t.hedge != nil && !tr.hedged && t.hedge.suits(&tr.body) {
		return t.hedged(tr, query)
	}
	t.exchange(tr.req().Context(), tr.req(), &tr.first, tr.body.next())
	return &tr.first
}

// rescue ends the placements when a base transport or a caller's function panics.
func (t *Transport) rescue(tr *trip) {
	if tr.returned {
		return
	}
	if tr.first.race != nil {
		tr.first.race.abandon()
	}
	t.forget(&tr.first)
}

func (t *Transport) repeatable(tr *trip, a *attempt) bool {
	return tr.req().Context().Err() == nil && tr.body.repeatable() && t.unwanted(tr.req(), a)
}

// settle turns the last attempt into the transport's answer and ends its placement, now or at
// the end of the body.
func (t *Transport) settle(tr *trip, a *attempt) (*http.Response, error) {
	req := tr.req()
	if a.err != nil {
		why := a.err
		if tr.body.broke() {
			why = context.Canceled // the caller's body failed, not the replica
		}
		t.tell(req, a, why)
		tr.body.abandon()
		a.release()
		return nil, &Error{Endpoint: a.endpoint(), Attempts: int(tr.made), Err: a.err}
	}
	tr.body.adopt()
	resp := a.resp
	resp.Request = req // so that a relative Location resolves against what the caller asked for
	t.report(a.endpoint(), resp.Header)
	strip(resp.Trailer)
	if duplex, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &duplexBody{ReadWriteCloser: duplex, end: func() { t.tell(req, a, nil) }}
		return resp, nil
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		t.tell(req, a, nil)
		a.release()
		return resp, nil
	}
	resp.Body = &endBody{ReadCloser: resp.Body, end: func(err error) {
		defer a.release()
		if err == nil {
			t.report(a.endpoint(), a.resp.Trailer)
		}
		if errors.Is(err, errClosed) && req.Context().Err() == nil {
			err = nil // the caller had what it wanted
		}
		t.tell(req, a, err)
	}}
	return resp, nil
}

// CloseIdleConnections closes what the base transport keeps open unused; http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.opts.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
