// Package host runs Headroom's engine for an application: it loads the module, keeps serial
// guests behind a balancer that is safe for concurrent use, and runs the probes that the
// engine says are due.
//
//	Runtime   one per trust domain
//	Module    compiled, its ABI checked
//	Instance  one serial guest
//	Balancer  what applications hold: decides, records, reports
//
// The engine's clock is the balancer's: nanoseconds since it was made. No type of the
// WebAssembly runtime appears in this API, and an embedder gets that runtime and nothing more.
package host
