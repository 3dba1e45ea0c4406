package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// PoolLaw is a property of every policy that decides by hot-cold over a probe pool and reads
// the settings of Prequal. Check returns what breaks it.
type PoolLaw struct {
	Name  string
	Check func(mk PoolMaker, seed uint64, steps int) error
}

// PoolLaws are the laws of hot-cold and of the pool. They look from outside: a machine's
// entries before and after a call, and what it decided.
func PoolLaws() []PoolLaw { return poolLaws(paper) }

func poolLaws(o order) []PoolLaw {
	return []PoolLaw{
		{"any cold one on offer decides, none " + o.faster + "; else the least RIF", o.hotColdRule},
		{"the threshold is the quantile of recent readings, whatever the pool holds", thresholdRule},
		{"raising the quantile never shrinks the cold set", coldSetGrows},
		{"the hot branch is reached, and the cold one", bothBranches},
		{"ties are not settled by position, and not alike for all", tiesDiffer},
		{"a pool stays within its bound, one entry for each replica", bounded},
		{"the newest reading of a replica counts; a full pool lets its oldest go", o.newestCounts},
		{"no entry is older than it may be", aged},
		{"a decision takes one use of one entry, and the last use takes the entry", charged},
		{"whatever branch decides, its replica's RIF grows by one and no other", compensated},
		{"one entry leaves before each decision, the worst and the oldest in turn", o.removalsAlternate},
		{"probes and removals come at the rates set, to within one", ratesAreExact},
		{"probes go to distinct eligible replicas", probesAreDistinct},
		{"the rounded reuse budget keeps its mean", budgetKeepsItsMean},
		{"a failure drops the entry of its replica", failureDrops},
		{"who fails alone ranks behind, for a time, and a fault of all ranks nobody behind", failureRanksBehind},
		{"renaming replicas renames decisions", renamed},
		{"scaling all latencies changes nothing", o.scaled},
	}
}

// TestPool checks every law of pools over several walks.
func TestPool(t *testing.T, mk PoolMaker) {
	t.Helper()
	testPool(t, PoolLaws(), mk)
}

func testPool(t *testing.T, laws []PoolLaw, mk PoolMaker) {
	t.Helper()
	for _, law := range laws {
		t.Run(law.Name, func(t *testing.T) {
			for seed := range uint64(4) {
				if err := law.Check(mk, seed, 1500); err != nil {
					t.Fatalf("walk %d: %v", seed, err)
				}
			}
		})
	}
}

// quantiles are those that the laws try, as settings and in parts per 10,000.
var quantiles = map[string]int{"0": 0, "0.3": 3000, "0.5": 5000, "0.84": 8400, "1": 10000}

// walking starts a walk of a fleet under settings and quantile, and ends the machine after it.
func walking(mk PoolMaker, settings string, n int, seed uint64, c poolConfig, during func(w *poolWalk) error) error {
	w, err := startPool(mk(settings), n, seed, c)
	if w != nil {
		defer w.done()
	}
	if err != nil {
		return err
	}
	return during(w)
}

// deciding hands each decision of a walk to look, at every quantile.
func deciding(mk PoolMaker, settings string, n int, seed uint64, steps int, look func(w *poolWalk, d *decision) error) error {
	for text, q := range quantiles {
		c := quietConfig
		c.quantile = q
		err := walking(mk, quiet+"pool=8 reuse=3 quantile="+text+" "+settings, n, seed, c, func(w *poolWalk) error {
			return w.stroll(steps, func(d *decision) error { return look(w, d) })
		})
		if err != nil {
			return fmt.Errorf("quantile %s: %w", text, err)
		}
	}
	return nil
}

func (o order) hotColdRule(mk PoolMaker, seed uint64, steps int) error {
	return deciding(mk, "", 12, seed, steps, func(w *poolWalk, d *decision) error {
		t := w.threshold()
		offered := ranked(w.offered(d.before, d.tried))
		cold := 0
		for _, e := range offered {
			if e.RIF <= t {
				cold++
			}
		}
		if int(d.Offered) != len(offered) || int(d.Cold) != cold || int(d.Hot) != len(offered)-cold {
			return fmt.Errorf("%d offered, %d of them cold, and it says %+v", len(offered), cold, d.Decision)
		}
		if len(offered) < w.config.minPool {
			cause := engine.CauseThin
			if len(offered) == 0 {
				cause = engine.CauseEmpty
			}
			if d.Regime != engine.RegimeFallback || d.Cause != cause {
				return fmt.Errorf("%d offered, and it says %s %s", len(offered), d.Regime, d.Cause)
			}
			return nil
		}
		chosen := of(offered, d.ID)
		if chosen == nil {
			return fmt.Errorf("%d decided without an entry on offer", d.ID)
		}
		if want := engine.RegimeHot - engine.Regime(min(cold, 1)); d.Regime != want {
			return fmt.Errorf("%s with %d cold", d.Regime, cold)
		}
		if d.RIF != chosen.RIF || d.Latency != chosen.Latency || d.Age != engine.Duration(w.now-chosen.At) {
			return fmt.Errorf("%+v decided, and it says %+v", *chosen, d.Decision)
		}
		for _, e := range offered {
			if o.better(w, e, *chosen, t) {
				return fmt.Errorf("%+v decided at threshold %d, and %+v is better", *chosen, t, e)
			}
		}
		return nil
	})
}

func thresholdRule(mk PoolMaker, seed uint64, steps int) error {
	return deciding(mk, "", 12, seed, steps, func(w *poolWalk, d *decision) error {
		t := w.threshold()
		if d.Threshold != t {
			return fmt.Errorf("threshold %d, want %d of %v", d.Threshold, t, w.window)
		}
		for _, e := range d.before {
			if e.Hot != (e.RIF > t) {
				return fmt.Errorf("threshold %d, and %+v", t, e)
			}
		}
		return nil
	})
}

func coldSetGrows(mk PoolMaker, seed uint64, steps int) error {
	var cold [][]engine.ID // by reading, those that were cold at the last quantile
	for _, q := range []string{"0", "0.3", "0.5", "0.84", "1"} {
		err := walking(mk, quiet+"pool=8 reuse=3 quantile="+q, 12, seed, quietConfig, func(w *poolWalk) error {
			for i := range steps / 4 {
				w.now += engine.Instant(w.next(200))
				if _, err := w.record(w.reading()); err != nil {
					return err
				}
				es, err := w.entries()
				if err != nil {
					return err
				}
				var now []engine.ID
				for _, e := range es {
					if !e.Hot {
						now = append(now, e.ID)
					}
				}
				if i >= len(cold) {
					cold = append(cold, nil)
				}
				for _, id := range cold[i] {
					if !slices.Contains(now, id) {
						return fmt.Errorf("reading %d: %d is hot at quantile %s and was cold below", i, id, q)
					}
				}
				if q == "1" && len(now) != len(es) {
					return fmt.Errorf("reading %d: at quantile 1 only %d of %d are cold", i, len(now), len(es))
				}
				cold[i] = now
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bothBranches offers the whole pool to every query: a threshold ranked over its own entries
// would always leave one of them cold.
func bothBranches(mk PoolMaker, seed uint64, steps int) error {
	regimes := map[engine.Regime]int{}
	err := walking(mk, quiet+"pool=3 reuse=2 quantile=0.3", 12, seed, quietConfig, func(w *poolWalk) error {
		for range steps {
			w.now += engine.Instant(w.next(300))
			if w.next(2) == 0 {
				if _, err := w.record(w.reading()); err != nil {
					return err
				}
				continue
			}
			d, err := w.decide(nil)
			if err != nil {
				return err
			}
			regimes[d.Regime]++
		}
		return nil
	})
	if err == nil && (regimes[engine.RegimeHot] == 0 || regimes[engine.RegimeCold] == 0) {
		err = fmt.Errorf("regimes %v", regimes)
	}
	return err
}

// tiesDiffer puts equal entries on offer to machines of many seeds.
func tiesDiffer(mk PoolMaker, seed uint64, _ int) error {
	places := map[uint32]bool{}
	for i := range 24 {
		settings := fmt.Sprintf("%s pool=8 reuse=1 seed=%d", quiet, 100*seed+uint64(i)+1)
		err := walking(mk, settings, 6, seed, quietConfig, func(w *poolWalk) error {
			for slot := range w.fleet {
				if _, err := w.record(slot, engine.Reading{RIF: 2, Latency: 5}); err != nil {
					return err
				}
			}
			d, err := w.decide(nil)
			places[d.Index] = true
			return errors.Join(err, d.err)
		})
		if err != nil {
			return err
		}
	}
	if len(places) < 3 {
		return fmt.Errorf("24 clients with equal entries chose only the places %v", places)
	}
	return nil
}

func bounded(mk PoolMaker, seed uint64, steps int) error {
	for _, pool := range []int{2, 3, 8} {
		settings := fmt.Sprintf("%s pool=%d reuse=3", quiet, pool)
		err := walking(mk, settings, 12, seed, quietConfig, func(w *poolWalk) error {
			return w.stroll(steps/2, func(d *decision) error {
				var c engine.Counters
				var f engine.Fit
				if err := w.m.Inspect(&c, &f); err != nil {
					return err
				}
				if len(d.before) > pool || int(f.Pool) > pool || len(d.before) > int(f.Pool) {
					return fmt.Errorf("%d entries, bounds %d and %d", len(d.before), pool, f.Pool)
				}
				for i := range d.before {
					if of(d.before, d.before[i].ID) != &d.before[i] {
						return fmt.Errorf("two entries of %d", d.before[i].ID)
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
