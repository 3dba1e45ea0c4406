package lbhttp

import (
	"sync/atomic"
	"time"
)

// Stats counts what a transport did beyond first attempts, since it was made. No count falls.
type Stats struct {
	Queries        int64         // that had a first attempt
	Retries        int64         // attempts after one that failed
	RetriesRefused int64         // that the budget did not allow
	HedgesWon      int64         // second attempts whose answer came first
	HedgesLost     int64         // that were overtaken, or failed
	HedgesRefused  int64         // that the budget did not allow
	HedgeAfter     time.Duration // the delay in force; 0 for none
}

type counts struct {
	queries, retries, retriesRefused     atomic.Int64
	hedgesWon, hedgesLost, hedgesRefused atomic.Int64
}

// Stats reads the counts. A hedge is counted when it has ended.
func (t *Transport) Stats() Stats {
	c := &t.counts
	s := Stats{
		Queries: c.queries.Load(), Retries: c.retries.Load(), RetriesRefused: c.retriesRefused.Load(),
		HedgesWon: c.hedgesWon.Load(), HedgesLost: c.hedgesLost.Load(), HedgesRefused: c.hedgesRefused.Load(),
	}
	if t.hedge != nil {
		s.HedgeAfter, _ = t.hedge.delay(t.balancer.Now())
	}
	return s
}
