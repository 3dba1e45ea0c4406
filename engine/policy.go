package engine

// Layout is the number of 64-bit words that a policy keeps in the state block.
type Layout struct {
	Fixed   int // whatever the number of candidates
	PerSlot int // for each candidate, carried along by identity when the set changes
}

// Policy is a rule that decides among candidates. It is deterministic: its state words, the
// set and the arguments settle the result. Embed [Base] and override what the rule needs.
type Policy interface {
	// Name is the spec name.
	Name() string
	// Spec is the canonical one-line form; parsing it gives an equal policy.
	Spec() string
	// Seed starts the generator that [Set.Draw] reads.
	Seed() uint64
	// Layout says how many words of state the policy needs.
	Layout() Layout
	// Bind hands over the fixed state words, kept by reference, and the set. The words are
	// zero when fresh. It is called again whenever the block moves or is restored.
	Bind(fixed []uint64, s *Set, fresh bool)
	// Admit refuses a fleet before it is taken, with a reason; the old one then stays. A change
	// of status is never refused.
	Admit(cs []Candidate) error
	// Moved follows a change of the set: the candidate in old slot i is now in remap[i], or
	// gone if that is -1.
	Moved(remap []int32)
	// Changed follows every change of the set or of eligibility, after Bind and Moved; tables
	// derived from the candidates are built here. A restore has the same candidates and
	// statuses, and calls Bind alone.
	Changed()
	// Decide fills in the set's Out, all but ID. At least one candidate is open.
	Decide(now Instant, key Key) error
	// Observe hears how a query ended.
	Observe(now Instant, slot uint32, r Report)
	// Record takes a reading; the instant it was asked is not after now.
	Record(now Instant, slot uint32, rd Reading) Admission
	// RecordLoad takes a replica's report of its load.
	RecordLoad(now Instant, slot uint32, l LoadReport)
	// Forget drops what is held of a replica, unless it was asked later: a probe failed.
	Forget(slot uint32, asked Instant)
	// Probes appends the replicas that are due to be probed: for a policy whose Fit names Probes,
	// those to probe for one query.
	Probes(now Instant, dst []ID) []ID
	// Entries appends what the policy holds, in its own order, changing nothing.
	Entries(now Instant, dst []Entry) []Entry
	// Explain adds to x what a decision in this state would weigh: see [Explanation]. It may
	// draw and change state as Decide does: the engine takes that back.
	Explain(now Instant, key Key, x *Explanation)
	// Inspect fills in counters and the settings in force.
	Inspect(c *Counters, f *Fit)
	// Valid reports whether the bound words are a state this policy could have made. A
	// restore from an untrusted source asks before it serves.
	Valid() bool
}

// Base is the policy that keeps nothing, probes nothing and accepts every fleet. Embed it.
type Base struct{ Set *Set }

// The defaults of every optional part of [Policy].
func (b *Base) Seed() uint64                              { return 0 }
func (b *Base) Layout() Layout                            { return Layout{} }
func (b *Base) Bind(_ []uint64, s *Set, _ bool)           { b.Set = s }
func (b *Base) Admit([]Candidate) error                   { return nil }
func (b *Base) Moved([]int32)                             {}
func (b *Base) Changed()                                  {}
func (b *Base) Observe(Instant, uint32, Report)           {}
func (b *Base) Record(Instant, uint32, Reading) Admission { return NotKept }
func (b *Base) RecordLoad(Instant, uint32, LoadReport)    {}
func (b *Base) Forget(uint32, Instant)                    {}
func (b *Base) Explain(Instant, Key, *Explanation)        {}
func (b *Base) Probes(_ Instant, dst []ID) []ID           { return dst }
func (b *Base) Entries(_ Instant, dst []Entry) []Entry    { return dst }
func (b *Base) Inspect(*Counters, *Fit)                   {}
func (b *Base) Valid() bool                               { return true }

// Machine is anything with the engine's method set: an [*Engine], or an instance of its
// WebAssembly module. One caller at a time.
type Machine interface {
	SetCandidates(now Instant, cs []Candidate) error
	SetStatus(now Instant, id ID, s Status) error
	Decide(q *Query, d *Decision) error
	Report(now Instant, r Report) error
	Record(now Instant, id ID, rd Reading) (Admission, error)
	RecordLoad(now Instant, id ID, l LoadReport) error
	Forget(now Instant, id ID, asked Instant) error
	Probes(now Instant, dst []ID) ([]ID, error)
	Entries(now Instant, dst []Entry) ([]Entry, error)
	Inspect(c *Counters, f *Fit) error
	Snapshot(dst []byte) ([]byte, error)
	Restore(block []byte) error
	SetInFlight(open []InFlight) error
}
