package policy_test

import (
	"errors"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// openSlots are those that a query may go to.
func (w *twin) openSlots(q *engine.Query) (open []int, err error) {
	w.tick(q.Now)
	for _, slot := range w.eligible() {
		if !slices.Contains(q.Tried, w.cs[slot].ID) || w.is("tried ignored") {
			open = append(open, slot)
		}
	}
	if len(w.cs) == 0 {
		return nil, engine.ErrNoCandidates
	}
	if len(open) == 0 {
		return nil, engine.ErrNoneEligible
	}
	return open, nil
}

// offered is the entries of those slots.
func (w *twin) offered(q *engine.Query, open []int) (offered []twinEntry) {
	for _, e := range w.pool {
		slot, _ := w.candidate(e.id)
		if slices.Contains(open, slot) || w.is("draining offered") && !slices.Contains(q.Tried, e.id) {
			offered = append(offered, e)
		}
	}
	return offered
}

func (w *twin) decide(q engine.Query, d *engine.Decision) error {
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
	*d = engine.Decision{Offered: uint32(len(offered)), Threshold: w.threshold()}
	for _, e := range offered {
		if w.hot(e.rif) {
			d.Hot++
		} else {
			d.Cold++
		}
	}
	least := w.c.MinPool
	if w.is("thin pool decides") {
		least = 1
	}
	if len(offered) < least {
		d.Index = uint32(open[w.draw(len(open))])
		d.ID, d.Regime, d.Cause = w.cs[d.Index].ID, engine.RegimeFallback, engine.CauseThin
		if len(offered) == 0 {
			d.Cause = engine.CauseEmpty
		}
		w.count.Fallbacks++
		if !w.is("fallback does not compensate") {
			w.compensate(d.ID)
		}
		return nil
	}
	best, m := offered[0], median(offered)
	for _, e := range offered {
		if w.before(e, best, m) {
			best = e
		}
	}
	slot, _ := w.candidate(best.id)
	d.Index, d.ID, d.Regime = uint32(slot), best.id, engine.RegimeCold
	if d.Cold == 0 {
		d.Regime = engine.RegimeHot
	}
	d.RIF, d.Latency, d.Age = best.rif, best.lat, engine.Duration(w.now-best.at)
	if d.Latency == engine.UnknownLatency {
		d.Latency = m
	}
	for i := range w.pool {
		if w.pool[i].id == best.id && w.pool[i].seq == best.seq {
			if !w.is("charge forgotten") {
				w.pool[i].uses--
			}
			if w.is("charged twice") && w.pool[i].uses > 0 {
				w.pool[i].uses--
			}
			if d.UsesLeft = w.pool[i].uses; d.UsesLeft == 0 {
				w.take(i)
				w.count.Exhausted++
			}
			break
		}
	}
	w.compensate(best.id)
	if w.is("removal after the decision") {
		w.removals()
	}
	return nil
}

func (w *twin) record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	if _, ok := w.candidate(id); !ok {
		return engine.NotKept, engine.ErrUnknownID
	}
	w.tick(now)
	rd.Asked = min(rd.Asked, w.now)
	w.count.Readings++
	w.expire()
	enter := func() {
		w.window = append(w.window, twinReading{w.now, rd.RIF})
		if len(w.window) > w.c.Window {
			w.window = w.window[1:]
		}
	}
	if !w.is("stale reading skips the window") {
		enter()
	}
	limit, _, num, den := w.plan()
	uses := num / den
	if rest := num % den; rest != 0 && uint64(w.draw(1<<30))*den < rest<<30 && !w.is("budget always rounded down") || rest != 0 && w.is("budget always rounded up") {
		uses++
	}
	e := twinEntry{id: id, at: w.now, asked: rd.Asked, rif: rd.RIF, lat: rd.Latency, rawRIF: rd.RIF, rawLat: rd.Latency, uses: uint32(uses), seq: w.nextSeq()}
	if w.keen != nil {
		w.keen.usual = append(w.keen.usual[max(0, len(w.keen.usual)-127):], twinReading{w.now, rd.RIF})
		if w.is("what is ranked is smoothed") {
			w.weigh(&e)
			rd.Latency = e.lat
		}
		e.lat = w.smooth(id, rd)
	}
	if !w.is("what is ranked is smoothed") {
		w.weigh(&e)
	}
	for i, old := range w.pool {
		if old.id != id || w.is("duplicates kept") {
			continue
		}
		if rd.Asked < old.asked && !w.is("late answers win") {
			w.count.DroppedStale++
			return engine.DroppedStale, nil
		}
		w.take(i)
		w.pool = append(w.pool, e)
		w.count.Replaced++
		if w.is("stale reading skips the window") {
			enter()
		}
		return engine.Replaced, nil
	}
	result := engine.Admitted
	if len(w.pool) >= limit && !w.is("pool without a bound") {
		older := true
		for _, old := range w.pool {
			older = older && rd.Asked < old.asked
		}
		if older {
			w.count.DroppedStale++
			return engine.DroppedStale, nil
		}
		gone := w.firstIn()
		if w.is("newest evicted") {
			for i, old := range w.pool {
				if old.seq > w.pool[gone].seq {
					gone = i
				}
			}
		}
		w.take(gone)
		w.count.EvictedOldest++
		result = engine.EvictedOldest
	}
	w.count.Admitted++
	w.pool = append(w.pool, e)
	if w.is("stale reading skips the window") {
		enter()
	}
	return result, nil
}

func (w *twin) nextSeq() int {
	seq := 0
	for _, e := range w.pool {
		seq = max(seq, e.seq+1)
	}
	return seq
}

func (w *twin) report(now engine.Instant, r engine.Report) error {
	if _, ok := w.candidate(r.ID); !ok {
		return engine.ErrUnknownID
	}
	w.tick(now)
	if w.learn(r.ID, r.Outcome) && !w.is("failure keeps its entry") {
		w.drop(r.ID, w.now)
	}
	return nil
}

func (w *twin) drop(id engine.ID, asked engine.Instant) {
	for i, e := range w.pool {
		if e.id == id && e.asked <= asked {
			w.take(i)
			w.count.Forgotten++
			return
		}
	}
}

func (w *twin) forget(now engine.Instant, id engine.ID, asked engine.Instant) error {
	if _, ok := w.candidate(id); !ok {
		return engine.ErrUnknownID
	}
	w.tick(now)
	w.drop(id, min(asked, w.now))
	if w.keen != nil {
		w.unanswered(id)
	}
	return nil
}

func (w *twin) probes(now engine.Instant) (due []engine.ID) {
	w.tick(now)
	eligible := w.eligible()
	k := int(w.probe / 10000)
	w.probe %= 10000
	if w.is("rest of the probe credit lost") {
		w.probe = 0
	}
	last := w.first
	if w.probed {
		last = w.probeAt
	}
	if k == 0 && w.c.Idle > 0 && engine.Duration(w.now-last) >= w.c.Idle {
		k = w.c.MinPool
	}
	if k = min(k, len(eligible)); k == 0 {
		return nil
	}
	w.probed, w.probeAt = true, w.now
	w.count.ProbesDue += uint64(k)
	if w.keen != nil {
		return w.keenProbes(k, eligible)
	}
	for top := len(eligible) - k; top < len(eligible); top++ {
		id := w.cs[eligible[w.draw(top+1)]].ID
		if slices.Contains(due, id) && !w.is("probes with replacement") {
			id = w.cs[eligible[top]].ID
		}
		due = append(due, id)
	}
	return due
}

// entries are the live ones, best first, as a decision would rank them now.
func (w *twin) entries() (es []engine.Entry) {
	seen := w.window
	for len(w.window) > 0 && engine.Duration(w.now-w.window[0].at) >= w.c.WindowAge && !w.is("window without age") {
		w.window = w.window[1:]
	}
	defer func() { w.window = seen }()
	var live []twinEntry
	for _, e := range w.pool {
		if engine.Duration(w.now-e.at) < w.c.MaxAge || w.is("entries never age") {
			live = append(live, e)
		}
	}
	m := median(w.pool)
	slices.SortFunc(live, func(a, b twinEntry) int {
		if w.before(a, b, m) {
			return -1
		}
		return 1
	})
	for _, e := range live {
		slot, _ := w.candidate(e.id)
		es = append(es, engine.Entry{
			ID: e.id, At: e.at, Asked: e.asked, Latency: e.lat, RawLatency: e.rawLat, RIF: e.rif, RawRIF: e.rawRIF,
			Uses: e.uses, Eligible: w.cs[slot].Status.Eligible(), Hot: w.hot(e.rif),
		})
	}
	return es
}

var errDiffer = errors.New("differ")
