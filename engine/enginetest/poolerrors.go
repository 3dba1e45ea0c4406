package enginetest

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// failureRanksBehind looks at how a reading is ranked: as it was reported, or as that of a replica
// which is slower and busier than it says. A replica that is idle because it fails, or that says
// nothing of its latency, must not rank as it says either.
func failureRanksBehind(mk PoolMaker, seed uint64, _ int) error {
	c := quietConfig
	c.maxAge, c.windowAge = engine.Second, engine.Second
	return walking(mk, "idle=0 remove_rate=0 pool=8 reuse=5", 12, seed, c, func(w *poolWalk) error {
		report := func(slot int, o engine.Outcome) error {
			return w.m.Report(w.now, engine.Report{ID: w.fleet[slot].ID, Outcome: o, Latency: 1})
		}
		ranked := func(slot int, latency engine.Duration) (engine.Entry, error) {
			if _, err := w.record(slot, engine.Reading{Latency: latency, Asked: w.now}); err != nil {
				return engine.Entry{}, err
			}
			es, err := w.entries()
			if e := of(es, w.fleet[slot].ID); e != nil {
				return *e, err
			}
			return engine.Entry{}, fmt.Errorf("no entry after a reading: %w", err)
		}
		asSaid := func(what string, slot int) error {
			if e, err := ranked(slot, 1000); err != nil || e.RIF != 0 || e.Latency != 1000 {
				return fmt.Errorf("%s ranks as %+v: %w", what, e, err)
			}
			return nil
		}
		failing, other := w.next(6), 6+w.next(6)
		if err := asSaid("who has not failed", failing); err != nil {
			return err
		}
		if err := report(failing, engine.OutcomeCancelled); err != nil {
			return err
		}
		if err := asSaid("who was not waited for", failing); err != nil {
			return err
		}
		if err := report(failing, engine.OutcomeFailure+engine.Outcome(seed%2)); err != nil {
			return err
		}
		for range 200 { // readings do not make up for it: their number depends on the fleet
			if e, err := ranked(failing, 1000); err != nil || e.RIF < 2 || e.Latency < 2000 || e.RawRIF != 0 || e.RawLatency != 1000 {
				return fmt.Errorf("after a failure %+v: %w", e, err)
			}
		}
		if e, err := ranked(failing, engine.UnknownLatency); err != nil || e.Latency == engine.UnknownLatency {
			return fmt.Errorf("after a failure, without a latency %+v: %w", e, err)
		}
		if err := asSaid("who did not fail", other); err != nil {
			return err
		}
		w.now += engine.Instant(100 * engine.Second)
		if err := asSaid("after a hundred seconds, who failed", failing); err != nil {
			return err
		}
		for i := range 1200 { // one in five fails, wherever it goes
			o := engine.OutcomeSuccess
			if i/len(w.fleet)%5 == 0 {
				o = engine.OutcomeFailure
			}
			if err := report(i%len(w.fleet), o); err != nil {
				return err
			}
		}
		return asSaid("who fails like everybody", failing)
	})
}
