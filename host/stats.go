package host

import (
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// Stats are a balancer's counts since it was made. Regime and Cause index the arrays.
type Stats struct {
	Decisions uint64
	Errors    uint64 // queries that were not placed
	ByRegime  [engine.Regimes]uint64
	ByCause   [engine.Causes]uint64
	Outcomes  [4]uint64 // by engine.Outcome
	InFlight  int64     // placements not done
	Probes    ProbeStats
	Traps     uint64 // guest failures
	Rebuilds  uint64 // guests started anew after one
	Shards    int
	Salt      uint64          // stirred into the spec's seed
	Counters  engine.Counters // summed over shards
	Fit       engine.Fit      // of the first shard
}

// ProbeStats count probes by what became of them.
type ProbeStats struct {
	Sent     uint64
	Answered uint64
	Failed   uint64
	Shed     uint64 // not sent: the prober or the replica had its hands full
	Late     uint64 // of those answered, after the query they were sent for had been placed
}

type counts struct {
	errors   atomic.Uint64
	byRegime [engine.Regimes]atomic.Uint64
	byCause  [engine.Causes]atomic.Uint64
	outcomes [4]atomic.Uint64
	inFlight atomic.Int64
	sent     atomic.Uint64
	answered atomic.Uint64
	failed   atomic.Uint64
	shed     atomic.Uint64
	late     atomic.Uint64
	traps    atomic.Uint64
	rebuilds atomic.Uint64
}

// Stats reads the counts. They are read one after the other, not at a single instant.
func (b *Balancer) Stats() Stats {
	c := &b.counts
	s := Stats{
		Errors: c.errors.Load(), InFlight: c.inFlight.Load(), Traps: c.traps.Load(), Rebuilds: c.rebuilds.Load(),
		Probes: ProbeStats{c.sent.Load(), c.answered.Load(), c.failed.Load(), c.shed.Load(), c.late.Load()},
		Shards: len(b.shards), Salt: b.salt,
	}
	for i := range c.byRegime {
		s.ByRegime[i] = c.byRegime[i].Load()
		s.Decisions += s.ByRegime[i]
	}
	for i := range c.byCause {
		s.ByCause[i] = c.byCause[i].Load()
	}
	for i := range c.outcomes {
		s.Outcomes[i] = c.outcomes[i].Load()
	}
	for i, sh := range b.shards {
		var one engine.Counters
		var fit engine.Fit
		sh.with(func(m engine.Machine) error { return m.Inspect(&one, &fit) })
		for i, v := range one.Each() {
			*s.Counters.Each()[i] += *v
		}
		if i == 0 {
			s.Fit = fit
		}
	}
	return s
}

// PoolEntry is an entry of the live pool under its endpoint's name.
type PoolEntry struct {
	Shard    int
	Endpoint string
	engine.Entry
}

// Entries shows the live pools of all shards.
func (b *Balancer) Entries() []PoolEntry {
	var out []PoolEntry
	for i, sh := range b.shards {
		var es []engine.Entry
		var f *fleet
		sh.with(func(m engine.Machine) (err error) {
			f = sh.fleet
			es, err = m.Entries(b.Now(), nil)
			return err
		})
		for _, e := range es {
			name := ""
			if slot, ok := f.byID[e.ID]; ok {
				name = f.endpoints[slot].Name
			}
			out = append(out, PoolEntry{i, name, e})
		}
	}
	return out
}
