package experiment

import "github.com/headroom-lb/headroom/engine"

// relative weighs readings as the shipped rule does, but against what is usual: a replica's
// average of failures counts only beyond twice this client's own over all replicas, so that a
// fault which all share turns it away from none. Averages fade with time, and not with readings,
// of which a small fleet gives many. A RIF of none is raised too: else a replica that fails at
// once is never hot, and beats everyone as soon as all others are.
type relative struct {
	aside[failing]
	usual uint64 // failures among the last few hundred queries; failureOne is all
}

const (
	relativeWeight = 100
	relativeTwice  = 2
	usualMemory    = 256     // queries
	one16          = 1 << 16 // a factor of one
)

func newRelative(m engine.Machine) engine.Machine {
	return &relative{aside: aside[failing]{Machine: m}}
}

func (r *relative) Report(now engine.Instant, rep engine.Report) error {
	if err := r.Machine.Report(now, rep); err != nil {
		return err
	}
	r.known[r.index[rep.ID]].learn(now, rep.Outcome)
	switch {
	case bad(rep.Outcome):
		r.usual += (failureOne - r.usual) / usualMemory
		return r.Machine.Forget(now, rep.ID, now)
	case rep.Outcome == engine.OutcomeSuccess:
		r.usual -= r.usual / usualMemory
	}
	return nil
}

func (r *relative) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	f := &r.known[r.index[id]]
	f.fade(now)
	if usual := relativeTwice * r.usual; f.average > usual {
		factor := one16 + relativeWeight*(f.average-usual)*one16/failureOne
		rd.RIF = uint32((uint64(rd.RIF)+1)*factor/one16 - 1)
		if rd.Latency == engine.UnknownLatency {
			rd.Latency = engine.MaxLatency
		} else {
			// At most a deadline times a hundred: far from an overflow.
			rd.Latency = engine.Duration(uint64(rd.Latency) * factor / one16)
		}
	}
	return r.Machine.Record(now, id, rd)
}
