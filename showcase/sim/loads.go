package sim

import "github.com/headroom-lb/headroom/engine"

// maxReportMean bounds [Scenario.ReportMean].
const maxReportMean = 60

// loadHistory is what a replica had done at its last reports.
type loadHistory struct {
	at   [maxReportMean]served
	n    int // reports so far
	said engine.LoadReport
}

// served is what a replica has done up to an instant.
type served struct {
	when     int64
	used     int64
	finished uint64
	failed   uint64
}

// report has a replica say what its load was, and the clients hear it a little later. The
// dead are silent, and begin anew.
func (w *World) report(i int32) {
	w.queue.push(w.now+w.sc.ReportEvery, evReport, i)
	r := &w.replicas[i]
	h := &w.loads[i]
	if r.state == StateDead {
		h.n = 0
		return
	}
	_, used := r.account(w.now)
	now := served{w.now, used, r.finished, r.failed}
	span := w.sc.ReportMean
	if h.n > 0 {
		then := &h.at[max(0, h.n-span)%span]
		h.said = r.loadSince(then, &now)
		w.queue.push(w.now+w.sc.Network, evTold, i)
	}
	h.at[h.n%span] = now
	h.n++
}

// loadSince is a replica's load between two reports.
func (r *replica) loadSince(then, now *served) engine.LoadReport {
	dt := now.when - then.when
	perSecond := func(n uint64) uint32 { return uint32(n * uint64(Second*perMille) / uint64(dt)) }
	return engine.LoadReport{
		Utilization: uint32(uint64(now.used-then.used) * perMille / uint64(r.cores) * whole / uint64(dt)),
		QPS:         perSecond(now.finished - then.finished),
		EPS:         perSecond(now.failed - then.failed),
	}
}

// told is a report at those clients who listen.
func (w *World) told(i int32) error {
	for c := range w.clients {
		if cl := &w.clients[c]; cl.listens {
			if err := known(cl.machine.RecordLoad(engine.Instant(w.now), w.ids[i], w.loads[i].said)); err != nil {
				return err
			}
		}
	}
	return nil
}
