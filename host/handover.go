package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// before is how much earlier than now a machine that takes over is told of the fleet: readings
// are handed to it at the instants of their receipt, and nobody is new to the fleet for that.
const before = engine.Instant(time.Hour)

// handover is what a shard's machine leaves to one that follows it, or stands beside it.
type handover struct {
	at      engine.Instant
	fleet   *fleet
	block   []byte
	exact   bool           // the block is of now, and not of a moment ago
	taken   bool           // the block, by the machine that it was given to
	entries []engine.Entry // for a machine that does not take the block
}

// counting says which of the open placements a machine counts in flight.
type counting int

const (
	countsAll  counting = iota // it was told of them by name
	countsSame                 // those that the one before it counts: they stand in the block
	countsNone                 // it starts anew
)

// state is what the present machine would hand over. A guest that fails at it is discarded as at any
// other call, and whoever stands in is asked. The caller holds the lock.
func (s *shard) state() handover {
	for {
		h := handover{at: s.b.Now(), fleet: s.fleet, block: s.block}
		m := s.machine
		if m == nil {
			return h
		}
		block, err := m.Snapshot(nil)
		if err == nil {
			h.block, h.exact = block, true
			h.entries, err = m.Entries(h.at, nil)
		}
		if err == nil {
			err = s.count(m)
		}
		if !failed(s.contain(err)) {
			return h
		}
	}
}

// give hands it to a machine: fleet, block or readings, and by name what is open. A guest of before
// ABI 1.2, or one that refuses, cannot be told that. It keeps the counts in an exact block if they are of the placements that
// it is to count, which own says; else it starts from none. On an error the machine is of no use.
func (h *handover) give(m engine.Machine, open []engine.InFlight, own bool) (counting, error) {
	if err := m.SetCandidates(h.at-before, h.fleet.candidates); err != nil {
		return countsNone, err
	}
	err := m.Restore(h.block)
	if failed(err) {
		return countsNone, err
	}
	if h.taken = err == nil; !h.taken {
		if err := replay(m, h.entries, h.at); err != nil {
			return countsNone, err
		}
	}
	err = m.SetInFlight(open)
	switch {
	case err == nil:
		return countsAll, nil
	case failed(err):
		return countsNone, err
	case !h.taken:
		return countsNone, nil
	case h.exact && own:
		return countsSame, nil
	}
	return countsNone, h.forgetCounts(m)
}

// forgetCounts leads a guest to which counts cannot be told back to none: it loses everybody, and then
// has the readings again.
func (h *handover) forgetCounts(m engine.Machine) error {
	held, err := m.Entries(h.at, nil)
	if err != nil {
		return err
	}
	if err := m.SetCandidates(h.at-before, nil); err != nil {
		return err
	}
	if err := m.SetCandidates(h.at-before, h.fleet.candidates); err != nil {
		return err
	}
	return replay(m, held, h.at)
}

// replay hands readings over, in the order of their receipt. They are a guest's word, and a machine's clock never
// goes back: one of the future would stop it there.
func replay(m engine.Machine, entries []engine.Entry, now engine.Instant) error {
	slices.SortFunc(entries, func(a, b engine.Entry) int { return cmp.Compare(a.At, b.At) })
	for _, e := range entries {
		at := min(e.At, now)
		_, err := m.Record(at, e.ID, engine.Reading{RIF: e.RawRIF, Latency: e.RawLatency, Asked: min(e.Asked, at)})
		if failed(err) {
			return err
		}
	}
	return nil
}

// sit puts a machine in place and hands over what is known: the state of the one that leaves, or what
// was kept of it, and what is open. On an error the old one stays. The caller holds the lock.
func (s *shard) sit(m engine.Machine, h handover) error {
	counts, err := h.give(m, s.inFlight(), true)
	if err != nil {
		return err
	}
	if err := s.countFrom(m, h.taken); err != nil {
		return err
	}
	switch counts {
	case countsAll:
		for p := s.open; p != nil; p = p.later {
			p.counted = s.serial
		}
	case countsNone:
		s.serial++ // what is open is taken off nobody's count
	}
	s.take(m)
	return nil
}

// take makes a machine that knows what it must the shard's.
func (s *shard) take(m engine.Machine) {
	if r, ok := s.machine.(*recorded); ok {
		r.finish()
	}
	s.machine, s.since, s.served, s.late, s.kept = s.recording(m), time.Now(), 0, 0, s.b.Now()-before
}
