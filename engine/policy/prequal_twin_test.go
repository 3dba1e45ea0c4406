package policy_test

import (
	"sort"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
	"github.com/headroom-lb/headroom/engine/internal/prng"
	"github.com/headroom-lb/headroom/engine/policy"
)

// twin is Prequal as the design states it, written for reading: lists, full sorts, no state
// kept that could be worked out anew. A fault planted in it must be noticed.
type twin struct {
	c       policy.PrequalConfig
	fault   fault
	now     engine.Instant
	started bool
	first   engine.Instant
	rand    uint64
	tie     uint64
	cs      []engine.Candidate
	pool    []twinEntry
	window  []twinReading
	remove  uint64
	oldest  bool
	probe   uint64
	probed  bool
	probeAt engine.Instant
	errs    aversionTwin
	count   engine.Counters
	keen    *keenTwin // nil but for the keen variant
}

type twinEntry struct {
	id        engine.ID
	at, asked engine.Instant
	rif       uint32
	lat       engine.Duration
	rawRIF    uint32 // as reported
	rawLat    engine.Duration
	uses      uint32
	seq       int
}

type twinReading struct {
	at  engine.Instant
	rif uint32
}

type fault string

// faults are the mistakes that others made or could make; see the design, section 6.
var faults = []fault{
	"threshold ranked over the pool", "hot at the threshold", "order of hot and cold swapped", "cold by RIF",
	"entry of exactly max_age counts", "charge forgotten", "compensation forgotten", "fallback does not compensate",
	"removal after the decision", "removal always worst", "removal always oldest", "turn moves without a removal",
	"duplicates kept", "late answers win", "newest evicted", "tried ignored", "draining offered",
	"unknown latency ranks best", "ties by slot", "window without age", "quantile rounded down",
	"stale reading skips the window", "budget always rounded down", "failure keeps its entry", "thin pool decides",
	"probes with replacement", "charged twice", "compensated twice", "every entry compensated", "hot by latency",
	"entries never age", "pool without a bound", "budget always rounded up", "rest of the probe credit lost",
	"rest of the removal credit lost", "latency in units of its own", "names settle", "clients agree on ties", "quantile turned round",
}

func newTwin(c policy.PrequalConfig) *twin {
	return &twin{c: c, rand: c.Seed, tie: hash.Mix(c.Seed + 1), errs: newAversionTwin()}
}

func (w *twin) is(f fault) bool { return w.fault == f }

func (w *twin) tick(now engine.Instant) engine.Instant {
	if !w.started {
		w.started, w.first, w.now = true, now, now
	}
	w.now = max(w.now, now)
	return w.now
}

func (w *twin) candidate(id engine.ID) (int, bool) {
	for i, c := range w.cs {
		if c.ID == id {
			return i, true
		}
	}
	return 0, false
}

func (w *twin) eligible() (slots []int) {
	for i, c := range w.cs {
		if c.Status.Eligible() {
			slots = append(slots, i)
		}
	}
	return slots
}

// plan is the pool, the removal rate and the reuse budget in force.
func (w *twin) plan() (pool int, remove, num, den uint64) {
	n, c := len(w.eligible()), w.c
	if c.Reuse != 0 {
		return c.Pool, c.RemoveRate, c.Reuse, 10000
	}
	if n == 0 {
		return c.Pool, c.RemoveRate, 1, 1
	}
	pool, remove = c.Pool, c.RemoveRate
	num, den = (10000+c.Delta)*uint64(n), 0
	if n > c.Pool && (n-c.Pool)*int(c.ProbeRate) > n*int(c.RemoveRate) && int(c.RemoveRate) <= 10000*(c.Pool-c.MinPool) {
		den = uint64((n-c.Pool)*int(c.ProbeRate) - n*int(c.RemoveRate))
	} else {
		pool = min(max(n/2, c.MinPool+1), c.Pool)
		inflow := max(n-pool, 0) * int(c.ProbeRate) / n
		remove = uint64(min(max(inflow-5000, 0), int(c.RemoveRate), 10000*(pool-c.MinPool)))
		num, den = 10000+c.Delta, uint64(max(inflow-int(remove), 2000))
	}
	if num < den {
		num, den = 1, 1
	}
	return pool, remove, num, den
}

func (w *twin) trim() {
	pool, _, _, _ := w.plan()
	for len(w.pool) > pool {
		w.take(w.firstIn())
		w.count.EvictedOldest++
	}
}

func (w *twin) take(i int) { w.pool = append(w.pool[:i:i], w.pool[i+1:]...) }

func (w *twin) firstIn() int {
	at := 0
	for i, e := range w.pool {
		if e.seq < w.pool[at].seq {
			at = i
		}
	}
	return at
}

func (w *twin) setCandidates(now engine.Instant, cs []engine.Candidate) {
	w.tick(now)
	w.cs = append([]engine.Candidate(nil), cs...)
	var kept []twinEntry
	for _, e := range w.pool {
		if _, ok := w.candidate(e.id); ok {
			kept = append(kept, e)
		}
	}
	w.pool = kept
	for id := range w.errs.past {
		if _, ok := w.candidate(id); !ok {
			delete(w.errs.past, id)
		}
	}
	if w.keen != nil {
		for id := range w.keen.past {
			if _, ok := w.candidate(id); !ok {
				delete(w.keen.past, id)
			}
		}
	}
	w.trim()
}

func (w *twin) setStatus(now engine.Instant, id engine.ID, s engine.Status) {
	w.tick(now)
	if i, ok := w.candidate(id); ok && w.cs[i].Status != s {
		w.cs[i].Status = s
		w.trim()
	}
}

func (w *twin) expire() {
	for i := len(w.pool) - 1; i >= 0 && !w.is("entries never age"); i-- {
		age := engine.Duration(w.now - w.pool[i].at)
		if age > w.c.MaxAge || age == w.c.MaxAge && !w.is("entry of exactly max_age counts") {
			w.take(i)
			w.count.Expired++
		}
	}
	for len(w.window) > 0 && engine.Duration(w.now-w.window[0].at) >= w.c.WindowAge && !w.is("window without age") {
		w.window = w.window[1:]
	}
}

func (w *twin) threshold() uint32 {
	var v []int
	for _, r := range w.window {
		v = append(v, int(r.rif))
	}
	if w.is("threshold ranked over the pool") {
		v = nil
		for _, e := range w.pool {
			v = append(v, int(e.rif))
		}
	}
	if len(v) == 0 || w.c.Quantile == 10000 {
		return engine.NoThreshold
	}
	sort.Ints(v)
	rank := (int(w.c.Quantile)*len(v) + 9999) / 10000
	if w.is("quantile turned round") {
		rank = ((10000-int(w.c.Quantile))*len(v) + 9999) / 10000
	}
	if w.is("quantile rounded down") {
		rank = int(w.c.Quantile) * len(v) / 10000
	}
	return uint32(v[max(rank, 1)-1])
}

func (w *twin) hot(rif uint32) bool {
	t := w.threshold()
	if t == engine.NoThreshold {
		return false
	}
	return rif > t || rif == t && w.is("hot at the threshold")
}

// before is the total order.
func (w *twin) before(a, b twinEntry, median engine.Duration) bool {
	known := func(l engine.Duration) engine.Duration {
		if l == engine.UnknownLatency && !w.is("unknown latency ranks best") {
			return median
		}
		return l
	}
	a.lat, b.lat = known(a.lat), known(b.lat)
	ha, hb := w.hot(a.rif), w.hot(b.rif)
	if ha != hb {
		return hb != w.is("order of hot and cold swapped")
	}
	if (ha && !w.is("hot by latency") && !w.is("hot by weight") || w.is("cold by RIF")) && a.rif != b.rif {
		return a.rif < b.rif
	}
	if w.keen != nil {
		if c := w.weight(a).Cmp(w.weight(b)); c != 0 {
			return c < 0
		}
		if a.rif != b.rif {
			return a.rif < b.rif
		}
	}
	if w.is("latency in units of its own") {
		a.lat, b.lat = a.lat/5, b.lat/5
	}
	if w.is("names settle") && a.id%2 != b.id%2 {
		return a.id%2 == 0
	}
	if a.lat != b.lat {
		return a.lat < b.lat
	}
	if a.rif != b.rif {
		return a.rif < b.rif
	}
	if a.at != b.at {
		return a.at > b.at
	}
	if w.is("ties by slot") {
		i, _ := w.candidate(a.id)
		j, _ := w.candidate(b.id)
		return i < j
	}
	tie := w.tie
	if w.is("clients agree on ties") {
		tie = 0
	}
	return hash.Mix(uint64(a.id)^tie) < hash.Mix(uint64(b.id)^tie)
}

func median(es []twinEntry) engine.Duration {
	var known []int
	for _, e := range es {
		if e.lat != engine.UnknownLatency {
			known = append(known, int(e.lat))
		}
	}
	if len(known) == 0 {
		return engine.UnknownLatency
	}
	sort.Ints(known)
	return engine.Duration(known[(len(known)-1)/2])
}

func (w *twin) removals() {
	_, rate, _, _ := w.plan()
	for w.remove += rate; w.remove >= 10000; w.remove -= 10000 {
		if len(w.pool) == 0 {
			w.remove %= 10000
			if w.is("turn moves without a removal") {
				w.oldest = !w.oldest
			}
			return
		}
		if (w.oldest || w.is("removal always oldest")) && !w.is("removal always worst") {
			w.take(w.firstIn())
			w.count.RemovedOldest++
		} else {
			worst, m := 0, median(w.pool)
			for i := range w.pool {
				if w.before(w.pool[worst], w.pool[i], m) {
					worst = i
				}
			}
			w.take(worst)
			w.count.RemovedWorst++
		}
		w.oldest = !w.oldest
	}
	if w.is("rest of the removal credit lost") {
		w.remove = 0
	}
}

func (w *twin) draw(n int) int { return int(prng.Below(&w.rand, uint32(n))) }

func (w *twin) compensate(id engine.ID) {
	for i := range w.pool {
		if w.is("compensation forgotten") || w.pool[i].id != id && !w.is("every entry compensated") {
			continue
		}
		w.pool[i].rif++
		if w.is("compensated twice") {
			w.pool[i].rif++
		}
	}
}
