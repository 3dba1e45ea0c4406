package hosttest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// damaged offers blocks with foreign bytes, and of the wrong length. What the guest takes it must
// serve on: in range, eligible and without a trap. What it refuses must change nothing.
func damaged(t *trial) error {
	s := newSource(t.seed)
	return t.walk(func(w *world, c *call, r *reply) error {
		if errors.Is(r.err, host.ErrTrap) || errors.Is(r.err, host.ErrAnswer) {
			return fmt.Errorf("after a damaged block: %w", r.err)
		}
		if s.next(4) > 0 {
			return nil
		}
		block, err := w.Snapshot(nil)
		if err != nil {
			return err
		}
		bad := slices.Clone(block)
		switch k := s.next(6); {
		case k == 0:
			bad = bad[:s.next(len(bad)+1)]
		case k == 1:
			bad = append(bad, 1)
		case len(bad) > 0:
			for range 1 + s.next(3) {
				bad[s.next(len(bad))] ^= byte(1 << s.next(8))
			}
		}
		err = w.Restore(bad)
		w.said = append(w.said, fmt.Sprintf("a damaged block of %d bytes (of %d) → %v", len(bad), len(block), err))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, engine.ErrBlock):
			return want(err, engine.ErrBlock)
		}
		after, err := w.Snapshot(nil)
		if err == nil && !bytes.Equal(after, block) {
			err = errors.New("the block was refused, and the state changed")
		}
		return err
	})
}

// followsIdentity sets the fleet again, also in another order. A policy may decide otherwise then, but
// what it holds of each replica must be the same: hosts set a fleet whenever they look it up.
func followsIdentity(t *trial) error {
	held := func(w *world) ([]engine.Entry, error) {
		es, err := w.Entries(w.now, nil)
		slices.SortFunc(es, func(a, b engine.Entry) int { return cmp.Compare(a.ID, b.ID) })
		return es, err
	}
	s := newSource(t.seed)
	return t.walk(func(w *world, _ *call, r *reply) error {
		if r.broken() || s.next(5) > 0 || len(w.fleet) < 2 {
			return nil
		}
		before, err := held(w)
		if err != nil {
			return err
		}
		again, how := slices.Clone(w.fleet), "the same fleet again"
		if s.next(3) > 0 {
			slices.Reverse(again)
			how = "the same fleet in the opposite order"
		}
		w.said = append(w.said, how)
		if err := w.SetCandidates(w.now, again); err != nil {
			return fmt.Errorf("%s: %w", how, err)
		}
		w.fleet = again
		after, err := held(w)
		if err == nil && !slices.Equal(before, after) {
			err = fmt.Errorf("%d entries before it and %d after, and they differ", len(before), len(after))
		}
		return err
	})
}

func lookingIsFree(t *trial) error {
	return t.walk(func(w *world, _ *call, r *reply) error {
		if r.broken() {
			return nil
		}
		before, err := w.Snapshot(nil)
		if err != nil {
			return err
		}
		var c engine.Counters
		var f engine.Fit
		if _, err := w.Entries(w.now, nil); err != nil {
			return fmt.Errorf("entries: %w", err)
		}
		if err := w.Inspect(&c, &f); err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
		after, err := w.Snapshot(nil)
		if err == nil && !bytes.Equal(before, after) {
			err = errors.New("the state changed by being looked at")
		}
		return err
	})
}

func probesDistinct(t *trial) error {
	return t.walk(func(w *world, c *call, r *reply) error {
		if c.op != opProbes || errors.Is(r.err, host.ErrTrap) {
			return nil
		}
		if r.err != nil {
			return r.err
		}
		for i, id := range r.ids {
			k := slices.IndexFunc(w.fleet, func(c engine.Candidate) bool { return c.ID == id })
			if k < 0 || !w.fleet[k].Status.Eligible() {
				return fmt.Errorf("%s is to be probed, and may not be", nameOfID(id))
			}
			if slices.Contains(r.ids[:i], id) {
				return fmt.Errorf("%s is to be probed twice", nameOfID(id))
			}
		}
		return nil
	})
}

// strangeNumbers puts the ends of every range in place of what was generated.
func strangeNumbers(t *trial) error {
	spans := []engine.Duration{math.MaxInt64, math.MinInt64, 0, -1, engine.MaxLatency, engine.MaxLatency + 1}
	counts := []uint32{math.MaxUint32, 0, math.MaxInt32, 1 << 31}
	w, err := t.world()
	if err != nil {
		return err
	}
	for i := range t.calls {
		c := t.calls[i]
		span, count := spans[i%len(spans)], counts[i%len(counts)]
		c.latency, c.rif = span, count
		c.load = engine.LoadReport{Utilization: count, QPS: counts[i%3], EPS: counts[(i+1)%4]}
		c.outcome = engine.Outcome(i % 256)
		c.answers = slices.Clone(c.answers)
		for k := range c.answers {
			c.answers[k].latency, c.answers[k].rif = span, count
		}
		c.fleet = slices.Clone(c.fleet)
		for k := range c.fleet {
			c.fleet[k].weight, c.fleet[k].priority = engine.Weight(counts[(i+k)%4]), uint8(i+k)
		}
		now := w.now
		if i%7 == 6 {
			now = engine.Instant(span)
		}
		if r := w.doAt(&c, now); r.broken() {
			return r.err
		}
	}
	return nil
}
