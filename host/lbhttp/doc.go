// Package lbhttp balances HTTP: a round tripper for clients, a reverse proxy, and the probing of
// replicas over HTTP, all over one [host.Balancer].
//
//	b, err := host.NewBalancer(ctx, module, "prequal seed=7")
//	err = b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: "http://10.0.0.1:9001"}, …})
//	prober := host.Prober{Probe: lbhttp.ProbeURL(nil, "")}
//	go prober.Run(ctx, b)
//	http.ListenAndServe(addr, lbhttp.NewProxy(b))
//
// # When a query ends
//
// A placement is open from the decision to the end of the answer's body: its last byte, the
// error it breaks off with, or its Close. An answer without a body ends at once. After an upgrade
// (101) the conversation is the body, and Close ends it. So a stream counts as in flight while it
// lasts, and a caller that never closes a body leaks its placement as it leaks its connection.
//
// What the balancer is told is the business of [DefaultOutcome] or [WithOutcome]. A caller that
// closes a good answer early has had what it wanted, and that is a success, unless its context was
// cancelled.
//
// # Retries
//
// An attempt that failed is repeated on another replica if that is safe; see [DefaultRetryable].
// The replicas tried are excluded from the next decision. When none is left the last answer or
// error stands. [WithRetryStatus] also repeats what was answered with certain statuses.
//
// All retries share a budget, [WithRetryBudget]: when every replica fails, each query would otherwise
// come three times, and keep the replicas down that it is waiting for.
//
// # Hedges
//
// With [WithHedge] a query whose answer does not begin in time is also sent to another replica, and the
// first answer counts. That has a budget too. [Transport.Stats] counts both.
//
// # Health
//
// [WithGate] takes a Monitor of package health, which may keep single queries from a replica, and
// hears how each attempt ended. Without one every query goes where the balancer decides.
//
// # Readings
//
// Readings that replicas put on ordinary answers, as headers or trailers, are recorded and
// removed. Probes are asked with [ProbeURL].
//
// Under a synchronous policy (prequal mode=sync) each attempt is probed for before it is placed, by
// the prober that runs, and waits up to [host.WithProbeWait]. [WithHint] tells those probes what the
// request is about.
package lbhttp
