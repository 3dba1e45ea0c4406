package host

import (
	"sync/atomic"

	"github.com/headroom-lb/headroom/engine"
)

// Stats are a balancer's counts since it was made. Regime and Cause index the arrays.
type Stats struct {
	ArmStats          // of all arms
	Errors     uint64 // queries that were not placed
	ByCause    [engine.Causes]uint64
	Probes     ProbeStats
	Rebuilds   uint64 // guests started anew after one
	Slow       uint64 // decisions of foreign guests that took too long
	Swaps      uint64
	Generation uint64 // of the live policy
	Shards     int
	Salt       uint64           // stirred into the spec's seed
	Counters   engine.Counters  // summed over shards and their machines
	Fit        engine.Fit       // of the first shard
	Canary     *CanaryStats     // nil if none runs
	Canaries   ArmStats         // of all canaries since the balancer was made; for the rest see [Stats.Live]
	Comparison *ComparisonStats // nil if none runs
	Recorder   *RecorderStats   // nil if nothing is recorded

	live ArmStats
}

// ArmStats are the counts of one arm, live or canary. Over the swaps and the canaries of a balancer's
// life they only grow, but for InFlight.
type ArmStats struct {
	Decisions uint64
	ByRegime  [engine.Regimes]uint64
	Outcomes  [4]uint64 // by engine.Outcome
	InFlight  int64     // placements not done
	Traps     uint64    // guest failures
}

func (s *ArmStats) add(o *ArmStats) {
	s.Decisions, s.InFlight, s.Traps = s.Decisions+o.Decisions, s.InFlight+o.InFlight, s.Traps+o.Traps
	for i, n := range o.ByRegime {
		s.ByRegime[i] += n
	}
	for i, n := range o.Outcomes {
		s.Outcomes[i] += n
	}
}

// Live is what the live arm's part of the counts is.
func (s *Stats) Live() ArmStats { return s.live }

// ComparisonStats are the counts of a comparison: [Comparison.Report] has examples too.
type ComparisonStats struct {
	Spec                 string // of the other policy, in its canonical form
	Decisions, Different uint64
	Missed               uint64 // not compared: the other machine had fallen behind
	Failed               bool
}

// CanaryStats are the counts of a canary, which [Stats] counts too.
type CanaryStats struct {
	Spec       string
	Generation uint64
	Share      uint32 // parts per 10,000
	ArmStats
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
	live     tally
	canaries tally // all of them, since a canary's own counts end with it
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

// inFlight is the number of placements that are not done.
func (c *counts) inFlight() int64 { return c.live.inFlight.Load() + c.canaries.inFlight.Load() }

// tallies are where a shard's placements are counted: its arm's, and if that is a canary its own.
func (s *shard) tallies() (arm, own *tally) {
	if s.tally == nil {
		return &s.b.counts.live, nil
	}
	return &s.b.counts.canaries, s.tally
}

// tally is what is counted for each arm apart.
type tally struct {
	byRegime [engine.Regimes]atomic.Uint64
	outcomes [4]atomic.Uint64
	inFlight atomic.Int64
	traps    atomic.Uint64
}

func (t *tally) begin(r engine.Regime) {
	if t == nil {
		return
	}
	t.byRegime[r].Add(1)
	t.inFlight.Add(1)
}

func (t *tally) end(o engine.Outcome) {
	if t == nil {
		return
	}
	if int(o) < len(t.outcomes) {
		t.outcomes[o].Add(1)
	}
	t.inFlight.Add(-1)
}

func (t *tally) trapped() {
	if t != nil {
		t.traps.Add(1)
	}
}

func (t *tally) read() ArmStats {
	s := ArmStats{InFlight: t.inFlight.Load(), Traps: t.traps.Load()}
	for i := range t.byRegime {
		s.ByRegime[i] = t.byRegime[i].Load()
		s.Decisions += s.ByRegime[i]
	}
	for i := range t.outcomes {
		s.Outcomes[i] = t.outcomes[i].Load()
	}
	return s
}

// Stats reads the counts. They are read one after the other, not at a single instant.
func (b *Balancer) Stats() Stats {
	c, live := &b.counts, b.live.Load()
	s := Stats{
		Errors: c.errors.Load(), Rebuilds: c.rebuilds.Load(), Slow: c.slow.Load(), Swaps: c.swaps.Load(), Generation: live.generation,
		Probes: ProbeStats{c.sent.Load(), c.answered.Load(), c.failed.Load(), c.shed.Load(), c.late.Load()},
		Shards: len(live.shards), Salt: b.salt, Canaries: c.canaries.read(), live: c.live.read(),
	}
	s.ArmStats = s.live
	s.add(&s.Canaries)
	for i := range c.byCause {
		s.ByCause[i] = c.byCause[i].Load()
	}
	for i, sh := range live.shards {
		one, fit := sh.inspect()
		for i, v := range one.Each() {
			*s.Counters.Each()[i] += *v
		}
		if i == 0 {
			s.Fit = fit
		}
	}
	if a := b.canary.Load(); a != nil {
		s.Canary = &CanaryStats{a.spec, a.generation, a.share, a.shards[0].tally.read()}
	}
	if c := b.comparison.Load(); c != nil {
		c.mu.Lock()
		s.Comparison = &ComparisonStats{c.arm.spec, c.decisions.Load(), c.different.Load(), c.missed.Load(), c.failure != nil}
		c.mu.Unlock()
	}
	if b.opts.recorder != nil {
		r := b.opts.recorder.Stats()
		s.Recorder = &r
	}
	return s
}

// inspect asks the machine what it counted. While there is none, what is known stands.
func (s *shard) inspect() (engine.Counters, engine.Fit) {
	s.mu.Lock()
	defer s.release()
	if s.machine != nil {
		_ = s.contain(s.count(s.machine))
	}
	return s.counters.total, s.fitted
}

// count takes note of what the machine has counted since it was last asked.
func (s *shard) count(m engine.Machine) error {
	var c engine.Counters
	var f engine.Fit
	if err := m.Inspect(&c, &f); err != nil {
		return err
	}
	s.counters.add(&c)
	s.fitted = f
	return nil
}

// countFrom takes note of where the counts of a machine begin that takes over. With the block of the one
// before it that is where that one was; else what it has counted is its trial, and readings that
// were handed to it.
func (s *shard) countFrom(m engine.Machine, same bool) error {
	if same {
		return s.count(m)
	}
	return m.Inspect(&s.counters.last, &engine.Fit{})
}

// grown are counts over the lives of several machines. They only grow: a count that falls would be taken for a
// start from nothing.
type grown struct{ total, last engine.Counters }

// add takes a machine's counts as they are now. They are lower than the last ones if its state is of a
// moment ago; what it counts from there is new.
func (g *grown) add(now *engine.Counters) {
	total, last := g.total.Each(), g.last.Each()
	for i, v := range now.Each() {
		if *v > *last[i] {
			*total[i] += *v - *last[i]
		}
		*last[i] = *v
	}
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
