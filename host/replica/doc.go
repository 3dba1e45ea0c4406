// Package replica is the serving side of Headroom: it counts a replica's requests in flight
// (RIF), remembers latencies by the RIF they met, and answers probes with both.
//
//	m, err := replica.NewMonitor(probe.EstimatorConfig{})
//	…
//	mux.Handle(replica.DefaultPath, m.ProbeHandler())
//	http.ListenAndServe(addr, m.Middleware(mux))
//
// A query counts from the moment the application receives it to the moment it hands the answer
// back: from the entry of the handler to its exit, whichever way it exits.
//
//   - Returned: the latency is kept, unless the answer was 429 or 5xx or the client had left.
//     Then it is a failure, and a failure never lowers the estimate (see [probe.Estimator.Fail]).
//   - Panicked or exited with runtime.Goexit: a failure. The panic goes on to net/http.
//   - Hijacked: RIF still falls when the handler returns, not when the connection closes.
//     Handlers that serve a WebSocket stay in the handler, so they are counted while it lasts;
//     one that hands the connection to a goroutine of its own has left HTTP, and a RIF tied to
//     somebody else's Close would leak. A conversation has no latency: none is kept.
//
// Probes are not counted and take no turn in any queue of the application, so a saturated
// replica still answers: reading RIF is one atomic load, and the estimate is taken under a lock
// that is never held while a handler runs. If the application itself limits connections or
// handlers, serve [Monitor.ProbeHandler] on a listener of its own.
//
// A probe for one query may carry a hint of what the query is about; [WithHints] scales the load
// that is reported for it, to attract a query whose data this replica has at hand.
//
// The package imports neither the host nor a wasm runtime.
package replica
