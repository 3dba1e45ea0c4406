/* The boundary between a host and a guest, see docs/abi.md.
   generated from wasm/abi; go test ./test -run ABI -update writes it */
#ifndef HEADROOM_ABI_H
#define HEADROOM_ABI_H

#include <stddef.h>
#include <stdint.h>

#define LB_VERSION (1 << 16 | 2)

#define LB_ARENA_MIN 8192 /* bytes that the arena holds at least */
#define LB_ARENA_MAX 16777216 /* bytes that are asked for at most; also the bound of a state block */
#define LB_MAX_SPEC 4096 /* bytes of a spec line */
#define LB_MAX_TEXT 4096 /* bytes of a text */
#define LB_MAX_TRIED 32 /* replicas to avoid, of one query */
#define LB_MAX_ANSWERS 16 /* answers of one query */
#define LB_MAX_PROBES 64 /* IDs that lb_probes tells at once */
#define LB_MAX_ENTRIES 64 /* entries that lb_entries tells */
#define LB_MAX_CANDIDATES 65536 /* candidates; a guest may refuse fewer, as capacity */

/* one row of lb_candidates */
typedef struct {
	uint64_t id; /* identity, the same for a replica's whole life; every value is valid */
	uint32_t weight; /* relative capacity; 0 counts as 1 */
	uint32_t locality; /* number of its zone, 0 for none */
	uint8_t priority; /* lower is preferred */
	uint8_t status; /* a status; another value is bad_config */
	uint8_t zero0[14];
} lb_candidate_record;
_Static_assert(sizeof(lb_candidate_record) == 32, "size of lb_candidate_record");
_Static_assert(offsetof(lb_candidate_record, id) == 0, "offset of id");
_Static_assert(offsetof(lb_candidate_record, weight) == 8, "offset of weight");
_Static_assert(offsetof(lb_candidate_record, locality) == 12, "offset of locality");
_Static_assert(offsetof(lb_candidate_record, priority) == 16, "offset of priority");
_Static_assert(offsetof(lb_candidate_record, status) == 17, "offset of status");

/* an answer to a query's own probe, one row of lb_answers */
typedef struct {
	uint64_t id; /* identity */
	int64_t latency; /* nanoseconds, negative if unknown */
	int64_t asked; /* instant at which the probe was sent */
	uint32_t rif; /* requests in flight, as the replica says */
	uint8_t zero0[4];
} lb_answer_record;
_Static_assert(sizeof(lb_answer_record) == 32, "size of lb_answer_record");
_Static_assert(offsetof(lb_answer_record, id) == 0, "offset of id");
_Static_assert(offsetof(lb_answer_record, latency) == 8, "offset of latency");
_Static_assert(offsetof(lb_answer_record, asked) == 16, "offset of asked");
_Static_assert(offsetof(lb_answer_record, rif) == 24, "offset of rif");

/* a replica's queries in flight, one row of lb_in_flight; since 1.2 */
typedef struct {
	uint64_t id; /* identity; one that is not in the fleet is passed over */
	uint32_t queries; /* placed and not reported */
	uint8_t zero0[4];
} lb_in_flight_record;
_Static_assert(sizeof(lb_in_flight_record) == 16, "size of lb_in_flight_record");
_Static_assert(offsetof(lb_in_flight_record, id) == 0, "offset of id");
_Static_assert(offsetof(lb_in_flight_record, queries) == 8, "offset of queries");

/* what lb_decide decided; the host reads it if the index is not negative */
typedef struct {
	uint8_t zero0[8];
	int64_t latency; /* nanoseconds, of the entry that decided, negative if unknown, 0 if none decided */
	int64_t age; /* nanoseconds since that entry's receipt */
	uint32_t index; /* position in the candidates, as lb_decide returns it */
	uint32_t offered; /* entries of candidates that the query may go to; Cold and Hot add up to it */
	uint32_t cold; /* of those, at or below the threshold */
	uint32_t hot; /* of those, above it */
	uint32_t threshold; /* RIF, all ones if there is none */
	uint32_t rif; /* of the entry that decided */
	uint32_t uses_left; /* of that entry */
	uint8_t regime; /* a regime; direct for a policy without regimes */
	uint8_t cause; /* a cause if and only if the regime is fallback */
	uint8_t zero1[10];
} lb_decision_record;
_Static_assert(sizeof(lb_decision_record) == 64, "size of lb_decision_record");
_Static_assert(offsetof(lb_decision_record, latency) == 8, "offset of latency");
_Static_assert(offsetof(lb_decision_record, age) == 16, "offset of age");
_Static_assert(offsetof(lb_decision_record, index) == 24, "offset of index");
_Static_assert(offsetof(lb_decision_record, offered) == 28, "offset of offered");
_Static_assert(offsetof(lb_decision_record, cold) == 32, "offset of cold");
_Static_assert(offsetof(lb_decision_record, hot) == 36, "offset of hot");
_Static_assert(offsetof(lb_decision_record, threshold) == 40, "offset of threshold");
_Static_assert(offsetof(lb_decision_record, rif) == 44, "offset of rif");
_Static_assert(offsetof(lb_decision_record, uses_left) == 48, "offset of uses_left");
_Static_assert(offsetof(lb_decision_record, regime) == 52, "offset of regime");
_Static_assert(offsetof(lb_decision_record, cause) == 53, "offset of cause");

/* what a policy holds of a replica, one row of lb_entries, for display */
typedef struct {
	uint64_t id; /* identity */
	int64_t at; /* instant of its receipt */
	int64_t asked; /* instant at which its probe was sent */
	int64_t latency; /* nanoseconds, as ranked, negative if unknown */
	int64_t raw_latency; /* nanoseconds, as reported, negative if unknown */
	uint32_t rif; /* as ranked */
	uint32_t raw_rif; /* as reported */
	uint32_t uses; /* decisions that it may still inform */
	uint8_t eligible; /* 1 if its replica may receive queries */
	uint8_t hot; /* 1 if its RIF is above the threshold */
	uint8_t zero0[10];
} lb_entry_record;
_Static_assert(sizeof(lb_entry_record) == 64, "size of lb_entry_record");
_Static_assert(offsetof(lb_entry_record, id) == 0, "offset of id");
_Static_assert(offsetof(lb_entry_record, at) == 8, "offset of at");
_Static_assert(offsetof(lb_entry_record, asked) == 16, "offset of asked");
_Static_assert(offsetof(lb_entry_record, latency) == 24, "offset of latency");
_Static_assert(offsetof(lb_entry_record, raw_latency) == 32, "offset of raw_latency");
_Static_assert(offsetof(lb_entry_record, rif) == 40, "offset of rif");
_Static_assert(offsetof(lb_entry_record, raw_rif) == 44, "offset of raw_rif");
_Static_assert(offsetof(lb_entry_record, uses) == 48, "offset of uses");
_Static_assert(offsetof(lb_entry_record, eligible) == 52, "offset of eligible");
_Static_assert(offsetof(lb_entry_record, hot) == 53, "offset of hot");

/* counters and settings in force, from lb_inspect; zeros will do */
typedef struct {
	uint64_t admitted; /* count since lb_configure */
	uint64_t replaced; /* count since lb_configure */
	uint64_t evicted_oldest; /* count since lb_configure */
	uint64_t dropped_stale; /* count since lb_configure */
	uint64_t removed_worst; /* count since lb_configure */
	uint64_t removed_oldest; /* count since lb_configure */
	uint64_t expired; /* count since lb_configure */
	uint64_t exhausted; /* count since lb_configure */
	uint64_t forgotten; /* count since lb_configure */
	uint64_t decisions; /* count since lb_configure */
	uint64_t fallbacks; /* count since lb_configure */
	uint64_t readings; /* count since lb_configure */
	uint64_t probes_due; /* count since lb_configure */
	uint64_t held_fit; /* count since lb_configure */
	uint32_t pool; /* entries held at most */
	uint32_t remove; /* entries removed per query, in parts per 10,000 */
	uint64_t reuse; /* mean uses of an entry, in parts per 10,000 */
	uint32_t threshold; /* RIF threshold in force, all ones if there is none */
	uint32_t window; /* readings in the window */
	uint8_t shrunk; /* 1 if the small-fleet rule is in force */
	uint8_t held; /* 1 if the last good budget serves a fleet outside its domain */
	uint8_t zero0[2];
	uint32_t probes; /* probes of each query, 2 to MaxAnswers, if the policy decides on lb_answers; else 0; since 1.1 */
	uint32_t wait; /* answers that such a decision weighs, 1 to Probes; since 1.1 */
	uint8_t zero1[12];
} lb_inspect_record;
_Static_assert(sizeof(lb_inspect_record) == 160, "size of lb_inspect_record");
_Static_assert(offsetof(lb_inspect_record, admitted) == 0, "offset of admitted");
_Static_assert(offsetof(lb_inspect_record, replaced) == 8, "offset of replaced");
_Static_assert(offsetof(lb_inspect_record, evicted_oldest) == 16, "offset of evicted_oldest");
_Static_assert(offsetof(lb_inspect_record, dropped_stale) == 24, "offset of dropped_stale");
_Static_assert(offsetof(lb_inspect_record, removed_worst) == 32, "offset of removed_worst");
_Static_assert(offsetof(lb_inspect_record, removed_oldest) == 40, "offset of removed_oldest");
_Static_assert(offsetof(lb_inspect_record, expired) == 48, "offset of expired");
_Static_assert(offsetof(lb_inspect_record, exhausted) == 56, "offset of exhausted");
_Static_assert(offsetof(lb_inspect_record, forgotten) == 64, "offset of forgotten");
_Static_assert(offsetof(lb_inspect_record, decisions) == 72, "offset of decisions");
_Static_assert(offsetof(lb_inspect_record, fallbacks) == 80, "offset of fallbacks");
_Static_assert(offsetof(lb_inspect_record, readings) == 88, "offset of readings");
_Static_assert(offsetof(lb_inspect_record, probes_due) == 96, "offset of probes_due");
_Static_assert(offsetof(lb_inspect_record, held_fit) == 104, "offset of held_fit");
_Static_assert(offsetof(lb_inspect_record, pool) == 112, "offset of pool");
_Static_assert(offsetof(lb_inspect_record, remove) == 116, "offset of remove");
_Static_assert(offsetof(lb_inspect_record, reuse) == 120, "offset of reuse");
_Static_assert(offsetof(lb_inspect_record, threshold) == 128, "offset of threshold");
_Static_assert(offsetof(lb_inspect_record, window) == 132, "offset of window");
_Static_assert(offsetof(lb_inspect_record, shrunk) == 136, "offset of shrunk");
_Static_assert(offsetof(lb_inspect_record, held) == 137, "offset of held");
_Static_assert(offsetof(lb_inspect_record, probes) == 140, "offset of probes");
_Static_assert(offsetof(lb_inspect_record, wait) == 144, "offset of wait");

/* whether a replica may receive new queries: only a ready one may */
enum {
	LB_STATUS_READY = 0,
	LB_STATUS_DRAINING = 1,
	LB_STATUS_UNAVAILABLE = 2,
};

/* how a query ended */
enum {
	LB_OUTCOME_SUCCESS = 0,
	LB_OUTCOME_FAILURE = 1,
	LB_OUTCOME_OVERLOADED = 2,
	LB_OUTCOME_CANCELLED = 3,
};

/* what became of a reading */
enum {
	LB_ADMISSION_NOT_KEPT = 0,
	LB_ADMISSION_ADMITTED = 1,
	LB_ADMISSION_REPLACED = 2,
	LB_ADMISSION_EVICTED_OLDEST = 3,
	LB_ADMISSION_DROPPED_STALE = 4,
};

/* the branch of the rule that decided */
enum {
	LB_REGIME_DIRECT = 0,
	LB_REGIME_COLD = 1,
	LB_REGIME_HOT = 2,
	LB_REGIME_FALLBACK = 3,
	LB_REGIME_SPILL = 4,
	LB_REGIME_PANIC = 5,
};

/* why a decision fell back; trap is for the host to give */
enum {
	LB_CAUSE_NONE = 0,
	LB_CAUSE_EMPTY = 1,
	LB_CAUSE_THIN = 2,
	LB_CAUSE_UNKNOWN = 3,
	LB_CAUSE_TRAP = 4,
};

/* codes of errors */
enum {
	LB_E_NO_CANDIDATES = -1,
	LB_E_NONE_ELIGIBLE = -2,
	LB_E_DUPLICATE_ENDPOINT = -3,
	LB_E_UNKNOWN_ENDPOINT = -4,
	LB_E_BAD_CONFIG = -5,
	LB_E_CAPACITY = -6,
	LB_E_OVERFLOW = -7,
	LB_E_TOPOLOGY = -8,
	LB_E_PANIC_REJECTED = -9,
	LB_E_LOAD_OVERFLOW = -10,
	LB_E_BAD_BLOCK = -11,
	LB_E_INTERNAL = -100,
};

#define LB_EXPORT(name) __attribute__((export_name(#name))) name

/* major << 16 | minor; called before all else */
int32_t lb_abi_version(void);

/* makes the arena hold at least so many bytes, up to ArenaMax; returns its address, which holds until the next call of this function, or 0 if there is no room for so many */
int32_t lb_arena(int32_t bytes);

/* takes the spec line, so many bytes at the arena, and a salt for the seed, 0 for none; returns a code; lb_text then tells the canonical spec or the reason */
int32_t lb_configure(int32_t bytes, int64_t salt);

/* takes the instant and so many candidate records at the arena; returns a code; the old set stands on an error */
int32_t lb_candidates(int64_t now, int32_t count);

/* takes the instant, a replica's ID and its status; returns a code */
int32_t lb_status(int64_t now, int64_t id, int32_t status);

/* takes the instant, the affinity key, and a count of tried IDs at the arena; returns the candidate's index, with the decision record where lb_decision says, or a code */
int32_t lb_decide(int64_t now, int64_t key, int32_t tried);

/* returns the address of the decision record, which holds until the next lb_configure */
int32_t lb_decision(void);

/* takes the instant, a replica's ID, the outcome and the latency, negative if unknown; returns a code */
int32_t lb_report(int64_t now, int64_t id, int32_t outcome, int64_t latency);

/* takes the instant, a replica's ID, its RIF, its latency, negative if unknown, and the instant it was asked; returns an admission, or a code */
int32_t lb_record(int64_t now, int64_t id, int32_t rif, int64_t latency, int64_t asked);

/* optional, since 1.1: takes the instant, a replica's ID, its utilisation in parts per 10,000, and its queries and errors per second in thousandths; returns a code; a guest without it does not hear of load */
int32_t lb_load(int64_t now, int64_t id, int32_t utilization, int32_t qps, int32_t eps);

/* optional, since 1.1: takes a count of answer records at the arena, which belong to the next lb_decide; returns a code; a guest without it cannot probe for single queries */
int32_t lb_answers(int32_t count);

/* takes the instant, a replica's ID whose probe failed, and the instant it was asked; returns a code */
int32_t lb_forget(int64_t now, int64_t id, int64_t asked);

/* takes the instant; returns how many IDs stand at the arena, at most MaxProbes: the replicas due, or of a synchronous guest those to probe for one query */
int32_t lb_probes(int64_t now);

/* takes the instant; returns how many entry records stand at the arena, at most MaxEntries */
int32_t lb_entries(int64_t now);

/* returns 0, with the inspection record at the arena */
int32_t lb_inspect(void);

/* address << 32 | length in bytes of the state block, valid until the candidates change or a block is restored */
int64_t lb_block(void);

/* takes a state block, so many bytes at the arena; returns a code; the old state stands on an error */
int32_t lb_restore(int32_t bytes);

/* optional, since 1.2: takes a count of in-flight records at the arena, which replace the counts of all queries in flight, none for who is not named; returns a code; a guest without it starts anew after a failure or a swap */
int32_t lb_in_flight(int32_t count);

/* returns the length of the last text, which it writes at the arena */
int32_t lb_text(void);

/* optional, returns the length of the names of the policies this module knows, one a line, which it writes at the arena */
int32_t lb_policies(void);

/* optional, returns 0 and does nothing: the price of a call */
int32_t lb_nothing(void);

#endif
