package policy_test

import (
	"math/big"
	"sort"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// scoreTwin is linear or c3 as one would write them for reading, over the same lists as
// Prequal's twin, with scores of any size. A fault planted in it must be noticed.
type scoreTwin struct {
	*twin
	linear          bool
	lambda, alpha   uint64
	clients, fresh  uint64
	rif, told, seen map[engine.ID]uint64
	open            map[engine.ID]uint64 // queries in flight
}

var linearFaults = []fault{
	"latency alone", "RIF alone", "alpha forgotten", "unknown latency ranks best", "ties by slot", "best is removed",
	"removal after the decision", "compensation forgotten", "charge forgotten", "tried ignored", "draining offered",
}

var c3Faults = []fault{
	"clients forgotten", "square for cube", "response time forgotten", "failure lowers", "last sample alone",
	"entry's RIF for the average", "in-flight forgotten", "ties by slot", "best is removed", "stale readings averaged",
}

func newScoreTwin(c *twin, linear bool) *scoreTwin {
	return &scoreTwin{
		twin: c, linear: linear, rif: map[engine.ID]uint64{}, told: map[engine.ID]uint64{}, seen: map[engine.ID]uint64{},
		open: map[engine.ID]uint64{},
	}
}

// score is what is compared; among are the entries it is compared with.
func (w *scoreTwin) score(e twinEntry, among []twinEntry) *big.Int {
	n := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	mul := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	if w.linear {
		lat := e.lat
		if lat == engine.UnknownLatency {
			if lat = median(among); lat == engine.UnknownLatency || w.is("unknown latency ranks best") {
				lat = 0
			}
		}
		lambda, alpha := w.lambda, w.alpha
		switch {
		case w.is("latency alone"):
			lambda = 0
		case w.is("RIF alone"):
			lambda = 10000
		case w.is("alpha forgotten"):
			alpha = 1
		}
		sum := mul(n(uint64(lat)), n(10000-lambda))
		sum.Add(sum, mul(mul(n(uint64(e.rif)), n(alpha)), n(lambda)))
		if most := n(1<<64 - 2); sum.Cmp(most) > 0 {
			return most
		}
		return sum
	}
	m, ok := w.told[e.id]
	if !ok {
		var known []uint64
		for _, x := range among {
			if v, ok := w.told[x.id]; ok {
				known = append(known, v)
			}
		}
		sort.Slice(known, func(i, j int) bool { return known[i] < known[j] })
		if m = 1; len(known) > 0 {
			m = max(1, known[(len(known)-1)/2])
		}
	}
	r, ok := w.seen[e.id]
	if !ok || w.is("response time forgotten") {
		r = m
	}
	m = max(m, 1)
	clients, rif, open := w.clients, w.rif[e.id]>>8, w.open[e.id]
	switch {
	case w.is("clients forgotten"):
		clients = 1
	case w.is("entry's RIF for the average"):
		rif = uint64(e.rif) << 8
	case w.is("in-flight forgotten"):
		open = 0
	}
	q := n(min(256+256*open*clients+rif, 1<<26))
	power := mul(mul(q, q), q)
	power.Rsh(power, 16)
	if w.is("square for cube") {
		power = mul(q, q)
		power.Rsh(power, 8)
	}
	s := mul(power.Sub(power, n(256)), n(m))
	return s.Add(s, mul(n(r), n(256)))
}

// first says which of two entries is better.
func (w *scoreTwin) first(a, b twinEntry, among []twinEntry) bool {
	if c := w.score(a, among).Cmp(w.score(b, among)); c != 0 {
		return c < 0
	}
	la, lb := a.lat, b.lat
	if w.linear { // an unknown one ranks as the median in every term
		m := median(among)
		if la == engine.UnknownLatency {
			la = m
		}
		if lb == engine.UnknownLatency {
			lb = m
		}
	}
	switch {
	case w.is("ties by slot"):
		i, _ := w.candidate(a.id)
		j, _ := w.candidate(b.id)
		return i < j
	case a.rif != b.rif:
		return a.rif < b.rif
	case la != lb:
		return la < lb
	case a.at != b.at:
		return a.at > b.at
	}
	return hash.Mix(uint64(a.id)^w.tie) < hash.Mix(uint64(b.id)^w.tie)
}

func (w *scoreTwin) removals() {
	_, rate, _, _ := w.plan()
	for w.remove += rate; w.remove >= 10000; w.remove -= 10000 {
		if len(w.pool) == 0 {
			w.remove %= 10000
			return
		}
		if w.oldest {
			w.take(w.firstIn())
			w.count.RemovedOldest++
		} else {
			worst := 0
			for i := range w.pool {
				if w.first(w.pool[worst], w.pool[i], w.pool) != w.is("best is removed") && i != worst {
					worst = i
				}
			}
			w.take(worst)
			w.count.RemovedWorst++
		}
		w.oldest = !w.oldest
	}
}

func (w *scoreTwin) decide(q engine.Query, d *engine.Decision) error {
	open, err := w.openSlots(&q)
	if err != nil {
		return err
	}
	w.expire()
	if !w.is("removal after the decision") {
		w.removals()
	}
	w.count.Decisions++
	w.probe += w.c.ProbeRate
	offered := w.offered(&q, open)
	*d = engine.Decision{Offered: uint32(len(offered)), Cold: uint32(len(offered)), Threshold: engine.NoThreshold}
	if len(offered) < w.c.MinPool {
		d.Index = uint32(open[w.draw(len(open))])
		d.ID, d.Regime, d.Cause = w.cs[d.Index].ID, engine.RegimeFallback, engine.CauseThin
		if len(offered) == 0 {
			d.Cause = engine.CauseEmpty
		}
		w.count.Fallbacks++
	} else {
		best := offered[0]
		for _, e := range offered {
			if e != best && w.first(e, best, offered) {
				best = e
			}
		}
		slot, _ := w.candidate(best.id)
		d.Index, d.ID, d.RIF, d.Latency, d.Age = uint32(slot), best.id, best.rif, best.lat, engine.Duration(w.now-best.at)
		if d.Latency == engine.UnknownLatency {
			d.Latency = median(offered)
		}
		for i := range w.pool {
			if w.pool[i].id != best.id {
				continue
			}
			if !w.is("charge forgotten") {
				w.pool[i].uses--
			}
			if d.UsesLeft = w.pool[i].uses; d.UsesLeft == 0 {
				w.take(i)
				w.count.Exhausted++
			}
			break
		}
	}
	w.compensate(d.ID)
	if w.is("removal after the decision") {
		w.removals()
	}
	w.open[d.ID]++
	return nil
}

func (w *scoreTwin) average(m map[engine.ID]uint64, id engine.ID, sample uint64) {
	if old, ok := m[id]; ok && !w.is("last sample alone") {
		sample = (w.fresh*sample + (10000-w.fresh)*old + 5000) / 10000
	}
	m[id] = sample
}

func (w *scoreTwin) record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	a, err := w.twin.record(now, id, rd)
	if err != nil || a == engine.DroppedStale && !w.is("stale readings averaged") {
		return a, err
	}
	for _, e := range w.pool {
		if e.id == id {
			w.average(w.rif, id, uint64(e.rif)<<16)
			if e.lat != engine.UnknownLatency {
				w.average(w.told, id, uint64(min(e.lat, 1<<50-1)))
			}
		}
	}
	return a, nil
}

func (w *scoreTwin) report(now engine.Instant, r engine.Report) error {
	if err := w.twin.report(now, r); err != nil {
		return err
	}
	if w.open[r.ID] > 0 {
		w.open[r.ID]--
	}
	if r.Latency < 0 || r.Outcome == engine.OutcomeCancelled {
		return nil
	}
	old, ok := w.seen[r.ID]
	if r.Outcome == engine.OutcomeSuccess || !ok || uint64(r.Latency) > old || w.is("failure lowers") {
		w.average(w.seen, r.ID, uint64(r.Latency))
	}
	return nil
}

func (w *scoreTwin) setCandidates(now engine.Instant, cs []engine.Candidate) {
	w.twin.setCandidates(now, cs)
	for _, m := range []map[engine.ID]uint64{w.rif, w.told, w.seen, w.open} {
		for id := range m {
			if _, ok := w.candidate(id); !ok {
				delete(m, id)
			}
		}
	}
}
