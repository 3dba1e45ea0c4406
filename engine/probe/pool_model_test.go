package probe

import (
	"cmp"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// model is the pool as a list, written for reading; compare with [Pool].
type model struct {
	limit, min int
	max        int
	threshold  uint32
	seq        uint64
	es         []held
	set        *engine.Set
}

type held struct {
	slot, rif, raw, uses uint32
	lat, rawLat          engine.Duration
	at, asked            engine.Instant
	seq                  uint64
}

// hotFirst is the hot-cold order as a [Rank], for these tests.
func hotFirst(rif uint32, latency uint64, threshold uint32) uint64 {
	if rif <= threshold {
		return latency << 6
	}
	if rif >= ToldRIF {
		return 1<<63 | ToldRIF<<39 | ToldLatency<<6
	}
	return 1<<63 | uint64(rif)<<39 | min(latency, ToldLatency)<<6
}

// order compares by the rule's words.
func (m *model) order(a, b held, median engine.Duration) int {
	if a.lat == engine.UnknownLatency {
		a.lat = median
	}
	if b.lat == engine.UnknownLatency {
		b.lat = median
	}
	hot := func(h held) int {
		if h.rif > m.threshold {
			return 1
		}
		return 0
	}
	if c := cmp.Compare(hot(a), hot(b)); c != 0 {
		return c
	}
	if hot(a) == 1 {
		if c := cmp.Compare(a.rif, b.rif); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.lat, b.lat), cmp.Compare(a.rif, b.rif), cmp.Compare(b.at, a.at),
		cmp.Compare(m.set.Tie(a.slot), m.set.Tie(b.slot)))
}

func lowerMedian(es []held) engine.Duration {
	var known []engine.Duration
	for _, e := range es {
		if e.lat != engine.UnknownLatency {
			known = append(known, e.lat)
		}
	}
	if len(known) == 0 {
		return engine.UnknownLatency
	}
	slices.Sort(known)
	return known[(len(known)-1)/2]
}

// sorted are some entries, best first.
func (m *model) sorted(es []held) []held {
	es = slices.Clone(es)
	median := lowerMedian(es)
	slices.SortFunc(es, func(a, b held) int { return m.order(a, b, median) })
	return es
}

func (m *model) open() (es []held) {
	for _, e := range m.es {
		if m.set.IsOpen(e.slot) {
			es = append(es, e)
		}
	}
	return es
}

func (m *model) at(slot uint32) int {
	return slices.IndexFunc(m.es, func(e held) bool { return e.slot == slot })
}

func (m *model) drop(i int) { m.es = slices.Delete(m.es, i, i+1) }

func (m *model) record(now engine.Instant, in *Incoming) engine.Admission {
	e := held{in.Slot, min(in.RIF, engine.NoThreshold-1), in.RawRIF, in.Uses, in.Latency, in.RawLatency, now, in.Asked, m.seq}
	result := engine.Admitted
	if i := m.at(in.Slot); i >= 0 {
		if in.Asked < m.es[i].asked {
			return engine.DroppedStale
		}
		m.drop(i)
		result = engine.Replaced
	} else if len(m.es) >= m.limit {
		if !slices.ContainsFunc(m.es, func(o held) bool { return o.asked <= in.Asked }) {
			return engine.DroppedStale
		}
		m.drop(0) // the list is in order of admission
		result = engine.EvictedOldest
	}
	m.es = append(m.es, e)
	m.seq++
	return result
}

func (m *model) worst() int { return m.at(m.sorted(m.es)[len(m.es)-1].slot) }

// take charges the entry of a slot and says what the decision would show.
func (m *model) take(now engine.Instant, slot uint32, offered, cold int) engine.Decision {
	i := m.at(slot)
	e := &m.es[i]
	d := engine.Decision{
		Index: slot, Offered: uint32(offered), Cold: uint32(cold), Hot: uint32(offered - cold), Threshold: m.threshold,
		RIF: e.rif, Latency: e.lat, Age: engine.Duration(now - e.at), UsesLeft: e.uses - 1, Regime: engine.RegimeCold,
	}
	if cold == 0 {
		d.Regime = engine.RegimeHot
	}
	if e.uses--; e.uses == 0 {
		m.drop(i)
	} else {
		m.compensate(slot)
	}
	return d
}

func (m *model) compensate(slot uint32) {
	if i := m.at(slot); i >= 0 && m.es[i].rif < engine.NoThreshold-1 {
		m.es[i].rif++
	}
}

func (m *model) cold(es []held) (n int) {
	for _, e := range es {
		if e.rif <= m.threshold {
			n++
		}
	}
	return n
}

// plain is whether an ordinary decision may be made in one go.
func (m *model) plain() bool {
	return m.max <= 16 && !slices.ContainsFunc(m.es, func(e held) bool {
		return e.lat == engine.UnknownLatency || !m.set.IsEligible(e.slot)
	})
}

func (m *model) serve(now engine.Instant, turn uint64) (d engine.Decision, ok bool) {
	if len(m.es) <= m.min || !m.plain() || m.set.AnyTried() {
		return d, false
	}
	switch turn {
	case Worst:
		m.drop(m.worst())
	case Oldest:
		m.drop(0)
	}
	best := m.sorted(m.es)[0]
	return m.take(now, best.slot, len(m.es), m.cold(m.es)), true
}

func (m *model) expire(now engine.Instant, age engine.Duration) (n int) {
	was := len(m.es)
	m.es = slices.DeleteFunc(m.es, func(e held) bool { return now-e.at >= engine.Instant(age) })
	return was - len(m.es)
}
