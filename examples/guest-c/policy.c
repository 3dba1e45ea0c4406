/* A policy in C: two random choices, and the one with fewer queries in flight.

   `p2c seed=7`: of two distinct random draws among the replicas that a query may go to, the one that this client
   has fewer queries open on; of equals the first drawn. A draw costs the same for any fleet.

   Everything that a later answer depends on is in struct block, so that a host can copy it out of one guest and into
   another. What follows from the candidates (rows, table, eligible) is built anew from them. */
#include "abi.h"

enum { MOST = 8192, TABLE = 2 * MOST };

/* A word of slots: status above, queries in flight below. */
struct block {
	uint64_t magic, config, set, count, random;
	uint64_t slots[MOST];
};
enum { MAGIC = 0x70326301, HEAD = offsetof(struct block, slots) };

/* A fleet; the next one is built in the spare and takes over when it is found good. */
struct fleet {
	struct block block;
	lb_candidate_record rows[MOST];
	uint16_t table[TABLE]; /* slot + 1 by identity */
};

static struct fleet fleets[2], *here = &fleets[0];
static uint32_t eligible[MOST], eligibles; /* slots */
static lb_decision_record decision;
static uint8_t arena[MOST * sizeof(lb_candidate_record)] __attribute__((aligned(8)));
static char text[128];
static int32_t configured;

static int32_t say(int32_t code, const char *why)
{
	uint32_t n = 0;
	for (; why[n] && n < sizeof text - 1; n++)
		text[n] = why[n];
	text[n] = 0;
	return code;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* draw is a number below n, from the generator in the block. */
static uint32_t draw(uint32_t n)
{
	here->block.random += 0x9e3779b97f4a7c15;
	return (mix(here->block.random) >> 32) * n >> 32;
}

static uint32_t in_flight(uint32_t slot) { return (uint32_t)here->block.slots[slot]; }
static uint32_t status_of(uint32_t slot) { return here->block.slots[slot] >> 32; }

/* find is the slot of an identity, or -1; place is where it stands or would stand in the table. */
static int32_t find(const struct fleet *f, uint64_t id, uint32_t *place)
{
	uint32_t i = mix(id) % TABLE;
	for (; f->table[i]; i = (i + 1) % TABLE)
		if (f->rows[f->table[i] - 1].id == id)
			break;
	*place = i;
	return f->table[i] - 1;
}

static int32_t slot_of(uint64_t id)
{
	uint32_t place;
	return find(here, id, &place);
}

static int32_t unknown(void) { return say(LB_E_UNKNOWN_ENDPOINT, "this replica is not in the fleet"); }

/* refresh lists the eligible slots. */
static void refresh(void)
{
	eligibles = 0;
	for (uint32_t i = 0; i < here->block.count; i++)
		if (status_of(i) == LB_STATUS_READY)
			eligible[eligibles++] = i;
}

int32_t LB_EXPORT(lb_abi_version)(void) { return LB_VERSION; }
int32_t LB_EXPORT(lb_decision)(void) { return (int32_t)(uintptr_t)&decision; }
int32_t LB_EXPORT(lb_nothing)(void) { return 0; }

int32_t LB_EXPORT(lb_arena)(int32_t bytes)
{
	return (uint32_t)bytes <= sizeof arena ? (int32_t)(uintptr_t)arena : 0;
}

/* tell writes a text at the arena. */
static int32_t tell(const char *s)
{
	int32_t n = 0;
	for (; s[n]; n++)
		arena[n] = s[n];
	return n;
}

int32_t LB_EXPORT(lb_text)(void) { return tell(text); }
int32_t LB_EXPORT(lb_policies)(void) { return tell("p2c"); }

/* word takes a word off the spec line, if it is the next one. */
static int word(const char *want, const char **at, const char *end)
{
	const char *p = *at;
	for (; *want; want++, p++)
		if (p == end || *p != *want)
			return 0;
	*at = p;
	return 1;
}

int32_t LB_EXPORT(lb_configure)(int32_t bytes, int64_t salt)
{
	if (bytes < 0 || bytes > LB_MAX_SPEC)
		return say(LB_E_BAD_CONFIG, "p2c: the spec is too long");
	const char *at = (const char *)arena, *end = at + bytes;
	uint64_t seed = 0;
	if (!word("p2c", &at, end))
		return say(LB_E_BAD_CONFIG, "want p2c, or p2c seed=N");
	if (word(" seed=", &at, end)) {
		const char *first = at;
		for (; at < end && *at >= '0' && *at <= '9'; at++) {
			uint32_t digit = *at - '0';
			if (seed > (UINT64_MAX - digit) / 10)
				return say(LB_E_BAD_CONFIG, "p2c: seed: want a number below 2^64");
			seed = seed * 10 + digit;
		}
		if (at == first)
			return say(LB_E_BAD_CONFIG, "p2c: seed: want a number below 2^64");
	}
	if (at != end)
		return say(LB_E_BAD_CONFIG, "p2c: the only setting is seed, once");
	__builtin_memset(&here->block, 0, sizeof here->block);
	__builtin_memset(here->table, 0, sizeof here->table);
	here->block.magic = MAGIC;
	here->block.config = mix(seed ^ mix(salt));
	here->block.random = salt ? here->block.config : seed;
	refresh();
	configured = 1;

	say(0, "p2c seed=");
	char digits[20];
	uint32_t n = 0, to = 9;
	do
		digits[n++] = '0' + seed % 10;
	while (seed /= 10);
	while (n)
		text[to++] = digits[--n];
	text[to] = 0;
	return 0;
}

int32_t LB_EXPORT(lb_candidates)(int64_t now, int32_t count)
{
	if (!configured || (uint32_t)count > MOST)
		return say(LB_E_CAPACITY, "at most 8192 candidates, after lb_configure");
	const lb_candidate_record *in = (const lb_candidate_record *)arena;
	struct fleet *next = here == &fleets[0] ? &fleets[1] : &fleets[0];
	__builtin_memset(next->table, 0, sizeof next->table);
	__builtin_memcpy(&next->block, &here->block, HEAD);
	next->block.set = 0;
	next->block.count = count;
	for (int32_t i = 0; i < count; i++) {
		uint32_t place;
		next->rows[i] = in[i];
		if (in[i].status > LB_STATUS_UNAVAILABLE)
			return say(LB_E_BAD_CONFIG, "a candidate has a status that is none");
		if (find(next, in[i].id, &place) >= 0)
			return say(LB_E_DUPLICATE_ENDPOINT, "an identity stands twice in the fleet");
		next->table[place] = i + 1;
		next->block.set = mix(next->block.set ^ in[i].id) + i;
		int32_t old = slot_of(in[i].id); /* a replica that stays keeps its count, wherever it stands now */
		next->block.slots[i] = (uint64_t)in[i].status << 32 | (old < 0 ? 0 : in_flight(old));
	}
	here = next;
	refresh();
	return 0;
}

int32_t LB_EXPORT(lb_status)(int64_t now, int64_t id, int32_t status)
{
	int32_t slot = slot_of(id);
	if (slot < 0)
		return unknown();
	if ((uint32_t)status > LB_STATUS_UNAVAILABLE)
		return say(LB_E_BAD_CONFIG, "no such status");
	here->block.slots[slot] = (uint64_t)status << 32 | in_flight(slot);
	refresh();
	return 0;
}

int32_t LB_EXPORT(lb_decide)(int64_t now, int64_t key, int32_t tried)
{
	if ((uint32_t)tried > LB_MAX_TRIED)
		return say(LB_E_CAPACITY, "too many replicas tried");
	if (!here->block.count)
		return say(LB_E_NO_CANDIDATES, "the fleet is empty");

	/* Those tried go to the end of the eligible slots for this query. */
	const uint64_t *avoid = (const uint64_t *)arena;
	uint32_t open = eligibles, moved[LB_MAX_TRIED], moves = 0;
	for (int32_t t = 0; t < tried; t++)
		for (uint32_t i = 0; i < open; i++)
			if (here->rows[eligible[i]].id == avoid[t]) {
				uint32_t slot = eligible[i];
				eligible[i] = eligible[--open];
				eligible[open] = slot;
				moved[moves++] = i;
				break;
			}
	int32_t chosen = -1;
	if (open) {
		uint32_t a = draw(open), b = open > 1 ? draw(open - 1) : a;
		b += open > 1 && b >= a;
		a = eligible[a], b = eligible[b];
		chosen = in_flight(b) < in_flight(a) ? b : a;
	}
	while (moves) { /* and back, in reverse, so that nothing is left of it */
		uint32_t i = moved[--moves], slot = eligible[open];
		eligible[open++] = eligible[i];
		eligible[i] = slot;
	}
	if (chosen < 0)
		return say(LB_E_NONE_ELIGIBLE, "no replica is open to this query");
	if (in_flight(chosen) < UINT32_MAX)
		here->block.slots[chosen]++;
	decision = (lb_decision_record){.index = chosen, .threshold = UINT32_MAX, .regime = LB_REGIME_DIRECT};
	return chosen;
}

int32_t LB_EXPORT(lb_report)(int64_t now, int64_t id, int32_t outcome, int64_t latency)
{
	int32_t slot = slot_of(id);
	if (slot < 0)
		return unknown();
	if (in_flight(slot))
		here->block.slots[slot]--;
	return 0;
}

/* Readings of probes are not for this policy; it only says whether it knows the replica. */
int32_t LB_EXPORT(lb_record)(int64_t now, int64_t id, int32_t rif, int64_t latency, int64_t asked)
{
	return slot_of(id) < 0 ? unknown() : LB_ADMISSION_NOT_KEPT;
}

int32_t LB_EXPORT(lb_forget)(int64_t now, int64_t id, int64_t asked) { return slot_of(id) < 0 ? unknown() : 0; }
int32_t LB_EXPORT(lb_probes)(int64_t now) { return 0; }
int32_t LB_EXPORT(lb_entries)(int64_t now) { return 0; }

int32_t LB_EXPORT(lb_inspect)(void)
{
	__builtin_memset(arena, 0, sizeof(lb_inspect_record));
	return 0;
}

/* A guest that takes over from another is told what is in flight. */
int32_t LB_EXPORT(lb_in_flight)(int32_t count)
{
	const lb_in_flight_record *in = (const lb_in_flight_record *)arena;
	if ((uint32_t)count > sizeof arena / sizeof *in)
		return say(LB_E_CAPACITY, "more in-flight records than the arena holds");
	for (uint32_t i = 0; i < here->block.count; i++)
		here->block.slots[i] = (uint64_t)status_of(i) << 32;
	for (int32_t i = 0; i < count; i++) {
		int32_t slot = slot_of(in[i].id);
		if (slot >= 0)
			here->block.slots[slot] |= in[i].queries;
	}
	return 0;
}

int64_t LB_EXPORT(lb_block)(void)
{
	return (int64_t)(uintptr_t)&here->block << 32 | (HEAD + 8 * here->block.count);
}

int32_t LB_EXPORT(lb_restore)(int32_t bytes)
{
	struct block *b = &here->block;
	const struct block *in = (const struct block *)arena;
	if (bytes < 0 || (uint32_t)bytes != HEAD + 8 * b->count)
		return say(LB_E_BAD_BLOCK, "the block has another length");
	if (in->magic != b->magic || in->config != b->config || in->set != b->set || in->count != b->count)
		return say(LB_E_BAD_BLOCK, "the block is of another spec or fleet");
	for (uint32_t i = 0; i < b->count; i++)
		if (in->slots[i] >> 32 != status_of(i))
			return say(LB_E_BAD_BLOCK, "a status in the block differs");
	__builtin_memcpy(b, in, bytes);
	return 0;
}
