package abi

import "github.com/headroom-lb/headroom/engine"

// Field is a part of a record.
type Field struct {
	Name   string
	Offset int
	Type   string // u8, u32, u64 or i64
	Doc    string
}

// Record is a fixed little-endian layout; what no field covers is zero.
type Record struct {
	Name   string
	Size   int
	Doc    string
	Fields []Field
}

// Records lists the layouts, for documents and for the headers of other languages.
func Records() []Record {
	inspect := []Field{}
	for i, name := range counterNames {
		inspect = append(inspect, Field{name, 8 * i, "u64", "count since lb_configure"})
	}
	inspect = append(inspect,
		Field{"Pool", InspectPool, "u32", "entries held at most"},
		Field{"Remove", InspectRemove, "u32", "entries removed per query, in parts per 10,000"},
		Field{"Reuse", InspectReuse, "u64", "mean uses of an entry, in parts per 10,000"},
		Field{"Threshold", InspectThreshold, "u32", "RIF threshold in force, all ones if there is none"},
		Field{"Window", InspectWindow, "u32", "readings in the window"},
		Field{"Shrunk", InspectShrunk, "u8", "1 if the small-fleet rule is in force"},
		Field{"Held", InspectHeld, "u8", "1 if the last good budget serves a fleet outside its domain"},
		Field{"Probes", InspectProbes, "u32", "probes of each query, 2 to MaxAnswers, if the policy decides on lb_answers; else 0; since 1.1"},
		Field{"Wait", InspectWait, "u32", "answers that such a decision weighs, 1 to Probes; since 1.1"},
	)
	return []Record{
		{"Candidate", CandidateSize, "one row of lb_candidates", []Field{
			{"ID", CandidateID, "u64", "identity, the same for a replica's whole life; every value is valid"},
			{"Weight", CandidateWeight, "u32", "relative capacity; 0 counts as 1"},
			{"Locality", CandidateLocality, "u32", "number of its zone, 0 for none"},
			{"Priority", CandidatePriority, "u8", "lower is preferred"},
			{"Status", CandidateStatus, "u8", "a status; another value is bad_config"},
		}},
		{"Answer", AnswerSize, "an answer to a query's own probe, one row of lb_answers", []Field{
			{"ID", AnswerID, "u64", "identity"},
			{"Latency", AnswerLatency, "i64", "nanoseconds, negative if unknown"},
			{"Asked", AnswerAsked, "i64", "instant at which the probe was sent"},
			{"RIF", AnswerRIF, "u32", "requests in flight, as the replica says"},
		}},
		{"InFlight", InFlightSize, "a replica's queries in flight, one row of lb_in_flight; since 1.2", []Field{
			{"ID", InFlightID, "u64", "identity; one that is not in the fleet is passed over"},
			{"Queries", InFlightQueries, "u32", "placed and not reported"},
		}},
		{"Decision", DecisionSize, "what lb_decide decided; the host reads it if the index is not negative", []Field{
			{"Latency", DecisionLatency, "i64", "nanoseconds, of the entry that decided, negative if unknown, 0 if none decided"},
			{"Age", DecisionAge, "i64", "nanoseconds since that entry's receipt"},
			{"Index", DecisionIndex, "u32", "position in the candidates, as lb_decide returns it"},
			{"Offered", DecisionOffered, "u32", "entries of candidates that the query may go to; Cold and Hot add up to it"},
			{"Cold", DecisionCold, "u32", "of those, at or below the threshold"},
			{"Hot", DecisionHot, "u32", "of those, above it"},
			{"Threshold", DecisionThreshold, "u32", "RIF, all ones if there is none"},
			{"RIF", DecisionRIF, "u32", "of the entry that decided"},
			{"UsesLeft", DecisionUsesLeft, "u32", "of that entry"},
			{"Regime", DecisionRegime, "u8", "a regime; direct for a policy without regimes"},
			{"Cause", DecisionCause, "u8", "a cause if and only if the regime is fallback"},
		}},
		{"Entry", EntrySize, "what a policy holds of a replica, one row of lb_entries, for display", []Field{
			{"ID", EntryID, "u64", "identity"},
			{"At", EntryAt, "i64", "instant of its receipt"},
			{"Asked", EntryAsked, "i64", "instant at which its probe was sent"},
			{"Latency", EntryLatency, "i64", "nanoseconds, as ranked, negative if unknown"},
			{"RawLatency", EntryRawLatency, "i64", "nanoseconds, as reported, negative if unknown"},
			{"RIF", EntryRIF, "u32", "as ranked"},
			{"RawRIF", EntryRawRIF, "u32", "as reported"},
			{"Uses", EntryUses, "u32", "decisions that it may still inform"},
			{"Eligible", EntryEligible, "u8", "1 if its replica may receive queries"},
			{"Hot", EntryHot, "u8", "1 if its RIF is above the threshold"},
		}},
		{"Inspect", InspectSize, "counters and settings in force, from lb_inspect; zeros will do", inspect},
	}
}

// counterNames are those of the counters, in the order of [engine.Counters.Each].
var counterNames = [...]string{
	"Admitted", "Replaced", "EvictedOldest", "DroppedStale", "RemovedWorst", "RemovedOldest", "Expired", "Exhausted",
	"Forgotten", "Decisions", "Fallbacks", "Readings", "ProbesDue", "HeldFit",
}

// Bound is a number that both sides must know.
type Bound struct {
	Name  string
	Value int
	Doc   string
}

// Bounds lists the sizes and bounds.
func Bounds() []Bound {
	return []Bound{
		{"ArenaMin", ArenaMin, "bytes that the arena holds at least"},
		{"ArenaMax", ArenaMax, "bytes that are asked for at most; also the bound of a state block"},
		{"MaxSpec", MaxSpec, "bytes of a spec line"},
		{"MaxText", MaxText, "bytes of a text"},
		{"MaxTried", MaxTried, "replicas to avoid, of one query"},
		{"MaxAnswers", MaxAnswers, "answers of one query"},
		{"MaxProbes", MaxProbes, "IDs that lb_probes tells at once"},
		{"MaxEntries", MaxEntries, "entries that lb_entries tells"},
		{"MaxCandidates", engine.MaxCandidates, "candidates; a guest may refuse fewer, as capacity"},
	}
}

// Enum is a set of numbers with names, counted from 0.
type Enum struct {
	Name   string
	Doc    string
	Values []string
}

// Enums lists the sets.
func Enums() []Enum {
	return []Enum{
		{"Status", "whether a replica may receive new queries: only a ready one may", named(3, func(i int) string { return engine.Status(i).String() })},
		{"Outcome", "how a query ended", named(4, func(i int) string { return engine.Outcome(i).String() })},
		{"Admission", "what became of a reading", []string{"not_kept", "admitted", "replaced", "evicted_oldest", "dropped_stale"}},
		{"Regime", "the branch of the rule that decided", named(engine.Regimes, func(i int) string { return engine.Regime(i).String() })},
		{"Cause", "why a decision fell back; trap is for the host to give", named(engine.Causes, func(i int) string {
			if i == 0 {
				return "none"
			}
			return engine.Cause(i).String()
		})},
	}
}

func named(n int, name func(int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = name(i)
	}
	return out
}
