package experiment

import "github.com/headroom-lb/headroom/engine"

// refusal drops a replica's entry when it fails a query, and takes no reading of it for the next
// ten seconds. Only blind draws reach it in that time.
type refusal struct{ aside[engine.Instant] }

const refuseFor = 10 * engine.Second

func newRefusal(m engine.Machine) engine.Machine { return &refusal{aside[engine.Instant]{Machine: m}} }

func (r *refusal) Report(now engine.Instant, rep engine.Report) error {
	if err := r.Machine.Report(now, rep); err != nil || !bad(rep.Outcome) {
		return err
	}
	r.known[r.index[rep.ID]] = now + engine.Instant(refuseFor)
	return r.Machine.Forget(now, rep.ID, now)
}

func (r *refusal) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	if now < r.known[r.index[id]] {
		return engine.NotKept, nil
	}
	return r.Machine.Record(now, id, rd)
}
