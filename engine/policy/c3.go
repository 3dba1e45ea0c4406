package policy

import (
	"math/bits"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// C3 decides for the entry of the probe pool whose replica has the least score
//
//	R - M + q³ M    with    q = 1 + in_flight * clients + RIF
//
// where R is the response time that this client sees, M the latency and RIF the requests in
// flight that the replica reports, each an exponentially weighted moving average, and in_flight
// the queries that this client has open there. It is C3's replica ranking (Suresh, Canini,
// Schmid, Feldmann, NSDI 2015) as the Prequal paper uses it, without rate control. Pool,
// probing, reuse budget, expiry and removal are Prequal's; the worst entry has the greatest
// score. With fewer than min_pool entries on offer a uniform draw decides.
//
// A replica that this client has not heard an answer from counts as R = M. One that has not
// reported a latency counts as the lower median of those compared.
//
// Cost O(pool), whatever the fleet. Ties: the entry's RIF and latency, then the newer receipt,
// then a hash of seed and replica, so that clients do not agree on them. It fails as the engine
// does, when no candidate is open; under fit=strict it refuses a fleet outside its budget's
// domain.
type C3 struct {
	pooled
	clients uint64
	fresh   uint64 // weight of a new sample
	spec    string

	// Derived, by handle: a score changes only with a reading, a query or a report of its replica.
	scores [probe.MaxPool]c3Score
	stale  uint64 // to be worked out anew
	mute   uint64 // of replicas that have not reported a latency
}

// C3Config is everything that can be set of [C3]. Start from [DefaultC3].
type C3Config struct {
	PoolConfig
	Clients uint64 // that share the replicas: 1 to 1000000
	Alpha   uint64 // weight of a new sample in the averages: 0.01 to 1, in parts per 10,000
}

// DefaultC3 is one client, and the averages of C3's authors.
func DefaultC3(seed uint64) C3Config {
	return C3Config{PoolConfig: DefaultPool(seed), Clients: 1, Alpha: 9000}
}

// The words of a slot after the core's: averages, each plus one, or 0 for none.
const (
	c3RIF      = pooledSlot + iota // in parts of 1<<16
	c3Reported                     // nanoseconds
	c3Seen
	c3Slot
)

const (
	c3Parts  = 16
	mostTime = 1<<50 - 1 // thirteen days
	mostLoad = 1 << 26   // of q in parts of 1<<8
)

// NewC3 makes the policy, or says which setting is wrong.
func NewC3(c C3Config) (*C3, error) {
	v := bounds{policy: "c3"}
	v.whole("clients", int(min(c.Clients, 1<<31-1)), 1, 1_000_000)
	v.parts("alpha", c.Alpha, probe.Unit/100, probe.Unit)
	c.checkSize(&v)
	c.checkRates(&v)
	c.checkRest(&v)
	if err := v.err(); err != nil {
		return nil, err
	}
	p := &C3{clients: c.Clients, fresh: c.Alpha, spec: c.spec()}
	p.init("c3", c.PoolConfig, hotCold)
	return p, nil
}

func (s *settings) c3() C3Config {
	c := DefaultC3(s.uint64("seed", 0))
	c.Clients = s.uint64("clients", c.Clients)
	c.Alpha = s.parts("alpha", c.Alpha)
	s.poolSize(&c.PoolConfig)
	s.poolRates(&c.PoolConfig)
	s.poolRest(&c.PoolConfig)
	return c
}

func (c *C3Config) spec() string {
	d := DefaultC3(c.Seed)
	l := newLine("c3").seed(c.Seed)
	l.whole("clients", int(c.Clients), int(d.Clients))
	l.parts("alpha", c.Alpha, d.Alpha)
	c.printSize(l)
	c.printRates(l)
	c.printRest(l)
	return l.String()
}

// Spec is the canonical line.
func (p *C3) Spec() string { return p.spec }

// Layout asks for the averages too.
func (p *C3) Layout() engine.Layout { return engine.Layout{Fixed: p.words(), PerSlot: c3Slot} }

// Bind attaches the pool.
func (p *C3) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	p.attach(fixed, s, fresh)
	p.due = p.pool.Due(p.c.MaxAge)
	p.stale = 1<<64 - 1
}

// Moved carries the pool to the new slots.
func (p *C3) Moved(remap []int32) {
	p.pooled.Moved(remap)
	p.stale = 1<<64 - 1
}

// touch says that something of a replica has changed.
func (p *C3) touch(slot uint32) {
	if h, held := p.pool.Handle(slot); held {
		p.stale |= 1 << h
	}
}

// refresh works out the scores that have changed.
func (p *C3) refresh() {
	for stale := p.stale & p.pool.Used(); stale != 0; stale &= stale - 1 {
		h := uint32(bits.TrailingZeros64(stale))
		slot := p.pool.Slot(h)
		p.mute &^= 1 << h
		if p.set.Words(slot)[c3Reported] == 0 {
			p.mute |= 1 << h
			continue
		}
		p.scores[h] = p.score(slot, 1)
	}
	p.stale = 0
}

// average takes a sample into a word.
func (p *C3) average(w *uint64, sample uint64) {
	if *w == 0 {
		*w = sample + 1
		return
	}
	*w = (p.fresh*sample+(probe.Unit-p.fresh)*(*w-1)+probe.Unit/2)/probe.Unit + 1
}

// Record takes a reading into the pool and the averages, as ranked.
func (p *C3) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	a := p.pooled.Record(now, slot, rd)
	if a == engine.DroppedStale {
		return a
	}
	p.touch(slot)
	w := p.set.Words(slot)
	p.average(&w[c3RIF], uint64(p.incoming.RIF)<<c3Parts)
	if l := p.incoming.Latency; l != engine.UnknownLatency {
		p.average(&w[c3Reported], uint64(min(l, mostTime)))
	}
	return a
}

// Observe takes a response time into the average; a failure never lowers it.
func (p *C3) Observe(now engine.Instant, slot uint32, r engine.Report) {
	p.pooled.Observe(now, slot, r)
	p.touch(slot)
	if r.Latency < 0 || r.Outcome == engine.OutcomeCancelled {
		return
	}
	w, seen := &p.set.Words(slot)[c3Seen], uint64(min(r.Latency, mostTime))
	if r.Outcome == engine.OutcomeSuccess || *w == 0 || seen >= *w {
		p.average(w, seen)
	}
}

// score is in parts of 1/256 nanosecond; less is better. R - M + q³ M is never negative, as q is
// at least 1.
func (p *C3) score(slot uint32, standIn uint64) (s c3Score) {
	w := p.set.Words(slot)
	m := standIn
	if w[c3Reported] != 0 {
		m = w[c3Reported] - 1
	}
	r := m
	if w[c3Seen] != 0 {
		r = w[c3Seen] - 1
	}
	m = max(m, 1) // load counts among the fastest too
	q := min(1<<8+uint64(p.set.InFlight(slot))*p.clients<<8+(max(w[c3RIF], 1)-1)>>(c3Parts-8), mostLoad)
	hi, lo := bits.Mul64(q*q, q)
	cube := hi<<48 | lo>>16
	s.hi, s.lo = bits.Mul64(cube-1<<8, m)
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, r<<8, 0)
	s.hi += carry
	return s
}

type c3Score struct{ hi, lo uint64 }

func (s c3Score) less(t c3Score) bool { return s.hi < t.hi || s.hi == t.hi && s.lo < t.lo }

// standIn is what a latency that is not known counts as among some entries: the lower median of
// those that are, or a nanosecond.
func (p *C3) standIn(among uint64) uint64 {
	var known [probe.MaxPool]uint64
	n := 0
	for ; among != 0; among &= among - 1 {
		m := p.set.Words(p.pool.Slot(uint32(bits.TrailingZeros64(among))))[c3Reported]
		if m != 0 {
			known[n] = max(m-1, 1)
			n++
		}
	}
	if n == 0 {
		return 1
	}
	slices.Sort(known[:n])
	return known[(n-1)/2]
}

// find is the first of some entries, or the last; there is at least one.
func (p *C3) find(among uint64, last bool) (found uint32) {
	p.refresh()
	if among&p.mute != 0 {
		return p.findAmongMute(among, p.standIn(among), last)
	}
	found = uint32(bits.TrailingZeros64(among))
	best := p.scores[found]
	for among &= among - 1; among != 0; among &= among - 1 {
		h := uint32(bits.TrailingZeros64(among))
		s := p.scores[h&(probe.MaxPool-1)]
		if s != best && s.less(best) != last || s == best && p.earlier(h, found) != last {
			found, best = h, s
		}
	}
	return found
}

// findAmongMute is the same with a latency for those that have not reported one.
func (p *C3) findAmongMute(among, standIn uint64, last bool) (found uint32) {
	found = uint32(bits.TrailingZeros64(among))
	best := p.score(p.pool.Slot(found), standIn)
	for among &= among - 1; among != 0; among &= among - 1 {
		h := uint32(bits.TrailingZeros64(among))
		s := p.score(p.pool.Slot(h), standIn)
		if s != best && s.less(best) != last || s == best && p.earlier(h, found) != last {
			found, best = h, s
		}
	}
	return found
}

// earlier settles equal scores.
func (p *C3) earlier(i, j uint32) bool {
	a, la, ta := p.pool.Said(i)
	b, lb, tb := p.pool.Said(j)
	switch {
	case a != b:
		return a < b
	case la != lb:
		return la < lb
	case ta != tb:
		return ta > tb
	}
	return p.set.Tie(p.pool.Slot(i)) < p.set.Tie(p.pool.Slot(j))
}

// settle lets go what is due to leave, before a decision.
func (p *C3) settle(now engine.Instant) {
	p.h[wRemove] += p.b.removeRate
	if now >= p.due {
		p.expire(now)
	}
	for {
		switch p.nextRemoval() {
		case probe.Worst:
			p.pool.Remove(p.find(p.pool.Used(), true))
		case probe.Oldest:
			p.pool.RemoveOldest()
		default:
			return
		}
	}
}

// Decide applies the rule.
func (p *C3) Decide(now engine.Instant, _ engine.Key) error {
	p.h[wDecisions]++
	p.settle(now)
	open := p.pool.Open()
	n := bits.OnesCount64(open)
	if n < p.c.MinPool {
		p.fallback(n, n, engine.NoThreshold)
		p.touch(p.set.Out.Index)
		return nil
	}
	p.pool.Take(now, p.find(open, false), n, n)
	p.flat()
	p.touch(p.set.Out.Index)
	if d := &p.set.Out; d.Latency == engine.UnknownLatency {
		d.Latency = p.pool.Offered().Median // without the one that decided, which is not known
	}
	return nil
}

// Valid checks the averages too.
func (p *C3) Valid() bool {
	for slot := range uint32(p.set.Len()) {
		w := p.set.Words(slot)
		if w[c3RIF] > (1<<32)<<c3Parts || w[c3Reported] > mostTime+1 || w[c3Seen] > mostTime+1 {
			return false
		}
	}
	return p.pooled.Valid()
}
