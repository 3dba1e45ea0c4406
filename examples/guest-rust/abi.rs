//! The boundary between a host and a guest, see docs/abi.md.
//! generated from wasm/abi; go test ./test -run ABI -update writes it
#![allow(dead_code)]

pub const VERSION: i32 = 1 << 16 | 2;
pub const ARENA_MIN: usize = 8192; // bytes that the arena holds at least
pub const ARENA_MAX: usize = 16777216; // bytes that are asked for at most; also the bound of a state block
pub const MAX_SPEC: usize = 4096; // bytes of a spec line
pub const MAX_TEXT: usize = 4096; // bytes of a text
pub const MAX_TRIED: usize = 32; // replicas to avoid, of one query
pub const MAX_ANSWERS: usize = 16; // answers of one query
pub const MAX_PROBES: usize = 64; // IDs that lb_probes tells at once
pub const MAX_ENTRIES: usize = 64; // entries that lb_entries tells
pub const MAX_CANDIDATES: usize = 65536; // candidates; a guest may refuse fewer, as capacity

// one row of lb_candidates
pub const CANDIDATE_SIZE: usize = 32;
pub const CANDIDATE_ID: usize = 0; // u64: identity, the same for a replica's whole life; every value is valid
pub const CANDIDATE_WEIGHT: usize = 8; // u32: relative capacity; 0 counts as 1
pub const CANDIDATE_LOCALITY: usize = 12; // u32: number of its zone, 0 for none
pub const CANDIDATE_PRIORITY: usize = 16; // u8: lower is preferred
pub const CANDIDATE_STATUS: usize = 17; // u8: a status; another value is bad_config

// an answer to a query's own probe, one row of lb_answers
pub const ANSWER_SIZE: usize = 32;
pub const ANSWER_ID: usize = 0; // u64: identity
pub const ANSWER_LATENCY: usize = 8; // i64: nanoseconds, negative if unknown
pub const ANSWER_ASKED: usize = 16; // i64: instant at which the probe was sent
pub const ANSWER_RIF: usize = 24; // u32: requests in flight, as the replica says

// a replica's queries in flight, one row of lb_in_flight; since 1.2
pub const IN_FLIGHT_SIZE: usize = 16;
pub const IN_FLIGHT_ID: usize = 0; // u64: identity; one that is not in the fleet is passed over
pub const IN_FLIGHT_QUERIES: usize = 8; // u32: placed and not reported

// what lb_decide decided; the host reads it if the index is not negative
pub const DECISION_SIZE: usize = 64;
pub const DECISION_LATENCY: usize = 8; // i64: nanoseconds, of the entry that decided, negative if unknown, 0 if none decided
pub const DECISION_AGE: usize = 16; // i64: nanoseconds since that entry's receipt
pub const DECISION_INDEX: usize = 24; // u32: position in the candidates, as lb_decide returns it
pub const DECISION_OFFERED: usize = 28; // u32: entries of candidates that the query may go to; Cold and Hot add up to it
pub const DECISION_COLD: usize = 32; // u32: of those, at or below the threshold
pub const DECISION_HOT: usize = 36; // u32: of those, above it
pub const DECISION_THRESHOLD: usize = 40; // u32: RIF, all ones if there is none
pub const DECISION_RIF: usize = 44; // u32: of the entry that decided
pub const DECISION_USES_LEFT: usize = 48; // u32: of that entry
pub const DECISION_REGIME: usize = 52; // u8: a regime; direct for a policy without regimes
pub const DECISION_CAUSE: usize = 53; // u8: a cause if and only if the regime is fallback

// what a policy holds of a replica, one row of lb_entries, for display
pub const ENTRY_SIZE: usize = 64;
pub const ENTRY_ID: usize = 0; // u64: identity
pub const ENTRY_AT: usize = 8; // i64: instant of its receipt
pub const ENTRY_ASKED: usize = 16; // i64: instant at which its probe was sent
pub const ENTRY_LATENCY: usize = 24; // i64: nanoseconds, as ranked, negative if unknown
pub const ENTRY_RAW_LATENCY: usize = 32; // i64: nanoseconds, as reported, negative if unknown
pub const ENTRY_RIF: usize = 40; // u32: as ranked
pub const ENTRY_RAW_RIF: usize = 44; // u32: as reported
pub const ENTRY_USES: usize = 48; // u32: decisions that it may still inform
pub const ENTRY_ELIGIBLE: usize = 52; // u8: 1 if its replica may receive queries
pub const ENTRY_HOT: usize = 53; // u8: 1 if its RIF is above the threshold

// counters and settings in force, from lb_inspect; zeros will do
pub const INSPECT_SIZE: usize = 160;
pub const INSPECT_ADMITTED: usize = 0; // u64: count since lb_configure
pub const INSPECT_REPLACED: usize = 8; // u64: count since lb_configure
pub const INSPECT_EVICTED_OLDEST: usize = 16; // u64: count since lb_configure
pub const INSPECT_DROPPED_STALE: usize = 24; // u64: count since lb_configure
pub const INSPECT_REMOVED_WORST: usize = 32; // u64: count since lb_configure
pub const INSPECT_REMOVED_OLDEST: usize = 40; // u64: count since lb_configure
pub const INSPECT_EXPIRED: usize = 48; // u64: count since lb_configure
pub const INSPECT_EXHAUSTED: usize = 56; // u64: count since lb_configure
pub const INSPECT_FORGOTTEN: usize = 64; // u64: count since lb_configure
pub const INSPECT_DECISIONS: usize = 72; // u64: count since lb_configure
pub const INSPECT_FALLBACKS: usize = 80; // u64: count since lb_configure
pub const INSPECT_READINGS: usize = 88; // u64: count since lb_configure
pub const INSPECT_PROBES_DUE: usize = 96; // u64: count since lb_configure
pub const INSPECT_HELD_FIT: usize = 104; // u64: count since lb_configure
pub const INSPECT_POOL: usize = 112; // u32: entries held at most
pub const INSPECT_REMOVE: usize = 116; // u32: entries removed per query, in parts per 10,000
pub const INSPECT_REUSE: usize = 120; // u64: mean uses of an entry, in parts per 10,000
pub const INSPECT_THRESHOLD: usize = 128; // u32: RIF threshold in force, all ones if there is none
pub const INSPECT_WINDOW: usize = 132; // u32: readings in the window
pub const INSPECT_SHRUNK: usize = 136; // u8: 1 if the small-fleet rule is in force
pub const INSPECT_HELD: usize = 137; // u8: 1 if the last good budget serves a fleet outside its domain
pub const INSPECT_PROBES: usize = 140; // u32: probes of each query, 2 to MaxAnswers, if the policy decides on lb_answers; else 0; since 1.1
pub const INSPECT_WAIT: usize = 144; // u32: answers that such a decision weighs, 1 to Probes; since 1.1

// whether a replica may receive new queries: only a ready one may
pub const STATUS_READY: i32 = 0;
pub const STATUS_DRAINING: i32 = 1;
pub const STATUS_UNAVAILABLE: i32 = 2;

// how a query ended
pub const OUTCOME_SUCCESS: i32 = 0;
pub const OUTCOME_FAILURE: i32 = 1;
pub const OUTCOME_OVERLOADED: i32 = 2;
pub const OUTCOME_CANCELLED: i32 = 3;

// what became of a reading
pub const ADMISSION_NOT_KEPT: i32 = 0;
pub const ADMISSION_ADMITTED: i32 = 1;
pub const ADMISSION_REPLACED: i32 = 2;
pub const ADMISSION_EVICTED_OLDEST: i32 = 3;
pub const ADMISSION_DROPPED_STALE: i32 = 4;

// the branch of the rule that decided
pub const REGIME_DIRECT: i32 = 0;
pub const REGIME_COLD: i32 = 1;
pub const REGIME_HOT: i32 = 2;
pub const REGIME_FALLBACK: i32 = 3;
pub const REGIME_SPILL: i32 = 4;
pub const REGIME_PANIC: i32 = 5;

// why a decision fell back; trap is for the host to give
pub const CAUSE_NONE: i32 = 0;
pub const CAUSE_EMPTY: i32 = 1;
pub const CAUSE_THIN: i32 = 2;
pub const CAUSE_UNKNOWN: i32 = 3;
pub const CAUSE_TRAP: i32 = 4;

// codes of errors
pub const E_NO_CANDIDATES: i32 = -1;
pub const E_NONE_ELIGIBLE: i32 = -2;
pub const E_DUPLICATE_ENDPOINT: i32 = -3;
pub const E_UNKNOWN_ENDPOINT: i32 = -4;
pub const E_BAD_CONFIG: i32 = -5;
pub const E_CAPACITY: i32 = -6;
pub const E_OVERFLOW: i32 = -7;
pub const E_TOPOLOGY: i32 = -8;
pub const E_PANIC_REJECTED: i32 = -9;
pub const E_LOAD_OVERFLOW: i32 = -10;
pub const E_BAD_BLOCK: i32 = -11;
pub const E_INTERNAL: i32 = -100;
