package policy_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

func TestPrequalKeepsTheLawsOfPools(t *testing.T) {
	enginetest.TestPool(t, func(settings string) enginetest.Maker { return enginetest.Native(policy.Parse, "prequal "+settings) })
}

// twinMachine is the twin as a machine, as far as the laws of pools look.
type twinMachine struct{ w *twin }

func (m twinMachine) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	m.w.setCandidates(now, cs)
	return nil
}
func (m twinMachine) SetStatus(now engine.Instant, id engine.ID, s engine.Status) error {
	m.w.setStatus(now, id, s)
	return nil
}
func (m twinMachine) Decide(q *engine.Query, d *engine.Decision) error { return m.w.decide(*q, d) }
func (m twinMachine) Report(now engine.Instant, r engine.Report) error { return m.w.report(now, r) }
func (m twinMachine) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	return m.w.record(now, id, rd)
}
func (m twinMachine) RecordLoad(engine.Instant, engine.ID, engine.LoadReport) error { return nil }
func (m twinMachine) Forget(now engine.Instant, id engine.ID, asked engine.Instant) error {
	return m.w.forget(now, id, asked)
}
func (m twinMachine) Probes(now engine.Instant, dst []engine.ID) ([]engine.ID, error) {
	return append(dst, m.w.probes(now)...), nil
}
func (m twinMachine) Entries(now engine.Instant, dst []engine.Entry) ([]engine.Entry, error) {
	seen := m.w.now
	m.w.now = max(seen, now)
	defer func() { m.w.now = seen }()
	return append(dst, m.w.entries()...), nil
}
func (m twinMachine) Inspect(c *engine.Counters, f *engine.Fit) error {
	pool, _, _, _ := m.w.plan()
	*c, *f = m.w.count, engine.Fit{Pool: uint32(pool)}
	return nil
}
func (m twinMachine) Snapshot(dst []byte) ([]byte, error) { return dst, nil }
func (m twinMachine) Restore([]byte) error                { return engine.ErrBlock }
func (m twinMachine) SetInFlight([]engine.InFlight) error { return nil }

func twins(variant string, f fault) enginetest.PoolMaker {
	return func(settings string) enginetest.Maker {
		return func() (engine.Machine, func(), error) {
			p, err := policy.Parse("prequal variant=" + variant + " " + settings)
			if err != nil {
				return nil, nil, err
			}
			w := newTwin(policy.ConfigOf(p))
			if variant == "keen" {
				w = newKeenTwin(policy.ConfigOf(p))
			}
			w.fault = f
			return twinMachine{w}, func() {}, nil
		}
	}
}

func TestTheTwinKeepsTheLawsOfPools(t *testing.T) {
	for _, law := range enginetest.PoolLaws() {
		assert.NoError(t, law.Check(twins("paper", ""), 1, 500), law.Name)
	}
}

// Every fault that the comparison with the twin can see, the laws see from outside too.
func TestTheLawsOfPoolsNoticeEveryPlantedFault(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds; TestEachLawOfPoolsNoticesItsFault is the short form")
	}
	for _, f := range append(faults, "aversion forgotten", "failures never fade", "failures fade by readings", "shared faults count",
		"the usual is the last few", "a RIF of none stays", "cancelled queries count", "unknown latency of the failing is usual") {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(4) {
				for _, law := range enginetest.PoolLaws() {
					if err := law.Check(twins("paper", f), seed, 300); err != nil {
						t.Logf("%s: %v", law.Name, err)
						return
					}
				}
			}
			t.Fatal("no law noticed")
		})
	}
}

// Each law must be able to fail by itself.
func TestEachLawOfPoolsNoticesItsFault(t *testing.T) {
	for law, f := range map[string]fault{
		"any cold one on offer decides, none faster; else the least RIF":                   "hot at the threshold",
		"the threshold is the quantile of recent readings, whatever the pool holds":        "stale reading skips the window",
		"raising the quantile never shrinks the cold set":                                  "quantile turned round",
		"the hot branch is reached, and the cold one":                                      "threshold ranked over the pool",
		"ties are not settled by position, and not alike for all":                          "ties by slot",
		"a pool stays within its bound, one entry for each replica":                        "pool without a bound",
		"the newest reading of a replica counts; a full pool lets its oldest go":           "late answers win",
		"no entry is older than it may be":                                                 "entries never age",
		"a decision takes one use of one entry, and the last use takes the entry":          "charged twice",
		"whatever branch decides, its replica's RIF grows by one and no other":             "compensated twice",
		"one entry leaves before each decision, the worst and the oldest in turn":          "removal always worst",
		"probes and removals come at the rates set, to within one":                         "rest of the removal credit lost",
		"probes go to distinct eligible replicas":                                          "probes with replacement",
		"the rounded reuse budget keeps its mean":                                          "budget always rounded up",
		"a failure drops the entry of its replica":                                         "failure keeps its entry",
		"who fails alone ranks behind, for a time, and a fault of all ranks nobody behind": "shared faults count",
		"renaming replicas renames decisions":                                              "names settle",
		"scaling all latencies changes nothing":                                            "latency in units of its own",
	} {
		laws := enginetest.PoolLaws()
		at := slices.IndexFunc(laws, func(l enginetest.PoolLaw) bool { return l.Name == law })
		if assert.GreaterOrEqual(t, at, 0, law) {
			assert.Contains(t, slices.Concat(faults, aversionFaults), f)
			assert.Error(t, laws[at].Check(twins("paper", f), 1, 800), "%s, with the fault %q", law, f)
		}
	}
}

// D7 of the seed library: a reading dated in the future outlived and outranked every honest
// one, and could pin the pool.
func TestD7AReadingOfTheFutureAgesLikeAnyOther(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 max_age=1ms remove_rate=0 reuse=9", 20)
	_, err := e.Record(0, cs[0].ID, engine.Reading{Asked: 1 << 60})
	require.NoError(t, err)
	a, err := e.Record(1, cs[0].ID, engine.Reading{RIF: 5, Latency: 7, Asked: 1})
	require.NoError(t, err)
	assert.Equal(t, engine.Replaced, a, "an honest one takes its place")
	_, err = e.Record(1, cs[1].ID, engine.Reading{Asked: 1 << 62})
	require.NoError(t, err)
	es, err := e.Entries(engine.Instant(engine.Millisecond)+1, nil)
	require.NoError(t, err)
	assert.Empty(t, es, "and it is gone when it is as old as the others")
}
