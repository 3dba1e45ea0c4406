package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// unanswered stands for a latency: a probe failed of a replica that nothing was remembered of, so
// that it does not come first again at once.
const unanswered = 1<<64 - 1

// remembers reports whether something is remembered of a replica, an unanswered probe too.
func remembers(w []uint64, now engine.Instant) bool {
	return w[wKeenLatency] != 0 && uint64(now)-w[wKeenAt] < uint64(keenMemory)
}

// remember takes a reading into what is remembered, and returns the latency as smoothed.
func (p *PrequalKeen) remember(now engine.Instant, slot uint32, rd *engine.Reading) engine.Duration {
	if rd.Latency == engine.UnknownLatency {
		return rd.Latency
	}
	w, latency := p.set.Words(slot), uint64(rd.Latency)
	if remembers(w, now) && w[wKeenLatency] != unanswered {
		latency = (keenNewest*latency + (10-keenNewest)*(w[wKeenLatency]-1)) / 10
	}
	w[wKeenLatency], w[wKeenRIF], w[wKeenAt] = latency+1, uint64(rd.RIF), uint64(now)
	return engine.Duration(latency)
}

// Record takes a reading into the windows, into what is remembered and, unless it is stale, into
// the pool.
func (p *PrequalKeen) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	if now >= p.due {
		p.expire(now)
	}
	p.window.Add(now, rd.RIF)
	p.usual.Add(now, rd.RIF)
	p.pool.SetThreshold(p.window.Threshold())
	in, reported := &p.incoming, rd.Latency
	in.Slot, in.Uses, in.Asked = slot, p.uses(), rd.Asked
	rd.Latency = p.remember(now, slot, &rd)
	p.errs.rank(now, in, &rd)
	in.RawLatency = reported
	a := p.pool.Record(now, in)
	p.count(a)
	p.due = min(p.due, probe.Later(now, p.life))
	return a
}

// Forget drops a replica's entry: a probe failed that was sent when asked.
func (p *PrequalKeen) Forget(slot uint32, asked engine.Instant) {
	p.pooled.Forget(slot, asked)
	if w, now := p.set.Words(slot), p.set.Last(); !remembers(w, now) {
		w[wKeenLatency], w[wKeenRIF], w[wKeenAt] = unanswered, 0, uint64(now)
	}
}

// promise is how good a replica is remembered to be, less being better: nothing at all is best.
func (p *PrequalKeen) promise(now engine.Instant, slot uint32, unit uint64) keenWeight {
	w := p.set.Words(slot)
	switch {
	case !remembers(w, now):
		return keenWeight{}
	case w[wKeenLatency] == unanswered:
		return keenWeight{unanswered, unanswered}
	}
	in := &p.incoming
	in.Slot = slot
	p.errs.rank(now, in, &engine.Reading{RIF: uint32(w[wKeenRIF]), Latency: engine.Duration(w[wKeenLatency] - 1)})
	return weigh(uint64(in.Latency), in.RIF, unit, 0)
}

// Probes spends the probe credit on distinct eligible replicas, each the most promising of a few
// that are drawn.
func (p *PrequalKeen) Probes(now engine.Instant, dst []engine.ID) []engine.ID {
	due := int(p.probesDue(now))
	if due == 0 {
		return dst
	}
	p.usual.Expire(now)
	unit, slots := p.unit(), p.set.EligibleSlots()
	var places [MaxProbes + keenDraws]uint32 // in slots, of those taken, ascending
	taken := places[:0]
	for range due {
		var drawn [keenDraws]uint32
		best, least := 0, keenWeight{}
		draws := min(keenDraws, len(slots)-len(taken))
		for i := range draws {
			at := p.set.Draw(uint32(len(slots) - len(taken)))
			k := 0
			for ; k < len(taken) && at >= taken[k]; k++ {
				at++ // past those taken
			}
			taken = slices.Insert(taken, k, at)
			drawn[i] = at
			if w := p.promise(now, slots[at], unit); i == 0 || w.less(least) {
				best, least = i, w
			}
		}
		for i := range draws {
			if i != best { // the others may be drawn again
				k, _ := slices.BinarySearch(taken, drawn[i])
				taken = slices.Delete(taken, k, k+1)
			}
		}
		dst = append(dst, p.set.ID(slots[drawn[best]]))
	}
	return dst
}

func (p *PrequalKeen) validMemory(w []uint64) bool {
	if w[wKeenLatency] == 0 {
		return w[wKeenRIF]|w[wKeenAt] == 0
	}
	at := engine.Instant(w[wKeenAt])
	return (w[wKeenLatency] <= uint64(engine.MaxLatency)+1 || w[wKeenLatency] == unanswered && w[wKeenRIF] == 0) &&
		w[wKeenRIF] < 1<<32 && at >= p.set.First() && at <= p.set.Last()
}
