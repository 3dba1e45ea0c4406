package host

import "time"

// Option sets up a [Balancer].
type Option func(*options)

type options struct {
	shards   int
	seed     uint64
	closed   bool // fail closed on a trap
	trap     func(error)
	twin     Parse
	noSpare  bool
	recorder *Recorder
	wait     time.Duration // for the answers to one query's probes
}

// WithShards splits a balancer into n machines, each a Prequal client of its own, taken in
// order as they are free. One, the default, decides best; more keep decisions from waiting
// when many processors decide at once, from some 100,000 a second on.
func WithShards(n int) Option { return func(o *options) { o.shards = n } }

// WithSeed stirs a number into the spec's seed, so that balancers with the same spec decide
// differently. Zero is as if not given: the spec's seed stays as it is, and a spec that sets
// none gets a random one.
func WithSeed(seed uint64) Option { return func(o *options) { o.seed = seed } }

// WithFailClosed refuses a query whose guest trapped instead of deciding it uniformly.
func WithFailClosed() Option { return func(o *options) { o.closed = true } }

// WithTrapHandler is told of every failure of a guest, on a goroutine of its own.
func WithTrapHandler(f func(error)) Option { return func(o *options) { o.trap = f } }

// WithTwin names the native makers of the policies of our own module, policy.Parse. When a guest of
// it fails, the native engine of the same policy decides, from the guest's state of at most 10 ms
// ago, until another guest is there; decisions of that time are of regime fallback, cause trap.
// Without it, and for modules of others, they are uniform among the eligible. It also explains the
// differences that a [Comparison] finds.
func WithTwin(parse Parse) Option { return func(o *options) { o.twin = parse } }

// WithoutSpare keeps no guest ready for the next failure: some 3 MiB less for each balancer, and
// some milliseconds more until a guest that failed is replaced.
func WithoutSpare() Option { return func(o *options) { o.noSpare = true } }

// DefaultProbeWait is how long a query waits for the answers to its own probes (paper, section 4).
const DefaultProbeWait = 3 * time.Millisecond

// WithProbeWait bounds how long a query of a synchronous policy waits for the answers to its own
// probes, [DefaultProbeWait] unless given: at most a minute. It bounds the probes too. Inside a
// data centre answers take well under a millisecond; what a dead replica may cost a query is this.
// Policies that probe in the background wait for nothing.
func WithProbeWait(d time.Duration) Option { return func(o *options) { o.wait = d } }
