package host

import (
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// Stats are a balancer's counts since it was made. Regime and Cause index the arrays.
type Stats struct {
	Decisions  uint64
	Errors     uint64 // queries that were not placed
	ByRegime   [engine.Regimes]uint64
	ByCause    [engine.Causes]uint64
	Outcomes   [4]uint64 // by engine.Outcome
	InFlight   int64     // placements not done
	Probes     ProbeStats
	Traps      uint64 // guest failures
	Rebuilds   uint64 // guests started anew after one
	Slow       uint64 // decisions of foreign guests that took too long
	Swaps      uint64
	Generation uint64 // of the live policy
	Shards     int
	Salt       uint64          // stirred into the spec's seed
	Counters   engine.Counters // summed over shards
	Fit        engine.Fit      // of the first shard
	Canary     *CanaryStats    // nil if none runs
}

// CanaryStats are the counts of a canary, which [Stats] counts too.
type CanaryStats struct {
	Spec       string
	Generation uint64
	Share      uint32 // parts per 10,000
	Decisions  uint64
	ByRegime   [engine.Regimes]uint64
	Outcomes   [4]uint64
	InFlight   int64
	Traps      uint64
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
	tally
	errors   atomic.Uint64
	byCause  [engine.Causes]atomic.Uint64
	sent     atomic.Uint64
	answered atomic.Uint64
	failed   atomic.Uint64
	shed     atomic.Uint64
	late     atomic.Uint64
	rebuilds atomic.Uint64
	slow     atomic.Uint64
	swaps    atomic.Uint64
}

// tally is what is counted for a canary apart too.
type tally struct {
	byRegime [engine.Regimes]atomic.Uint64
	outcomes [4]atomic.Uint64
	inFlight atomic.Int64
	traps    atomic.Uint64
}

func (t *tally) begin(r engine.Regime) {
	t.byRegime[r].Add(1)
	t.inFlight.Add(1)
}

func (t *tally) end(o engine.Outcome) {
	if int(o) < len(t.outcomes) {
		t.outcomes[o].Add(1)
	}
	t.inFlight.Add(-1)
}

func (t *tally) read(regimes *[engine.Regimes]uint64, outcomes *[4]uint64) (decisions uint64) {
	for i := range t.byRegime {
		regimes[i] = t.byRegime[i].Load()
		decisions += regimes[i]
	}
	for i := range t.outcomes {
		outcomes[i] = t.outcomes[i].Load()
	}
	return decisions
}

// Stats reads the counts. They are read one after the other, not at a single instant.
func (b *Balancer) Stats() Stats {
	c, live := &b.counts, b.live.Load()
	s := Stats{
		Errors: c.errors.Load(), InFlight: c.inFlight.Load(), Traps: c.traps.Load(), Rebuilds: c.rebuilds.Load(),
		Slow: c.slow.Load(), Swaps: c.swaps.Load(), Generation: live.generation,
		Probes: ProbeStats{c.sent.Load(), c.answered.Load(), c.failed.Load(), c.shed.Load(), c.late.Load()},
		Shards: len(live.shards), Salt: b.salt,
	}
	s.Decisions = c.read(&s.ByRegime, &s.Outcomes)
	for i := range c.byCause {
		s.ByCause[i] = c.byCause[i].Load()
	}
	for i, sh := range live.shards {
		var one engine.Counters
		var fit engine.Fit
		sh.look(func(m engine.Machine) error { return m.Inspect(&one, &fit) })
		for i, v := range one.Each() {
			*s.Counters.Each()[i] += *v
		}
		if i == 0 {
			s.Fit = fit
		}
	}
	if a := b.canary.Load(); a != nil {
		t := a.shards[0].tally
		s.Canary = &CanaryStats{Spec: a.spec, Generation: a.generation, Share: a.share, InFlight: t.inFlight.Load(), Traps: t.traps.Load()}
		s.Canary.Decisions = t.read(&s.Canary.ByRegime, &s.Canary.Outcomes)
	}
	return s
}

// PoolEntry is an entry of the live pool under its endpoint's name.
type PoolEntry struct {
	Shard    int
	Endpoint string
	engine.Entry
}

// Entries shows the pools of all live shards.
func (b *Balancer) Entries() []PoolEntry {
	var out []PoolEntry
	for i, sh := range b.live.Load().shards {
		var es []engine.Entry
		var f *fleet
		sh.look(func(m engine.Machine) (err error) {
			f = sh.fleet
			es, err = m.Entries(b.Now(), nil)
			return err
		})
		for _, e := range es {
			out = append(out, PoolEntry{i, f.name(e.ID), e})
		}
	}
	return out
}
