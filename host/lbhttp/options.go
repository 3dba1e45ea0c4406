package lbhttp

import (
	"net"
	"net/http"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/replica"
)

// Option adjusts a [Transport] or a proxy.
type Option func(*options)

type options struct {
	base         http.RoundTripper
	key          func(*http.Request) string
	hint         func(*http.Request) string
	outcome      func(*http.Response, error) engine.Outcome
	retries      int
	retryable    func(*http.Request, *http.Response, error) bool
	retryStatus  []int
	retryShare   int // percent of the queries
	retryLeast   int // a second
	hedge        bool
	hedgeAfter   time.Duration
	hedgeShare   int // percent of the queries
	probePath    string
	piggyback    bool
	endpointHost bool
	watcher      Watcher
	gate         Gate
}

// What retries may add to the load, unless [WithRetries] and [WithRetryBudget] say otherwise.
const (
	DefaultRetries    = 2  // of one query
	DefaultRetryShare = 20 // percent of the queries
	DefaultRetryLeast = 10 // a second
)

func settings(opts []Option) options {
	o := options{
		outcome:    DefaultOutcome,
		retries:    DefaultRetries,
		retryable:  DefaultRetryable,
		retryShare: DefaultRetryShare,
		retryLeast: DefaultRetryLeast,
		probePath:  replica.DefaultPath,
		piggyback:  true,
		watcher:    unwatched{},
		gate:       ungated{},
	}
	for _, opt := range opts {
		opt(&o)
	}
	if o.base == nil {
		o.base = defaultBase()
	}
	return o
}

// WithBase sends through rt instead of a transport of our own, which connects within three
// seconds, keeps up to 256 idle connections to each replica, ignores proxies named in the
// environment and passes compressed bodies on as they are.
func WithBase(rt http.RoundTripper) Option { return func(o *options) { o.base = rt } }

// WithKey gives each query an affinity key; policies without affinity ignore it.
func WithKey(f func(*http.Request) string) Option { return func(o *options) { o.key = f } }

// WithHint tells the replicas that are probed for a query what it is about, such as the key of the
// data that it will read, so that one that has them at hand can say so: see [replica.WithHints].
// It is sent as x-prequal-hint, if it is printable ASCII of at most [replica.MaxHint] bytes, else
// not at all. Policies that do not probe for each query ignore it.
func WithHint(f func(*http.Request) string) Option { return func(o *options) { o.hint = f } }

// WithOutcome decides what the balancer is told of an attempt. It is called once per attempt, but not
// for one that [WithHedge] cancels:
// with an error alone if no answer came; with the response at the end of its body; with both if
// the body broke off. A caller who gave up or ran out of time is the context's error. The body
// must not be touched. The default is [DefaultOutcome].
func WithOutcome(f func(*http.Response, error) engine.Outcome) Option {
	return func(o *options) { o.outcome = f }
}

// WithRetries allows up to n further attempts on other replicas, at most [engine.MaxTried], when
// retryable says so; nil keeps [DefaultRetryable]. Zero turns retries off; by default there are
// two. [WithRetryBudget] bounds them over all queries. Whatever retryable says, an attempt whose request body was partly read is repeated only if
// the request has GetBody. A response that is retried is dropped unread, unless no other replica
// is left: then it is the answer.
func WithRetries(n int, retryable func(*http.Request, *http.Response, error) bool) Option {
	return func(o *options) {
		o.retries = min(max(n, 0), engine.MaxTried)
		if retryable != nil {
			o.retryable = retryable
		}
	}
}

// WithRetryStatus also retries answers of these statuses, such as 502, 503 and 504, on other replicas.
// Without it every answer is passed on. Only requests that HTTP holds idempotent (RFC 9110, 9.2.2), or
// that carry an Idempotency-Key, are retried, and only while their body can be sent again. Where the
// answer says Retry-After, that is for its replica, which this query does not ask again; if no other
// is left the answer reaches the caller with it.
func WithRetryStatus(codes ...int) Option { return func(o *options) { o.retryStatus = codes } }

// WithRetryBudget bounds what the retries of all queries may add to the load: percent of the queries
// and, so that little traffic has some, least in each second. Ten seconds' worth of least, and at
// least ten, are saved up. Out of budget the answer or error there is stands, and
// [Stats.RetriesRefused] counts it. The defaults are 20 and 10; without a bound an outage of all
// replicas would have [WithRetries] times the load on top when they come back. Percent is 0 to
// 100, least 0 to 1,000,000.
func WithRetryBudget(percent, least int) Option {
	return func(o *options) { o.retryShare, o.retryLeast = percent, least }
}

// HedgeAt95th is a delay for [WithHedge]: as long as 95 of 100 queries take to their answer's headers.
const HedgeAt95th time.Duration = -1

// WithHedge makes one further attempt on another replica when no answer has begun after a while: a
// fixed time of a millisecond or more, or [HedgeAt95th] of the last minute's answers, 512 at most, 5xx
// and 429 aside; before there were 32 nothing is hedged. The first answer is the answer; the other
// attempt is cancelled, and the balancer hears that as [engine.OutcomeCancelled], whatever
// [WithOutcome] says. A [Watcher] hears of it as if its caller had left. An error, an answer of 429 or
// 5xx, or one that would be retried does not end the wait for the other attempt.
//
// Hedged are requests of methods that HTTP holds safe (RFC 9110, 9.2.1) without a body, or with one of
// up to 64 KB that GetBody gives anew. An upgrade is not. Others would not do: the attempt that lost
// could be carried out after the caller had its answer, and undo what the caller wrote since. Percent,
// 0 to 100, bounds the part of the queries that are hedged; ten are saved up.
//
// The base transport must give up when a request's context ends, as http.Transport does, and leave
// the request's headers alone.
func WithHedge(after time.Duration, percent int) Option {
	return func(o *options) { o.hedge, o.hedgeAfter, o.hedgeShare = true, after, percent }
}

// DefaultHedgeShare is a usual bound for [WithHedge], in percent of the queries.
const DefaultHedgeShare = 5

// WithProbePath names the path at which replicas answer probes, by default that of package
// replica. The proxy answers requests for it with 404: readings are between the balancer and its
// replicas. The empty path lets everything pass.
func WithProbePath(path string) Option { return func(o *options) { o.probePath = path } }

// WithPiggyback says whether readings found on ordinary answers are recorded; by default they
// are. They are removed from the answer in any case.
func WithPiggyback(on bool) Option { return func(o *options) { o.piggyback = on } }

// Watcher hears of every attempt, by the name of its endpoint. Calls come from many goroutines at
// once, and queries wait for them.
type Watcher interface {
	Sent(endpoint string)                // an attempt begins
	Answered(endpoint string, err error) // the answer's headers came, or with an error no answer did
	Ended(endpoint string)               // its placement ends: with the answer's body
}

// WithWatcher tells w of every attempt.
func WithWatcher(w Watcher) Option { return func(o *options) { o.watcher = w } }

type unwatched struct{}

func (unwatched) Sent(string)            {}
func (unwatched) Answered(string, error) {}
func (unwatched) Ended(string)           {}

// Gate may keep an attempt from an endpoint that the balancer decided for, such as one whose circuit
// lets only trial queries pass, and hears how attempts ended. A Monitor of package health is one.
// Calls come from many goroutines at once, and queries wait for them.
type Gate interface {
	// Admit gives a permit for one attempt, or refuses it: the balancer then decides among the others.
	Admit(endpoint string) (permit uint64, ok bool)
	// Report ends an attempt that was admitted, once, with what the balancer is told of it.
	Report(endpoint string, permit uint64, o engine.Outcome)
}

// WithGate asks g before every attempt. What it refuses counts as tried: a query that it refuses on
// [engine.MaxTried] endpoints, or on all there are, is [ErrNotPlaced] with [engine.ErrNoneEligible].
func WithGate(g Gate) Option { return func(o *options) { o.gate = g } }

type ungated struct{}

func (ungated) Admit(string) (uint64, bool)           { return 0, true }
func (ungated) Report(string, uint64, engine.Outcome) {}

// WithEndpointHost sends the replica's own host name instead of the one the caller asked for.
func WithEndpointHost() Option { return func(o *options) { o.endpointHost = true } }

func defaultBase() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
	}
}
