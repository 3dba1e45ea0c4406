package engine

import "github.com/headroom-lb/headroom/engine/internal/hash"

// ID is the stable identity of a replica. Every value is valid.
type ID uint64

// IDOf names a replica: FNV-1a 64 of the name's bytes, finished by a 64-bit mix. The
// algorithm is frozen.
func IDOf(name string) ID { return ID(hash.String(name)) }

// Key is an affinity key. Zero means none.
type Key uint64

// KeyOf hashes an affinity key; it never returns zero.
func KeyOf(s string) Key {
	if k := Key(hash.String(s)); k != 0 {
		return k
	}
	return 1
}

// LocalityOf numbers a locality, such as a zone, by its name; only the empty name is 0. A fleet
// in which two names get one number is inconsistent: [ErrTopology]. The algorithm is frozen.
func LocalityOf(name string) uint32 {
	if name == "" {
		return 0
	}
	return max(1, uint32(hash.String(name)>>32))
}

// Instant is nanoseconds on the caller's monotonic clock. An instant earlier than the last
// one an engine has seen is treated as the last one seen.
type Instant int64

// Duration is a span in nanoseconds; it converts to and from time.Duration by a cast.
type Duration int64

// Spans, as in package time.
const (
	Nanosecond  Duration = 1
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)

// UnknownLatency says that a replica has no latency estimate yet.
const UnknownLatency Duration = -1

// MaxLatency is the largest latency the engine tells apart (about 4.5 years); more is cut to it.
const MaxLatency Duration = 1<<57 - 2

// NoThreshold is the threshold of a decision for which every entry counts as cold.
const NoThreshold uint32 = 1<<32 - 1

// Weight is relative capacity. Zero means unset and counts as one: taking a replica out is
// its status's job.
type Weight uint32

// Status says whether a replica may receive new queries.
type Status uint8

const (
	StatusReady       Status = iota // eligible
	StatusDraining                  // finishing its work, not eligible
	StatusUnavailable               // not eligible
)

// Eligible reports whether a replica with this status may receive new queries.
func (s Status) Eligible() bool { return s == StatusReady }

// String returns the name used in traces: ready, draining, unavailable.
func (s Status) String() string {
	switch s {
	case StatusReady:
		return "ready"
	case StatusDraining:
		return "draining"
	case StatusUnavailable:
		return "unavailable"
	}
	return "invalid"
}

// ParseStatus is the inverse of [Status.String]; the empty string is ready.
func ParseStatus(s string) (Status, bool) {
	switch s {
	case "", "ready":
		return StatusReady, true
	case "draining":
		return StatusDraining, true
	case "unavailable":
		return StatusUnavailable, true
	}
	return 0, false
}

// Candidate is one row offered to decisions. Only ID must be set.
type Candidate struct {
	ID       ID
	Weight   Weight
	Locality uint32 // LocalityOf its name; 0 if it has none
	Priority uint8  // lower is preferred
	Status   Status
}

// Query is one unit of work to place.
type Query struct {
	Now     Instant  // when the decision is made
	Key     Key      // affinity; zero for none
	Tried   []ID     // replicas that a retry or a hedge must avoid, at most MaxTried
	Answers []Answer // to this query's own probes, in order of receipt, at most MaxAnswers
}

// Bounds of a query's lists.
const (
	MaxTried   = 32
	MaxAnswers = 16
)

// Answer is a probe's answer that belongs to one query: synchronous probing decides on these
// and keeps none.
type Answer struct {
	ID      ID
	Reading Reading
}

// Reading is what a replica said of itself in answer to a probe.
type Reading struct {
	RIF     uint32   // requests in flight, as the replica reports them
	Latency Duration // conditioned latency, or UnknownLatency
	Asked   Instant  // when the probe was sent; later than its receipt counts as its receipt
}

// LoadReport is what a replica said of its load over its last seconds (ORCA, gRFC A51).
type LoadReport struct {
	Utilization uint32 // of its capacity, in parts per 10,000; may exceed 10,000; 0 is not known
	QPS         uint32 // queries served per second, in thousandths
	EPS         uint32 // of those, failed, in thousandths
}

// Admission says what became of a reading.
type Admission uint8

const (
	NotKept       Admission = iota // the policy keeps no readings
	Admitted                       // a new entry
	Replaced                       // took the place of the same replica's older entry
	EvictedOldest                  // a new entry; the oldest one left to make room
	DroppedStale                   // older than what is held
)

// Outcome is how a placed query ended.
type Outcome uint8

const (
	OutcomeSuccess    Outcome = iota
	OutcomeFailure            // the replica failed the query
	OutcomeOverloaded         // the replica refused it for load (429, RESOURCE_EXHAUSTED)
	OutcomeCancelled          // the caller gave up; says nothing about the replica
)

// String returns the name used in traces: success, failure, overloaded, cancelled.
func (o Outcome) String() string {
	switch o {
	case OutcomeSuccess:
		return "success"
	case OutcomeFailure:
		return "failure"
	case OutcomeOverloaded:
		return "overloaded"
	case OutcomeCancelled:
		return "cancelled"
	}
	return "invalid"
}

// ParseOutcome is the inverse of [Outcome.String]; the empty string is success.
func ParseOutcome(s string) (Outcome, bool) {
	switch s {
	case "", "success":
		return OutcomeSuccess, true
	case "failure":
		return OutcomeFailure, true
	case "overloaded":
		return OutcomeOverloaded, true
	case "cancelled":
		return OutcomeCancelled, true
	}
	return 0, false
}

// Report tells the engine how a query it placed ended.
type Report struct {
	ID      ID
	Outcome Outcome
	Latency Duration // as this client saw it, or UnknownLatency
}
