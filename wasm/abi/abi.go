// Package abi is the boundary between a host and a guest: the version, the names of the
// exports, the offsets of the records and the codes of the errors. Guest, host and
// conformance tests read them here; nobody else writes one down.
//
// Only 32-bit and 64-bit integers cross. Records are little-endian and lie in the arena, a
// buffer that the guest owns. A guest imports WASI and nothing else, and finds no clock and
// no randomness there: instants and seeds are arguments.
package abi

import "github.com/headroom-lb/headroom/engine"

// Version of the interface: a host refuses another major and accepts a higher minor.
const (
	Major = 1
	Minor = 2
)

// Export is a function that a guest exports.
type Export struct {
	Name     string
	Params   string // one letter each: i for i32, l for i64
	Results  string
	Args     string // names of the parameters
	Doc      string
	Optional bool
}

// The names of the exports. Codes are 0 or a negative [Code]; counts and lengths are not negative.
const (
	FuncVersion    = "lb_abi_version"
	FuncArena      = "lb_arena"
	FuncConfigure  = "lb_configure"
	FuncCandidates = "lb_candidates"
	FuncStatus     = "lb_status"
	FuncDecide     = "lb_decide"
	FuncDecision   = "lb_decision"
	FuncReport     = "lb_report"
	FuncRecord     = "lb_record"
	FuncLoad       = "lb_load"
	FuncAnswers    = "lb_answers"
	FuncForget     = "lb_forget"
	FuncProbes     = "lb_probes"
	FuncEntries    = "lb_entries"
	FuncInspect    = "lb_inspect"
	FuncBlock      = "lb_block"
	FuncRestore    = "lb_restore"
	FuncInFlight   = "lb_in_flight"
	FuncText       = "lb_text"
	FuncPolicies   = "lb_policies"
	FuncNothing    = "lb_nothing"
	FuncInitialize = "_initialize"
	Memory         = "memory"
)

// Exports lists what a guest must export, besides the memory and the start function.
func Exports() []Export {
	return []Export{
		{FuncVersion, "", "i", "", "major << 16 | minor; called before all else", false},
		{FuncArena, "i", "i", "bytes", "makes the arena hold at least so many bytes, up to ArenaMax; returns its address, which holds until the next call of this function, or 0 if there is no room for so many", false},
		{FuncConfigure, "il", "i", "bytes salt", "takes the spec line, so many bytes at the arena, and a salt for the seed, 0 for none; returns a code; lb_text then tells the canonical spec or the reason", false},
		{FuncCandidates, "li", "i", "now count", "takes the instant and so many candidate records at the arena; returns a code; the old set stands on an error", false},
		{FuncStatus, "lli", "i", "now id status", "takes the instant, a replica's ID and its status; returns a code", false},
		{FuncDecide, "lli", "i", "now key tried", "takes the instant, the affinity key, and a count of tried IDs at the arena; returns the candidate's index, with the decision record where lb_decision says, or a code", false},
		{FuncDecision, "", "i", "", "returns the address of the decision record, which holds until the next lb_configure", false},
		{FuncReport, "llil", "i", "now id outcome latency", "takes the instant, a replica's ID, the outcome and the latency, negative if unknown; returns a code", false},
		{FuncRecord, "llill", "i", "now id rif latency asked", "takes the instant, a replica's ID, its RIF, its latency, negative if unknown, and the instant it was asked; returns an admission, or a code", false},
		{FuncLoad, "lliii", "i", "now id utilization qps eps", "since 1.1: takes the instant, a replica's ID, its utilisation in parts per 10,000, and its queries and errors per second in thousandths; returns a code; a guest without it does not hear of load", true},
		{FuncAnswers, "i", "i", "count", "since 1.1: takes a count of answer records at the arena, which belong to the next lb_decide; returns a code; a guest without it cannot probe for single queries", true},
		{FuncForget, "lll", "i", "now id asked", "takes the instant, a replica's ID whose probe failed, and the instant it was asked; returns a code", false},
		{FuncProbes, "l", "i", "now", "takes the instant; returns how many IDs stand at the arena, at most MaxProbes: the replicas due, or of a synchronous guest those to probe for one query", false},
		{FuncEntries, "l", "i", "now", "takes the instant; returns how many entry records stand at the arena, at most MaxEntries", false},
		{FuncInspect, "", "i", "", "returns 0, with the inspection record at the arena", false},
		{FuncBlock, "", "l", "", "address << 32 | length in bytes of the state block, valid until the candidates change or a block is restored", false},
		{FuncRestore, "i", "i", "bytes", "takes a state block, so many bytes at the arena; returns a code; the old state stands on an error", false},
		{FuncInFlight, "i", "i", "count", "since 1.2: takes a count of in-flight records at the arena, which replace the counts of all queries in flight, none for who is not named; returns a code; a guest without it starts anew after a failure or a swap", true},
		{FuncText, "", "i", "", "returns the length of the last text, which it writes at the arena", false},
		{FuncPolicies, "", "i", "", "returns the length of the names of the policies this module knows, one a line, which it writes at the arena", true},
		{FuncNothing, "", "i", "", "returns 0 and does nothing: the price of a call", true},
	}
}

// Sizes and bounds. The arena starts at ArenaMin bytes.
const (
	ArenaMin      = 8192
	ArenaMax      = 16 << 20 // more is never asked for; a state block is no larger
	MaxTried      = engine.MaxTried
	MaxAnswers    = engine.MaxAnswers
	MaxProbes     = 64
	MaxEntries    = 64
	MaxSpec       = 4096
	MaxText       = 4096
	CandidateSize = 32
	AnswerSize    = 32
	InFlightSize  = 16
	DecisionSize  = 64
	EntrySize     = 64
	InspectSize   = 160
)

// Offsets in a candidate record.
const (
	CandidateID       = 0  // u64
	CandidateWeight   = 8  // u32
	CandidateLocality = 12 // u32
	CandidatePriority = 16 // u8
	CandidateStatus   = 17 // u8
)

// Offsets in an answer record.
const (
	AnswerID      = 0  // u64
	AnswerLatency = 8  // i64, negative if unknown
	AnswerAsked   = 16 // i64
	AnswerRIF     = 24 // u32
)

// Offsets in an in-flight record.
const (
	InFlightID      = 0 // u64
	InFlightQueries = 8 // u32
)

// Offsets in a decision record. The first eight bytes are not used: the index names the replica.
const (
	DecisionLatency   = 8  // i64, negative if unknown
	DecisionAge       = 16 // i64
	DecisionIndex     = 24 // u32
	DecisionOffered   = 28 // u32
	DecisionCold      = 32 // u32
	DecisionHot       = 36 // u32
	DecisionThreshold = 40 // u32, all ones if there is none
	DecisionRIF       = 44 // u32
	DecisionUsesLeft  = 48 // u32
	DecisionRegime    = 52 // u8
	DecisionCause     = 53 // u8
)

// Offsets in an entry record.
const (
	EntryID         = 0  // u64
	EntryAt         = 8  // i64
	EntryAsked      = 16 // i64
	EntryLatency    = 24 // i64, negative if unknown
	EntryRawLatency = 32 // i64, negative if unknown
	EntryRIF        = 40 // u32
	EntryRawRIF     = 44 // u32
	EntryUses       = 48 // u32
	EntryEligible   = 52 // u8
	EntryHot        = 53 // u8
)

// The inspection record: the counters as u64 in the order of [engine.Counters.Each], then the
// fit. What is not named is zero. A host asks for it when it has configured a guest: a guest that
// names InspectProbes, 2 to MaxAnswers, is synchronous. For each query the host then calls
// lb_probes, probes those replicas, and calls lb_answers with the answers that came before
// lb_decide; later ones it may hand to lb_record.
const (
	InspectPool      = 112 // u32
	InspectRemove    = 116 // u32, parts per 10,000
	InspectReuse     = 120 // u64, parts per 10,000
	InspectThreshold = 128 // u32
	InspectWindow    = 132 // u32
	InspectShrunk    = 136 // u8
	InspectHeld      = 137 // u8
	InspectProbes    = 140 // u32, since 1.1: probes of each query; 0 unless the policy decides on lb_answers
	InspectWait      = 144 // u32, since 1.1: answers that such a decision weighs, 1 to InspectProbes
)
