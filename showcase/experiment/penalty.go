package experiment

import "github.com/headroom-lb/headroom/engine"

// penalty lets failures count as latency, and as nothing else: a reading's latency grows by five
// seconds, a deadline, times the replica's average of failures. RIF stays as it was reported,
// and entries stay in the pool.
type penalty struct{ aside[failing] }

const penaltyMost = 5 * engine.Second

func newPenalty(m engine.Machine) engine.Machine { return &penalty{aside[failing]{Machine: m}} }

func (p *penalty) Report(now engine.Instant, r engine.Report) error {
	p.known[p.index[r.ID]].learn(now, r.Outcome)
	return p.Machine.Report(now, r)
}

func (p *penalty) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	f := &p.known[p.index[id]]
	f.fade(now)
	if f.average > 0 {
		rd.Latency = max(rd.Latency, 0) + engine.Duration(f.average)*penaltyMost/failureOne
	}
	return p.Machine.Record(now, id, rd)
}
