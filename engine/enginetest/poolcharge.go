package enginetest

import (
	"fmt"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

func (o order) newestCounts(mk PoolMaker, seed uint64, steps int) error {
	return walking(mk, quiet+"pool=6 reuse=3", 12, seed, quietConfig, func(w *poolWalk) error {
		for i := range steps {
			w.now += engine.Instant(1 + w.next(60)) // no two at one instant: the oldest is one
			before, err := w.entries()
			if err != nil {
				return err
			}
			slot, rd := w.reading()
			a, err := w.record(slot, rd)
			if err != nil {
				return err
			}
			after, err := w.entries()
			if err != nil {
				return err
			}
			if err := w.admission(before, after, w.fleet[slot].ID, rd, a, 6, o.smooths); err != nil {
				return fmt.Errorf("reading %d: %w", i, err)
			}
		}
		return nil
	})
}

// admission checks what became of a reading.
func (w *poolWalk) admission(before, after []engine.Entry, id engine.ID, rd engine.Reading, a engine.Admission, limit int, smooths bool) error {
	was, is := of(before, id), of(after, id)
	want, gone := engine.Admitted, engine.ID(0)
	older := func(e engine.Entry) bool { return rd.Asked < e.Asked }
	switch {
	case was != nil && older(*was):
		want = engine.DroppedStale
	case was != nil:
		want = engine.Replaced
	case len(before) == limit && !slices.ContainsFunc(before, func(e engine.Entry) bool { return !older(e) }):
		want = engine.DroppedStale
	case len(before) == limit:
		want = engine.EvictedOldest
		gone = slices.MinFunc(before, func(x, y engine.Entry) int { return int(x.At - y.At) }).ID
	}
	if a != want {
		return fmt.Errorf("admission %d, want %d: %+v among %+v", a, want, rd, before)
	}
	if want != engine.DroppedStale && (is == nil || is.At != w.now || is.Asked != rd.Asked || is.RIF != rd.RIF ||
		is.RawLatency != rd.Latency || is.Latency != rd.Latency && !smooths) {
		return fmt.Errorf("%+v became %+v", rd, is)
	}
	for _, e := range before {
		if e.ID == id && want != engine.DroppedStale {
			continue
		}
		if still := of(after, e.ID); (still == nil) != (want == engine.EvictedOldest && e.ID == gone) {
			return fmt.Errorf("%d in the pool after %+v: %+v", e.ID, rd, still)
		}
	}
	return nil
}

func aged(mk PoolMaker, seed uint64, steps int) error {
	return deciding(mk, "min_pool=1", 12, seed, steps, func(w *poolWalk, d *decision) error {
		for _, e := range slices.Concat(d.before, d.after) {
			if e.Asked > e.At || e.At > w.now || engine.Duration(w.now-e.At) >= w.config.maxAge {
				return fmt.Errorf("at %d: %+v", w.now, e)
			}
		}
		if d.Age < 0 || d.Age >= w.config.maxAge {
			return fmt.Errorf("an entry of age %d decided", d.Age)
		}
		return nil
	})
}

func charged(mk PoolMaker, seed uint64, steps int) error {
	return deciding(mk, "", 12, seed, steps, func(w *poolWalk, d *decision) error {
		for _, e := range d.before {
			left := e.Uses
			if e.ID == d.ID && d.Regime != engine.RegimeFallback {
				left--
				if d.UsesLeft != left {
					return fmt.Errorf("%d uses left, want %d", d.UsesLeft, left)
				}
			}
			is := of(d.after, e.ID)
			switch {
			case left == 0 && is != nil:
				return fmt.Errorf("used up, and still there: %+v", *is)
			case left > 0 && is == nil:
				return fmt.Errorf("gone with %d uses left: %+v", left, e)
			case left > 0 && is.Uses != left, e.Uses > 3:
				return fmt.Errorf("%+v became %+v", e, is)
			}
		}
		return nil
	})
}

func compensated(mk PoolMaker, seed uint64, steps int) error {
	return deciding(mk, "", 12, seed, steps, func(w *poolWalk, d *decision) error {
		for _, e := range d.before {
			want := e.RIF
			if e.ID == d.ID {
				want++
			}
			if is := of(d.after, e.ID); is != nil && (is.RIF != want || is.RawRIF != e.RawRIF) {
				return fmt.Errorf("RIF %d of %d became %d, want %d", e.RIF, e.ID, is.RIF, want)
			}
		}
		return nil
	})
}

// removalsAlternate gives entries so many uses that only removal takes them.
func (o order) removalsAlternate(mk PoolMaker, seed uint64, steps int) error {
	c := quietConfig
	c.quantile, c.maxAge, c.windowAge = 5000, engine.Second, engine.Second
	settings := "aversion=off idle=0 pool=8 min_pool=1 reuse=1000000 remove_rate=1 quantile=0.5 window=16"
	return walking(mk, settings, 12, seed, c, func(w *poolWalk) error {
		turn := 0
		for i := range steps {
			w.now += engine.Instant(1 + w.next(60))
			if w.next(5) > 2 {
				if _, err := w.record(w.reading()); err != nil {
					return err
				}
				continue
			}
			d, err := w.decide(nil)
			if err != nil {
				return err
			}
			if len(d.before) == 0 {
				continue // the turn stays
			}
			gone := -1
			for k, e := range d.before {
				if of(d.after, e.ID) == nil {
					gone = k
				}
			}
			if gone < 0 || len(d.after) != len(d.before)-1 || int(d.Offered) != len(d.after) {
				return fmt.Errorf("call %d: %d entries, %d after it, %d offered", i, len(d.before), len(d.after), d.Offered)
			}
			es := ranked(d.before)
			for _, e := range es {
				if turn%2 == 0 && o.better(w, es[gone], e, w.threshold()) {
					return fmt.Errorf("call %d: %+v left as the worst, and %+v is worse", i, es[gone], e)
				}
				if turn%2 == 1 && e.At < es[gone].At {
					return fmt.Errorf("call %d: %+v left as the oldest, and %+v is older", i, es[gone], e)
				}
			}
			turn++
		}
		var n engine.Counters
		var f engine.Fit
		if err := w.m.Inspect(&n, &f); err != nil {
			return err
		}
		if int(n.RemovedWorst) != (turn+1)/2 || int(n.RemovedOldest) != turn/2 {
			return fmt.Errorf("%d removals: worst %d, oldest %d", turn, n.RemovedWorst, n.RemovedOldest)
		}
		return nil
	})
}

// ratesAreExact keeps the pool full, so that there is always something to remove.
func ratesAreExact(mk PoolMaker, seed uint64, steps int) error {
	for _, r := range []struct {
		probe, remove string
		p, q          int // parts per 10,000
	}{{"3", "1", 30000, 10000}, {"1.4142", "0.333", 14142, 3330}, {"0.25", "0.1", 2500, 1000}} {
		settings := fmt.Sprintf("aversion=off idle=0 pool=8 reuse=1000000 probe_rate=%s remove_rate=%s", r.probe, r.remove)
		err := walking(mk, settings, 20, seed, quietConfig, func(w *poolWalk) error {
			probes := 0
			for i := range steps {
				w.now++
				for k := range 3 {
					if _, err := w.record((3*i+k)%len(w.fleet), engine.Reading{RIF: uint32(k), Latency: engine.Duration(i), Asked: w.now}); err != nil {
						return err
					}
				}
				if d, err := w.decide(nil); err != nil || d.err != nil {
					return fmt.Errorf("%w %w", err, d.err)
				}
				due, err := w.m.Probes(w.now, nil)
				if err != nil {
					return err
				}
				probes += len(due)
				var n engine.Counters
				var f engine.Fit
				if err := w.m.Inspect(&n, &f); err != nil {
					return err
				}
				for what, c := range map[string][2]int{
					"probes": {probes, r.p}, "removals": {int(n.RemovedWorst + n.RemovedOldest), r.q}, "probes counted": {int(n.ProbesDue), r.p},
				} {
					if off := c[0]*10000 - (i+1)*c[1]; off > 10000 || off < -10000 {
						return fmt.Errorf("%d %s after %d queries at %d in 10,000", c[0], what, i+1, c[1])
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func probesAreDistinct(mk PoolMaker, seed uint64, steps int) error {
	return walking(mk, quiet+"pool=4 probe_rate=2.5", 6, seed, quietConfig, func(w *poolWalk) error {
		return w.stroll(steps, func(*decision) error {
			if w.next(3) > 0 {
				return nil // some credit gathers
			}
			due, err := w.m.Probes(w.now, nil)
			if err != nil {
				return err
			}
			for i, id := range due {
				k := slices.IndexFunc(w.fleet, func(c engine.Candidate) bool { return c.ID == id })
				if k < 0 || !w.fleet[k].Status.Eligible() || slices.Contains(due[:i], id) {
					return fmt.Errorf("due %v", due)
				}
			}
			return nil
		})
	})
}

func budgetKeepsItsMean(mk PoolMaker, seed uint64, _ int) error {
	for _, b := range []struct {
		text  string
		whole uint32
		share float64 // of entries with one use more
	}{{"2.5", 2, 0.5}, {"1.316", 1, 0.316}} {
		err := walking(mk, quiet+"pool=4 reuse="+b.text, 6, seed, quietConfig, func(w *poolWalk) error {
			n, up := Draws(b.share, 0.1), 0
			for i := range n {
				w.now++
				slot := i % len(w.fleet)
				if _, err := w.record(slot, engine.Reading{Asked: w.now}); err != nil {
					return err
				}
				es, err := w.entries()
				if err != nil {
					return err
				}
				e := of(es, w.fleet[slot].ID)
				switch {
				case e == nil || e.Uses != b.whole && e.Uses != b.whole+1:
					return fmt.Errorf("a reading with budget %s became %+v", b.text, e)
				case e.Uses == b.whole+1:
					up++
				}
			}
			return CheckShare(b.share, up, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func failureDrops(mk PoolMaker, seed uint64, steps int) error {
	c := quietConfig
	return walking(mk, "idle=0 remove_rate=0 pool=8 reuse=5 max_age=5us", 12, seed, c, func(w *poolWalk) error {
		return w.stroll(steps, func(d *decision) error {
			o := engine.Outcome(w.next(4))
			if err := w.m.Report(w.now, engine.Report{ID: d.ID, Outcome: o, Latency: 1}); err != nil {
				return err
			}
			es, err := w.entries()
			if err != nil {
				return err
			}
			failed := o == engine.OutcomeFailure || o == engine.OutcomeOverloaded
			if had, has := of(d.after, d.ID) != nil, of(es, d.ID) != nil; has != (had && !failed) {
				return fmt.Errorf("%s: entry before %t, after %t", o, had, has)
			}
			return nil
		})
	})
}

// twice walks two machines alike, but for what change does to the second, and wants the same
// places and regimes. No two entries are equal.
func twice(mk PoolMaker, seed uint64, steps int, scale engine.Duration, change func(w *poolWalk) error) error {
	settings := "aversion=off idle=0 pool=8 quantile=0.5 max_age=5us window=16 seed=3"
	return walking(mk, settings, 30, seed, quietConfig, func(a *poolWalk) error {
		return walking(mk, settings, 30, seed, quietConfig, func(b *poolWalk) error {
			a.scale, b.scale = scale, scale
			if err := change(b); err != nil {
				return err
			}
			for i := range steps {
				pause := engine.Instant(a.next(400))
				slot, lat, rif := a.next(30), engine.Duration(steps*a.next(9)+i), uint32(a.next(8))
				var said [2]string
				for k, w := range []*poolWalk{a, b} {
					w.now += pause
					if i%3 > 0 {
						if _, err := w.record(slot, engine.Reading{RIF: rif, Latency: lat, Asked: w.now}); err != nil {
							return err
						}
						continue
					}
					d, err := w.decide(nil)
					if err != nil {
						return err
					}
					said[k] = fmt.Sprint(d.Index, d.Regime, d.Cause, d.Offered, d.Cold, d.RIF, d.UsesLeft, d.err)
				}
				if said[0] != said[1] {
					return fmt.Errorf("call %d: %q and %q", i, said[0], said[1])
				}
			}
			return nil
		})
	})
}

func renamed(mk PoolMaker, seed uint64, steps int) error {
	return twice(mk, seed, steps, 1, func(w *poolWalk) error {
		for i := range w.fleet {
			w.fleet[i].ID = engine.IDOf(fmt.Sprint("another-", 31*i))
		}
		return w.m.SetCandidates(0, w.fleet)
	})
}

func (o order) scaled(mk PoolMaker, seed uint64, steps int) error {
	return twice(mk, seed, steps, o.scale, func(w *poolWalk) error { w.scale *= 1000; return nil })
}
