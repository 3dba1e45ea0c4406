package engine

// Regime names the branch of the rule that produced a decision.
type Regime uint8

const (
	RegimeDirect   Regime = iota // a policy without regimes
	RegimeCold                   // the fastest of the cold entries
	RegimeHot                    // every entry is hot: the one with the least RIF
	RegimeFallback               // too little is known: uniform among the eligible
	RegimeSpill                  // the preferred group had no room
	RegimePanic                  // too few are healthy: health is ignored
)

var regimeNames = [...]string{"direct", "cold", "hot", "fallback", "spill", "panic"}

// String returns the regime's name in traces and metrics.
func (r Regime) String() string {
	if int(r) < len(regimeNames) {
		return regimeNames[r]
	}
	return "invalid"
}

// Regimes counts the regimes; valid ones are below it.
const Regimes = len(regimeNames)

// Cause says why a decision fell back.
type Cause uint8

const (
	CauseNone    Cause = iota
	CauseEmpty         // no entry on offer
	CauseThin          // fewer than min_pool entries on offer
	CauseUnknown       // the policy gave no cause
	CauseTrap          // the guest failed and the host decided
)

var causeNames = [...]string{"", "empty", "thin", "unknown", "trap"}

// String returns the cause's name in traces and metrics; none is the empty string.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "invalid"
}

// Causes counts the causes; valid ones are below it.
const Causes = len(causeNames)

// Decision is the answer to a query.
type Decision struct {
	ID        ID
	Latency   Duration // of the entry that decided, as ranked; UnknownLatency if none on offer is known, 0 if no entry decided
	Age       Duration // of that entry, since its receipt
	Index     uint32   // position in the candidate set
	Offered   uint32   // entries of eligible, not-tried candidates
	Cold      uint32   // of those, at or below the threshold
	Hot       uint32   // of those, above it
	Threshold uint32   // in force; NoThreshold if there is none
	RIF       uint32   // of the entry that decided, as ranked
	UsesLeft  uint32   // of that entry, after this decision
	Regime    Regime
	Cause     Cause
}

// Entry is a pool entry as shown to people and tests; policies keep their own form.
type Entry struct {
	ID         ID
	At         Instant  // receipt
	Asked      Instant  // when its probe was sent
	Latency    Duration // as ranked, or UnknownLatency
	RawLatency Duration // as reported, or UnknownLatency
	RIF        uint32   // as ranked: aversion and compensation included
	RawRIF     uint32   // as reported
	Uses       uint32   // decisions it may still inform
	Eligible   bool     // its replica may receive new queries
	Hot        bool     // RIF above the threshold in force
}

// Counters are what a policy has counted since it was configured. They live in the block.
type Counters struct {
	Admitted, Replaced, EvictedOldest, DroppedStale uint64
	RemovedWorst, RemovedOldest, Expired, Exhausted uint64
	Forgotten                                       uint64 // dropped because a query or a probe failed
	Decisions, Fallbacks, Readings, ProbesDue       uint64
	HeldFit                                         uint64 // changes of the fleet served on the last good budget
}

// Each lists the counters by reference, in the order in which they cross the ABI.
func (c *Counters) Each() [14]*uint64 {
	return [...]*uint64{
		&c.Admitted, &c.Replaced, &c.EvictedOldest, &c.DroppedStale, &c.RemovedWorst, &c.RemovedOldest,
		&c.Expired, &c.Exhausted, &c.Forgotten, &c.Decisions, &c.Fallbacks, &c.Readings, &c.ProbesDue, &c.HeldFit,
	}
}

// Fit is what a policy derived for the fleet it serves now.
type Fit struct {
	Pool         uint32 // entries held at most
	RemoveRate   uint32 // per query, in parts per 10,000
	ReuseBudget  uint64 // mean uses per entry, in parts per 10,000
	Threshold    uint32 // in force; NoThreshold if there is none
	WindowFilled uint32 // readings in the window
	Shrunk       bool   // the small-fleet rule is in force
	Held         bool   // the fleet left the domain; the last good budget serves
	Probes       uint32 // of each query, by a policy that decides on the answers to them; 0 for any other
	Wait         uint32 // answers that such a decision weighs: with so many there is nothing to wait for
}
