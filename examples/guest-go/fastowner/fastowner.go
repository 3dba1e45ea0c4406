// Package fastowner is a policy for replicas with caches: a key stays with the replica that has it
// cached for as long as that one is not much slower than the others that might have it.
//
// Each key has a few owners, those with the highest rendezvous scores. The first owner serves it,
// unless its cost is more than spill times that of the cheapest owner; then the cheapest does, and
// the regime says spill. Cost is the estimated latency times the queries that this client would
// then have in flight there. So a hot key spills over a few replicas, always the same ones, and a
// slow replica loses its keys to their second owners only.
//
// A decision costs one pass over the candidates, and no allocation. Only the keys of a replica that
// comes or goes move. A query without a key gets owners of its own by a draw.
package fastowner

import (
	"strconv"
	"strings"

	"github.com/headroom-lb/headroom/engine"
)

// Name is the policy's name in specs.
const Name = "fast_owner"

// Bounds of the settings and of what costs are made of: no product of them overflows.
const (
	mostOwners  = 8
	mostSpill   = 1000 // hundredths
	mostLatency = 1<<36 - 1
	mostQueries = 1 << 16
)

// Config is everything that can be set of a [Policy].
type Config struct {
	Seed     uint64
	Owners   int             // of a key: 1 to 8
	Spill    uint64          // hundredths: how much dearer than the cheapest owner the first may be, 100 to 1000
	HalfLife engine.Duration // after which an estimate that nothing renews counts half: 1ms to 1h
}

// Default is the usual setting.
func Default() Config { return Config{Owners: 3, Spill: 200, HalfLife: 10 * engine.Second} }

// Policy is the rule. What it keeps of a replica are two words of the machine's state.
type Policy struct {
	engine.Base
	c Config
}

// The words of a slot. Both are zero before the first sample.
const (
	estimateWord = iota // nanoseconds
	sampledWord         // when
	words
)

// New makes the policy, or says which setting is wrong.
func New(c Config) (*Policy, error) {
	switch {
	case c.Owners < 1 || c.Owners > mostOwners:
		return nil, &engine.ConfigError{Policy: Name, Key: "owners", Value: strconv.Itoa(c.Owners), Reason: "want 1 to 8"}
	case c.Spill < 100 || c.Spill > mostSpill:
		return nil, &engine.ConfigError{Policy: Name, Key: "spill", Value: hundredths(c.Spill), Reason: "want 1 to 10, with two digits after the point at most"}
	case c.HalfLife < engine.Millisecond || c.HalfLife > 3600*engine.Second:
		return nil, &engine.ConfigError{Policy: Name, Key: "half_life", Value: strconv.FormatInt(int64(c.HalfLife/engine.Millisecond), 10), Reason: "want 1 to 3600000 milliseconds"}
	}
	return &Policy{c: c}, nil
}

// Parse reads a spec line, as in "fast_owner owners=3 spill=2 half_life=10000".
func Parse(spec string) (engine.Policy, error) {
	words := strings.Fields(spec)
	if len(words) == 0 || words[0] != Name {
		return nil, &engine.ConfigError{Policy: spec, Reason: "want " + Name}
	}
	c, seen := Default(), map[string]bool{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		bad := &engine.ConfigError{Policy: Name, Key: key, Value: value, Reason: "want a whole number"}
		if seen[key] {
			bad.Reason = "given twice"
			return nil, bad
		}
		seen[key] = true
		if key == "spill" {
			n, ok := parseHundredths(value)
			if !ok {
				bad.Reason = "want 1 to 10, with two digits after the point at most"
				return nil, bad
			}
			c.Spill = n
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil, bad
		}
		switch key {
		case "seed":
			c.Seed = n
		case "owners":
			c.Owners = int(min(n, mostOwners+1))
		case "half_life":
			c.HalfLife = engine.Duration(min(n, 1<<40)) * engine.Millisecond
		default:
			bad.Reason = "no such setting: want seed, owners, spill or half_life"
			return nil, bad
		}
	}
	return New(c)
}

func hundredths(n uint64) string {
	s := strconv.FormatUint(n/100, 10)
	if rest := n % 100; rest > 0 {
		s = strings.TrimRight(s+"."+strconv.FormatUint(rest/10, 10)+strconv.FormatUint(rest%10, 10), "0")
	}
	return s
}

func parseHundredths(s string) (uint64, bool) {
	whole, rest, _ := strings.Cut(s, ".")
	if len(rest) > 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+(rest + "00")[:2], 10, 16)
	return n, err == nil
}

// Name is "fast_owner".
func (*Policy) Name() string { return Name }

// Seed starts the draws for queries without a key. It moves no key: all clients agree on owners.
func (p *Policy) Seed() uint64 { return p.c.Seed }

// Spec is the canonical line: every setting, so that it reads alike whatever the defaults become.
func (p *Policy) Spec() string {
	return Name + " seed=" + strconv.FormatUint(p.c.Seed, 10) + " owners=" + strconv.Itoa(p.c.Owners) +
		" spill=" + hundredths(p.c.Spill) + " half_life=" + strconv.FormatInt(int64(p.c.HalfLife/engine.Millisecond), 10)
}

// Layout asks for an estimate per replica. In-flight counts are the engine's.
func (*Policy) Layout() engine.Layout { return engine.Layout{PerSlot: words} }

// owner is a candidate for a key.
type owner struct {
	slot        uint32
	score, cost uint64
}

// Decide takes the first owner, or the cheapest if that one is much dearer.
func (p *Policy) Decide(now engine.Instant, key engine.Key) error {
	var buf [mostOwners]owner
	owners := p.owners(key, &buf)
	p.price(now, owners)
	at := p.choose(owners)
	if at == 0 {
		p.Set.Choose(owners[at].slot, engine.RegimeDirect)
	} else {
		p.Set.Choose(owners[at].slot, engine.RegimeSpill)
	}
	return nil
}

// owners are the open candidates with the highest scores for a key, best first.
func (p *Policy) owners(key engine.Key, buf *[mostOwners]owner) []owner {
	k := uint64(key)
	if k == 0 {
		k = p.Set.Bits()
	}
	k = mix(k)
	n := 0
	for _, slot := range p.Set.EligibleSlots() {
		score := mix(k ^ uint64(p.Set.ID(slot)))
		if n == p.c.Owners && score <= buf[n-1].score || p.Set.AnyTried() && !p.Set.IsOpen(slot) {
			continue
		}
		i := min(n, p.c.Owners-1)
		for ; i > 0 && buf[i-1].score < score; i-- {
			buf[i] = buf[i-1]
		}
		buf[i] = owner{slot: slot, score: score}
		n = min(n+1, p.c.Owners)
	}
	return buf[:n]
}

// price fills in the costs. One that has no estimate counts as fast as the fastest that has: it
// neither attracts keys nor loses them.
func (p *Policy) price(now engine.Instant, owners []owner) {
	fastest := uint64(mostLatency)
	for i := range owners {
		owners[i].cost = p.estimate(now, owners[i].slot)
		if owners[i].cost > 0 {
			fastest = min(fastest, owners[i].cost)
		}
	}
	for i := range owners {
		o := &owners[i]
		if o.cost == 0 {
			o.cost = fastest
		}
		o.cost *= min(uint64(p.Set.InFlight(o.slot))+1, mostQueries)
	}
}

// estimate is a replica's latency, halved for each half-life since its last sample; 0 if there is none.
func (p *Policy) estimate(now engine.Instant, slot uint32) uint64 {
	w := p.Set.Words(slot)
	if w[estimateWord] == 0 {
		return 0
	}
	age := uint64(now-engine.Instant(w[sampledWord])) / uint64(p.c.HalfLife)
	return max(1, w[estimateWord]>>min(age, 63))
}

func (p *Policy) choose(owners []owner) int {
	cheapest := 0
	for i := range owners {
		if owners[i].cost < owners[cheapest].cost {
			cheapest = i
		}
	}
	if owners[0].cost*100 > owners[cheapest].cost*p.c.Spill {
		return cheapest
	}
	return 0
}

// Observe averages a latency in, an eighth at a time. A failure counts as twice the estimate, so that
// failing fast attracts nothing.
func (p *Policy) Observe(now engine.Instant, slot uint32, r engine.Report) {
	sample := uint64(max(1, min(r.Latency, mostLatency)))
	old := p.estimate(now, slot)
	switch {
	case r.Outcome == engine.OutcomeSuccess && r.Latency >= 0:
	case r.Outcome == engine.OutcomeFailure || r.Outcome == engine.OutcomeOverloaded:
		sample = max(sample, 2*old, uint64(engine.Millisecond))
	default:
		return
	}
	if old > 0 {
		sample = (7*old + sample) / 8
	}
	w := p.Set.Words(slot)
	w[estimateWord], w[sampledWord] = min(max(1, sample), mostLatency), uint64(now)
}

// Explain weighs the owners.
func (p *Policy) Explain(now engine.Instant, key engine.Key, x *engine.Explanation) {
	var buf [mostOwners]owner
	owners := p.owners(key, &buf)
	p.price(now, owners)
	for _, o := range owners {
		x.Weigh(p.Set, o.slot, o.cost)
	}
	x.Unit = "nanoseconds of estimated latency times queries in flight"
	x.Because = "is the first owner of the key"
	if at := p.choose(owners); at != 0 {
		x.Because = "is the cheapest of the key's " + strconv.Itoa(len(owners)) + " owners, and the first costs more than " + hundredths(p.c.Spill) + " times as much"
	}
}

// Valid refuses words that Observe never writes.
func (p *Policy) Valid() bool {
	for slot := range uint32(p.Set.Len()) {
		w := p.Set.Words(slot)
		switch {
		case w[estimateWord] == 0 && w[sampledWord] != 0, w[estimateWord] > mostLatency,
			w[estimateWord] != 0 && engine.Instant(w[sampledWord]) > p.Set.Last():
			return false
		}
	}
	return true
}

// mix is the finalizer of SplitMix64: every bit of the result depends on every bit of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
