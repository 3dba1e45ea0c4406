package enginetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// keen is the order of Prequal's variant=keen.
var keen = order{faster: "of less weight", better: lighter, smooths: true, scale: 1_000_000}

const (
	mostLately  = 128 // RIFs that the median is of
	keenStale   = 100 * engine.Millisecond
	keenMemory  = 10 * engine.Second
	keenDraws   = 3
	microsecond = engine.Microsecond
)

// KeenLaws are the laws of pools as Prequal's variant=keen keeps them. It changes two of those of
// [PoolLaws]: cold entries come by weight and not by latency, and a reading is smoothed into what is
// remembered of its replica. Three are its own.
func KeenLaws() []PoolLaw {
	return append(poolLaws(keen),
		PoolLaw{"of cold entries the one of least latency, load and age decides", keenWeighs},
		PoolLaw{"a reading counts three tenths of its replica's latency, for ten seconds", keenSmooths},
		PoolLaw{"probes go where much is promised, and forget nobody", keenProbes},
	)
}

// TestKeenPool checks every law of the keen variant over several walks.
func TestKeenPool(t *testing.T, mk PoolMaker) {
	t.Helper()
	testPool(t, KeenLaws(), mk)
}

// weight is latency * (1 + 0.7 * RIF / (1 + median)) * (1 + age / 100ms), times what is the same for
// all. Latencies in walks are small enough.
func (w *poolWalk) weight(e engine.Entry) uint64 {
	rifs := []uint32{}
	for _, r := range w.lately {
		if engine.Duration(w.now-r.at) < w.config.windowAge {
			rifs = append(rifs, r.rif)
		}
	}
	median := uint64(0)
	if slices.Sort(rifs); len(rifs) > 0 {
		median = uint64(rifs[(len(rifs)-1)/2])
	}
	age := engine.Duration(w.now - e.At)
	return uint64(max(e.Latency, 1)) * (10*(1+median) + 7*uint64(e.RIF)) * uint64((keenStale+age)/microsecond)
}

// lighter reports whether a comes strictly before b in the keen order; see better.
func lighter(w *poolWalk, a, b engine.Entry, threshold uint32) bool {
	ha, hb := a.RIF > threshold, b.RIF > threshold
	wa, wb := w.weight(a), w.weight(b)
	switch {
	case ha != hb:
		return hb
	case ha && a.RIF != b.RIF:
		return a.RIF < b.RIF
	case wa != wb:
		return wa < wb
	case a.RIF != b.RIF:
		return a.RIF < b.RIF
	case a.Latency != b.Latency:
		return a.Latency < b.Latency
	}
	return a.At > b.At
}

var keenConfig = poolConfig{quantile: 10000, window: 1000, windowAge: 20 * engine.Second, maxAge: 20 * engine.Second, minPool: 2}

const keenSettings = "aversion=off idle=0 remove_rate=0 pool=8 reuse=9 quantile=1 window=1000 window_age=20s max_age=20s "

// keenWeighs lets entries grow as old as matters.
func keenWeighs(mk PoolMaker, seed uint64, steps int) error {
	return walking(mk, keenSettings, 12, seed, keenConfig, func(w *poolWalk) error {
		for i := range steps {
			w.now += engine.Instant(w.next(40)) * engine.Instant(engine.Millisecond)
			if w.next(3) > 0 {
				rd := engine.Reading{RIF: uint32(w.next(9)), Latency: engine.Duration(1000 + w.next(1000)), Asked: w.now}
				if _, err := w.record(w.next(len(w.fleet)), rd); err != nil {
					return err
				}
				continue
			}
			d, err := w.decide(nil)
			if err != nil {
				return err
			}
			chosen := of(d.before, d.ID)
			if d.Regime != engine.RegimeCold {
				continue
			}
			for _, e := range d.before {
				if lighter(w, e, *chosen, engine.NoThreshold) {
					return fmt.Errorf("call %d: %+v decided, and %+v weighs less", i, *chosen, e)
				}
			}
		}
		return nil
	})
}

func keenSmooths(mk PoolMaker, seed uint64, steps int) error {
	return walking(mk, keenSettings, 6, seed, keenConfig, func(w *poolWalk) error {
		type memory struct {
			latency engine.Duration
			at      engine.Instant
		}
		known := map[int]memory{}
		for i := range steps {
			w.now += engine.Instant([]engine.Duration{0, 1, engine.Millisecond, engine.Second, keenMemory - engine.Second}[w.next(5)])
			slot, rd := w.next(len(w.fleet)), engine.Reading{RIF: 1, Latency: engine.Duration(w.next(1_000_000)), Asked: w.now}
			if _, err := w.record(slot, rd); err != nil {
				return err
			}
			want := rd.Latency
			if m, ok := known[slot]; ok && engine.Duration(w.now-m.at) < keenMemory {
				want = (3*rd.Latency + 7*m.latency) / 10
			}
			known[slot] = memory{want, w.now}
			es, err := w.entries()
			if err != nil {
				return err
			}
			if e := of(es, w.fleet[slot].ID); e == nil || e.Latency != want || e.RawLatency != rd.Latency {
				return fmt.Errorf("reading %d of %d became %+v, want %d", i, rd.Latency, e, want)
			}
		}
		return nil
	})
}

// keenProbes answers every probe at once, each replica in its own time, and counts who is asked.
func keenProbes(mk PoolMaker, seed uint64, _ int) error {
	const fleet, queries = 20, 1500 // a second has twenty queries
	return walking(mk, "aversion=off idle=0 pool=8 probe_rate=1 remove_rate=0.1 max_age=20s window_age=20s", fleet, seed, keenConfig, func(w *poolWalk) error {
		var asked [fleet]int
		var last [fleet]engine.Instant
		for range queries {
			w.now += engine.Instant(engine.Second / 20)
			if _, err := w.decide(nil); err != nil {
				return err
			}
			due, err := w.m.Probes(w.now, nil)
			if err != nil {
				return err
			}
			for _, id := range due {
				slot := slices.IndexFunc(w.fleet, func(c engine.Candidate) bool { return c.ID == id })
				asked[slot]++
				last[slot] = w.now
				if _, err := w.record(slot, engine.Reading{RIF: 1, Latency: engine.Duration(1+slot) * engine.Millisecond, Asked: w.now}); err != nil {
					return err
				}
			}
			// Who is forgotten is asked when it is drawn: a draw names three of twenty, twenty times a second.
			for slot, at := range last {
				if w.now-at > engine.Instant(keenMemory+5*engine.Second) {
					return fmt.Errorf("replica %d was last asked %d s ago", slot, (w.now-at)/engine.Instant(engine.Second))
				}
			}
		}
		best, worst := asked[0]+asked[1]+asked[2], asked[fleet-1]+asked[fleet-2]+asked[fleet-3]
		if even := keenDraws * queries / fleet; best < 2*even || worst > even/4 {
			return fmt.Errorf("asked %v: of %d probes the three best had %d, and the three worst %d", asked, queries, best, worst)
		}
		return nil
	})
}
