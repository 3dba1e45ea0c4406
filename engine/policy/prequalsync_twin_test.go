package policy_test

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// syncTwin is the synchronous mode as the design states it, for reading: it shares the asynchronous
// twin's window, threshold and order, and has no pool.
type syncTwin struct {
	*twin
	probesEach, wait int
}

// syncFaults are the mistakes that a synchronous mode could make.
var syncFaults = []fault{
	"hot at the threshold", "order of hot and cold swapped", "cold by RIF", "unknown latency ranks best",
	"ties by slot", "window without age", "quantile rounded down", "tried ignored", "draining offered",
	"every answer decides", "fewer answers fall back", "later answers decide", "threshold before the answers", "threshold ranked over the answers",
	"answers skip the window", "what does not decide skips the window", "late answers are lost", "older answers win ties",
	"answers are kept", "first answer of a replica stays",
	"probes with replacement", "probes of the draining", "median of all answers",
}

func newSyncTwin(c policy.PrequalSyncConfig) *syncTwin {
	return &syncTwin{twin: newTwin(policy.PrequalConfig{
		PoolConfig: policy.PoolConfig{Seed: c.Seed, Aversion: c.Aversion, MaxAge: 1 << 60},
		Quantile:   c.Quantile, Window: c.Window, WindowAge: c.WindowAge,
	}), probesEach: c.Probes, wait: c.Wait}
}

// take is one reading: its RIF enters the window, and it is ranked by what this client has met.
func (w *syncTwin) take(id engine.ID, rd engine.Reading, enters bool) twinEntry {
	w.count.Readings++
	if enters {
		if w.window = append(w.window, twinReading{w.now, rd.RIF}); len(w.window) > w.c.Window {
			w.window = w.window[1:]
		}
	}
	e := twinEntry{id: id, at: rd.Asked, asked: rd.Asked, rif: rd.RIF, lat: rd.Latency, rawRIF: rd.RIF}
	w.weigh(&e)
	return e
}

// decide makes a full list of what the query may use, and sorts it.
func (w *syncTwin) decide(q engine.Query, d *engine.Decision) error {
	w.tick(q.Now)
	may := func(id engine.ID) bool {
		slot, ok := w.candidate(id)
		return ok && (w.cs[slot].Status.Eligible() || w.is("draining offered")) && (!slices.Contains(q.Tried, id) || w.is("tried ignored"))
	}
	var open []int
	for slot, c := range w.cs {
		if c.Status.Eligible() && may(c.ID) {
			open = append(open, slot)
		}
	}
	if len(w.cs) == 0 {
		return engine.ErrNoCandidates
	}
	if len(open) == 0 {
		return engine.ErrNoneEligible
	}
	w.count.Decisions++
	w.expire()
	before := w.threshold()
	var own []engine.Answer // the newest of each replica, in order of first receipt
	for _, a := range q.Answers {
		i := slices.IndexFunc(own, func(o engine.Answer) bool { return o.ID == a.ID })
		switch {
		case !may(a.ID):
		case i < 0:
			own = append(own, a)
		case !w.is("first answer of a replica stays"):
			own[i] = a
		}
	}
	if w.is("later answers decide") {
		slices.Reverse(own)
	}
	var all []twinEntry
	for i, a := range own {
		a.Reading.Asked = min(a.Reading.Asked, w.now)
		enters := !w.is("answers skip the window") && (i < w.wait || !w.is("what does not decide skips the window"))
		all = append(all, w.take(a.ID, a.Reading, enters))
	}
	ranked := all[:min(len(all), w.wait)]
	if w.is("every answer decides") {
		ranked = all
	}
	if w.is("answers are kept") {
		for _, e := range w.pool {
			if may(e.id) && !slices.ContainsFunc(ranked, func(o twinEntry) bool { return o.id == e.id }) {
				ranked = append(ranked, e)
			}
		}
		w.pool = ranked
	}
	*d = engine.Decision{Offered: uint32(len(ranked)), Threshold: w.threshold()}
	hot := w.hot
	if w.is("threshold before the answers") {
		hot = func(rif uint32) bool { return before != engine.NoThreshold && rif > before }
	}
	if w.is("threshold ranked over the answers") {
		hot = func(rif uint32) bool { // over the median of what is ranked
			var v []uint32
			for _, e := range ranked {
				v = append(v, e.rif)
			}
			slices.Sort(v)
			return rif > v[(len(v)-1)/2]
		}
	}
	for _, e := range ranked {
		if hot(e.rif) {
			d.Hot++
		} else {
			d.Cold++
		}
	}
	if len(ranked) == 0 || w.is("fewer answers fall back") && len(ranked) < w.wait {
		d.Index = uint32(open[w.draw(len(open))])
		d.ID, d.Regime, d.Cause = w.cs[d.Index].ID, engine.RegimeFallback, engine.CauseEmpty
		w.count.Fallbacks++
		return nil
	}
	m := median(ranked)
	if w.is("median of all answers") {
		m = median(all)
	}
	best := ranked[0]
	for _, e := range ranked[1:] {
		first := w.before(e, best, m)
		if w.is("older answers win ties") && e.rif == best.rif && e.lat == best.lat && e.at != best.at {
			first = !first
		}
		if first {
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
	return nil
}

func (w *syncTwin) record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	if _, ok := w.candidate(id); !ok {
		return engine.NotKept, engine.ErrUnknownID
	}
	w.tick(now)
	w.expire()
	w.take(id, rd, !w.is("late answers are lost"))
	return engine.NotKept, nil
}

func (w *syncTwin) probes(now engine.Instant) (due []engine.ID) {
	w.tick(now)
	var from []int
	for slot, c := range w.cs {
		if c.Status.Eligible() || w.is("probes of the draining") {
			from = append(from, slot)
		}
	}
	k := min(w.probesEach, len(from))
	w.count.ProbesDue += uint64(k)
	for top := len(from) - k; top < len(from); top++ {
		id := w.cs[from[w.draw(top+1)]].ID
		if slices.Contains(due, id) && !w.is("probes with replacement") {
			id = w.cs[from[top]].ID
		}
		due = append(due, id)
	}
	return due
}
