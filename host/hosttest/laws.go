package hosttest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// law is a property of guests. A law with generated calls is tried with many and its
// counterexample cut down; another is tried once.
type law struct {
	name      string
	generated bool
	check     func(t *trial) error
}

const trapLaw = "no call traps"

// generalLaws bind every guest, in the order in which a failure is best understood.
func generalLaws() []law {
	return []law{
		{trapLaw, true, noTrap},
		{"a decision names a candidate and a regime", true, decisionInRange},
		{"a decision is for an eligible replica", true, decisionEligible},
		{"a decision avoids the replicas tried", true, decisionNotTried},
		{"a query is refused only for want of an open candidate, and by the precise error", true, preciseError},
		{"a decision's counts add up", true, countsAddUp},
		{"a call about a replica that is not in the fleet is an unknown endpoint", true, unknownEndpoint},
		{"a refusal has a code of the interface and a text", true, refusalsSpeak},
		{"a refused fleet or status changes nothing", true, transactional},
		{"the same calls give the same answers", true, deterministic},
		{"shifting all instants changes nothing", true, shifted},
		{"time that goes backwards stands still", true, backwards},
		{"snapshot and restore is the identity", true, restored},
		{"a block restored into a fresh guest carries on", true, carriedOver},
		{"a damaged block is refused, or serves on", true, damaged},
		{"a fleet set again, in any order, keeps what is known of each replica", true, followsIdentity},
		{"looking changes nothing", true, lookingIsFree},
		{"probes go to eligible replicas, each once", true, probesDistinct},
		{"strange numbers are survived", true, strangeNumbers},
		{"a spec is refused with a reason, or taken", false, specsRefused},
		{"the canonical spec makes the same guest", false, canonicalSpec},
		{"the arena holds what was asked for, or says 0", false, arenaHolds},
		{"counts out of range are refused", false, countsRefused},
		{"a large fleet is served, or refused by name", false, largeFleet},
		{"memory and state do not grow with the calls", false, memoryBounded},
	}
}

func noTrap(t *trial) error {
	return t.walk(func(_ *world, _ *call, r *reply) error {
		if errors.Is(r.err, host.ErrTrap) {
			return r.err
		}
		return nil
	})
}

// deciding shows the decisions to look, also those that the host would refuse.
func (t *trial) deciding(look func(w *world, c *call, r *reply) error) error {
	return t.walk(func(w *world, c *call, r *reply) error {
		if c.op != opDecide || r.err != nil && !errors.Is(r.err, host.ErrAnswer) {
			return nil
		}
		return look(w, c, r)
	})
}

func decisionInRange(t *trial) error {
	return t.deciding(func(w *world, c *call, r *reply) error {
		d := &r.d
		switch {
		case int(d.Index) >= len(w.fleet):
			return fmt.Errorf("index %d of %d candidates", d.Index, len(w.fleet))
		case int(d.Regime) >= engine.Regimes || int(d.Cause) >= engine.Causes:
			return fmt.Errorf("regime %d, cause %d", d.Regime, d.Cause)
		case r.err != nil && w.fleet[d.Index].Status.Eligible() && !w.tried(c, w.fleet[d.Index].ID):
			return r.err // the index returned is not the one in the record
		}
		return nil
	})
}

func decisionEligible(t *trial) error {
	return t.deciding(func(w *world, _ *call, r *reply) error {
		if int(r.d.Index) < len(w.fleet) {
			if c := w.fleet[r.d.Index]; !c.Status.Eligible() {
				return fmt.Errorf("%s is %s", nameOfID(c.ID), c.Status)
			}
		}
		return nil
	})
}

func decisionNotTried(t *trial) error {
	return t.deciding(func(w *world, c *call, r *reply) error {
		if int(r.d.Index) < len(w.fleet) && w.tried(c, w.fleet[r.d.Index].ID) {
			return fmt.Errorf("%s was tried already", nameOfID(w.fleet[r.d.Index].ID))
		}
		return nil
	})
}

// preciseError lets a policy that guards against overload refuse, as rejected, where some are down.
func preciseError(t *trial) error {
	return t.walk(func(w *world, c *call, r *reply) error {
		if c.op != opDecide || r.broken() {
			return nil
		}
		open := w.open(c)
		switch {
		case len(w.fleet) == 0:
			return want(r.err, engine.ErrNoCandidates)
		case open == 0:
			return want(r.err, engine.ErrNoneEligible)
		case errors.Is(r.err, engine.ErrRejected) && open < len(w.fleet):
			return nil
		case r.err != nil:
			return fmt.Errorf("%d candidates are open, and it says %s", open, abi.NameOf(r.err))
		}
		return nil
	})
}

func countsAddUp(t *trial) error {
	return t.deciding(func(_ *world, _ *call, r *reply) error {
		d := &r.d
		switch {
		case r.err != nil:
		case d.Cold+d.Hot != d.Offered:
			return fmt.Errorf("%d cold and %d hot, and %d offered", d.Cold, d.Hot, d.Offered)
		case (d.Regime == engine.RegimeFallback) != (d.Cause != engine.CauseNone):
			return fmt.Errorf("regime %s with cause %q", d.Regime, d.Cause)
		case d.Cause == engine.CauseTrap:
			return errors.New("cause trap is the host's to give")
		case d.Regime == engine.RegimeCold && d.Cold == 0, d.Regime == engine.RegimeHot && d.Cold > 0:
			return fmt.Errorf("regime %s with %d cold", d.Regime, d.Cold)
		}
		return nil
	})
}

func unknownEndpoint(t *trial) error {
	return t.walk(func(w *world, c *call, r *reply) error {
		switch c.op {
		case opReport, opRecord, opStatus, opLoad, opForget:
			if !w.has(c.who) && !r.broken() {
				return want(r.err, engine.ErrUnknownID)
			}
			if !r.broken() && r.err != nil {
				return fmt.Errorf("%s is in the fleet, and it says %s", nameOf(c.who), abi.NameOf(r.err))
			}
		}
		return nil
	})
}

func refusalsSpeak(t *trial) error {
	return t.walk(func(w *world, c *call, r *reply) error {
		if r.err == nil || r.broken() {
			return nil
		}
		if abi.NameOf(r.err) == abi.NameOf(abi.ErrInternal) {
			return fmt.Errorf("a code of its own, or that of an internal failure: %w", r.err)
		}
		if g, ok := w.guest.(raw); ok {
			if n, err := g.Call(abi.FuncText); err != nil || int32(n) <= 0 || int32(n) > abi.MaxText {
				return fmt.Errorf("refused as %s, and the text has %d bytes, want 1 to %d", abi.NameOf(r.err), int32(n), abi.MaxText)
			}
		}
		return nil
	})
}

// transactional refuses fleets and statuses on one of two guests.
func transactional(t *trial) error {
	bad := []struct {
		cs   []engine.Candidate
		want error
		what string
	}{
		{[]engine.Candidate{{ID: identities[0]}, {ID: identities[1]}, {ID: identities[0]}}, engine.ErrDuplicateID, "r0 twice"},
		{[]engine.Candidate{{ID: identities[2], Status: 9}}, engine.ErrConfig, "r2 with status 9"},
	}
	return t.alike(plainly, func(a, _ *world, i int) error {
		if len(a.fleet) > 0 && i%4 == 3 {
			if err := want(a.SetStatus(a.now, a.fleet[0].ID, 3), engine.ErrConfig); err != nil {
				return fmt.Errorf("%s becomes status 3: %w", nameOfID(a.fleet[0].ID), err)
			}
		}
		b := bad[i%2]
		if err := want(a.SetCandidates(a.now, b.cs), b.want); err != nil {
			return fmt.Errorf("a fleet of %s: %w", b.what, err)
		}
		a.said = append(a.said, "a fleet of "+b.what+" → "+abi.NameOf(b.want))
		return nil
	})
}

func deterministic(t *trial) error { return t.alike(plainly, nothing) }

func shifted(t *trial) error {
	return t.alike(func(w *world, c *call, i int) reply {
		if i == 0 {
			w.now = 1 << 50
		}
		return w.do(c)
	}, nothing)
}

// backwards tells the second guest instants that have passed: earlier than one that it has taken.
func backwards(t *trial) error {
	taken := false // the present instant
	return t.alike(func(w *world, c *call, _ int) reply {
		w.now += engine.Instant(c.gap)
		now := w.now
		if taken = taken && c.gap == 0; taken {
			now -= engine.Instant(1 + c.asked)
			said := t.worlds[0].said
			said[len(said)-1] += fmt.Sprintf(" (the other is told that it is %d ns earlier)", w.now-now)
		}
		r := w.doAt(c, now)
		taken = taken || r.err == nil && c.op != opEntries && c.op != opTakeOver
		return r
	}, nothing)
}

func restored(t *trial) error {
	return t.alike(plainly, func(a, b *world, i int) error {
		if i%5 != 4 {
			return nil
		}
		for range 3 { // the second goes its own way, to be brought back
			var d engine.Decision
			if err := b.Decide(&engine.Query{Now: b.now, Key: 7}, &d); err == nil {
				_ = b.Report(b.now, engine.Report{ID: d.ID, Outcome: engine.OutcomeFailure, Latency: 9})
				_ = b.Decide(&engine.Query{Now: b.now}, &d)
			}
		}
		a.said = append(a.said, "snapshot; the other, which went its own way, takes it back")
		return a.handOver(b)
	})
}

func (w *world) handOver(to *world) error {
	block, err := w.Snapshot(nil)
	if err != nil {
		return err
	}
	if err := to.Restore(block); err != nil {
		return fmt.Errorf("the other's block is refused: %w", err)
	}
	again, err := to.Snapshot(nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(block, again) {
		return errors.New("the restored block reads otherwise")
	}
	return nil
}

// carriedOver is what a host does when a guest fails: a spare hears of the fleet and takes the block.
func carriedOver(t *trial) error {
	a, err := t.world()
	if err != nil {
		return err
	}
	var b *world
	for i := range t.calls {
		c := &t.calls[i]
		one := a.do(c)
		if one.broken() {
			return nil
		}
		if b != nil {
			if two := b.do(c); two.text() != one.text() {
				return fmt.Errorf("the guest that took over says %q", two.text())
			}
		}
		if i == len(t.calls)/3 || i == 2*len(t.calls)/3 {
			if b, err = t.world(); err != nil {
				return err
			}
			b.now, b.fleet = a.now, slices.Clone(a.fleet)
			if err := b.SetCandidates(b.now, b.fleet); err != nil {
				return fmt.Errorf("a fresh guest refuses the fleet: %w", err)
			}
			a.said = append(a.said, "snapshot; a fresh guest takes over")
			if err := a.handOver(b); err != nil {
				return err
			}
		}
	}
	return nil
}
