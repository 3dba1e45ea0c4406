package experiment

import "github.com/headroom-lb/headroom/engine"

// former is the rule that was in the engine before: averages that readings make fade, one percent
// each, and that weigh whatever is usual. It forgives late in a large fleet, where a client has few
// readings of each replica, and turns away from whoever failed last when all fail alike.
type former struct{ aside[uint64] }

const (
	formerOne    = 1 << 16 // every query failed
	formerWeight = 100
)

func newFormer(m engine.Machine) engine.Machine { return &former{aside[uint64]{Machine: m}} }

func (f *former) Report(now engine.Instant, rep engine.Report) error {
	if err := f.Machine.Report(now, rep); err != nil {
		return err
	}
	average := &f.known[f.index[rep.ID]]
	switch {
	case bad(rep.Outcome):
		*average = (4**average + formerOne) / 5
		return f.Machine.Forget(now, rep.ID, now)
	case rep.Outcome == engine.OutcomeSuccess:
		*average = 4 * *average / 5
	}
	return nil
}

func (f *former) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	if average := &f.known[f.index[id]]; *average != 0 {
		*average = *average * 99 / 100
		factor := formerOne + formerWeight**average
		rd.RIF = uint32((uint64(rd.RIF)+1)*factor/formerOne - 1)
		if rd.Latency != engine.UnknownLatency {
			rd.Latency = engine.Duration(uint64(rd.Latency) * factor / formerOne) // at most a deadline times a hundred
		} else if factor >= 2*formerOne {
			rd.Latency = engine.MaxLatency
		}
	}
	return f.Machine.Record(now, id, rd)
}
