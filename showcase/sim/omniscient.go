package sim

import "github.com/headroom-lb/headroom/engine"

// Omniscient is the spec of a bound to compare policies with. It is no policy: it sees every
// replica as it is now, neighbours and machines included, without a delay or a probe, and sends a
// query where it would be done first if nothing changed; of equals to where most room is left. It
// exists in the simulator alone.
const Omniscient = "omniscient"

// omniscient decides for one client, from the world itself.
type omniscient struct {
	w     *World
	draws stream
}

func newOmniscient(w *World, salt uint64) *omniscient {
	return &omniscient{w, newStream(salt, streamMachines, 0)}
}

// Decide looks at all replicas, from a random one on.
func (o *omniscient) Decide(_ *engine.Query, d *engine.Decision) error {
	w := o.w
	if len(w.members) == 0 {
		return engine.ErrNoCandidates
	}
	best, least, most := -1, int64(never), int64(0)
	k := int(o.draws.below(uint64(len(w.members))))
	for range w.members {
		if k++; k >= len(w.members) {
			k = 0
		}
		r := &w.replicas[w.members[k]]
		if r.state != StateUp {
			continue
		}
		n := int64(len(r.jobs)) + int64(r.coming) + 1
		have := r.available(n)
		takes := r.cost << rateBits / have * max(perMille*n, have) // for a unit of work
		if r.failing != 0 {
			takes += never / 2
		}
		room := have << rateBits / n
		if takes < least || takes == least && room > most {
			best, least, most = k, takes, room
		}
	}
	if best < 0 {
		return engine.ErrNoneEligible
	}
	*d = engine.Decision{ID: w.ids[w.members[best]], Index: uint32(best), Threshold: engine.NoThreshold}
	return nil
}

// Snapshot is the state of its draws.
func (o *omniscient) Snapshot(dst []byte) ([]byte, error) {
	for shift := 0; shift < 64; shift += 8 {
		dst = append(dst, byte(o.draws>>shift))
	}
	return dst, nil
}

// Restore takes them back.
func (o *omniscient) Restore(b []byte) error {
	if len(b) != 8 {
		return engine.ErrBlock
	}
	o.draws = 0
	for i, x := range b {
		o.draws |= stream(x) << (8 * i)
	}
	return nil
}

// The rest of a machine: nothing that it is told is news.

func (*omniscient) SetCandidates(engine.Instant, []engine.Candidate) error             { return nil }
func (*omniscient) SetStatus(engine.Instant, engine.ID, engine.Status) error           { return nil }
func (*omniscient) Report(engine.Instant, engine.Report) error                         { return nil }
func (*omniscient) RecordLoad(engine.Instant, engine.ID, engine.LoadReport) error      { return nil }
func (*omniscient) Forget(engine.Instant, engine.ID, engine.Instant) error             { return nil }
func (*omniscient) Probes(_ engine.Instant, dst []engine.ID) ([]engine.ID, error)      { return dst, nil }
func (*omniscient) Entries(_ engine.Instant, e []engine.Entry) ([]engine.Entry, error) { return e, nil }
func (*omniscient) SetInFlight([]engine.InFlight) error                                { return nil }

func (*omniscient) Record(engine.Instant, engine.ID, engine.Reading) (engine.Admission, error) {
	return engine.NotKept, nil
}

func (*omniscient) Inspect(c *engine.Counters, f *engine.Fit) error {
	*c, *f = engine.Counters{}, engine.Fit{Threshold: engine.NoThreshold}
	return nil
}
