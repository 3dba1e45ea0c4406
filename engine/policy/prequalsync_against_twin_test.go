package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

func genSyncConfig(t *rapid.T) policy.PrequalSyncConfig {
	pick := func(name string, of ...uint64) uint64 { return rapid.SampledFrom(of).Draw(t, name) }
	c := policy.DefaultPrequalSync(pick("seed", 0, 1, 7, 1<<63))
	c.Probes = int(pick("probes", 2, 3, 3, 5, 16))
	c.Wait = min(int(pick("wait", 1, 2, 2, 3, 4, 16)), c.Probes)
	c.Quantile = pick("quantile", 0, 1, 3000, 5000, 8400, 9999, 10000)
	c.Window = int(pick("window", 1, 2, 5, 16, 128))
	c.WindowAge = engine.Duration(pick("window_age", 1000, 3000, 100000))
	c.Aversion = rapid.Bool().Draw(t, "aversion")
	return c
}

// syncWalk drives engine and twin through the same calls and stops at the first difference.
func syncWalk(t *rapid.T, w *syncTwin, e engine.Machine, check bool) error {
	names := rapid.IntRange(0, 12).Draw(t, "fleet")
	fleet := func(skip int) (cs []engine.Candidate) {
		for i := range names {
			if i != skip {
				cs = append(cs, engine.Candidate{ID: engine.IDOf(fmt.Sprint("r", i))})
			}
		}
		return cs
	}
	require.NoError(t, e.SetCandidates(0, fleet(-1)))
	w.setCandidates(0, fleet(-1))
	now := engine.Instant(0)
	id := func() engine.ID {
		return engine.IDOf(fmt.Sprint("r", rapid.IntRange(0, max(names, 1)).Draw(t, "replica")))
	}
	reading := func() engine.Reading {
		rd := engine.Reading{RIF: uint32(rapid.IntRange(0, 5).Draw(t, "rif")), Latency: engine.Duration(rapid.IntRange(-1, 4).Draw(t, "latency"))}
		if rapid.IntRange(0, 9).Draw(t, "huge") == 0 { // where keys stop telling readings apart
			rd.RIF += 1<<24 - 4
			rd.Latency += 1<<33 - 3
		}
		rd.Asked = now - engine.Instant(rapid.SampledFrom([]int{0, 0, 0, 3, 700, -20}).Draw(t, "asked"))
		return rd
	}
	for range rapid.IntRange(20, 200).Draw(t, "steps") {
		now += pause(t)
		var err error
		switch op := rapid.SampledFrom([]string{
			"decide", "decide", "decide", "decide", "retry", "late", "report", "probes", "status", "fleet", "forget",
		}).Draw(t, "op"); op {
		case "decide", "retry":
			q := engine.Query{Now: now}
			for range rapid.IntRange(0, 7).Draw(t, "answers") {
				q.Answers = append(q.Answers, engine.Answer{ID: id(), Reading: reading()})
			}
			for range rapid.IntRange(0, 3).Draw(t, "tried") {
				if op == "retry" {
					q.Tried = append(q.Tried, id())
				}
			}
			var a, b engine.Decision
			err1, err2 := e.Decide(&q, &a), w.decide(q, &b)
			if err1 != nil {
				a = engine.Decision{}
			}
			err = differ(op, fmt.Sprintf("%+v %v", a, err1), fmt.Sprintf("%+v %v", b, err2))
		case "late":
			to, rd := id(), reading()
			a, err1 := e.Record(now, to, rd)
			b, err2 := w.record(now, to, rd)
			err = differ(op, fmt.Sprint(a, err1), fmt.Sprint(b, err2))
		case "report":
			r := engine.Report{ID: id(), Outcome: engine.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome"))}
			for range times(t) {
				err = errors.Join(err, differ(op, e.Report(now, r), w.report(now, r)))
			}
		case "forget":
			to := id()
			err = differ(op, e.Forget(now, to, now), w.forget(now, to, now))
		case "probes":
			due, perr := e.Probes(now, nil)
			require.NoError(t, perr)
			err = differ(op, due, w.probes(now))
		case "status":
			to, s := id(), engine.Status(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "status"))
			if e.SetStatus(now, to, s) == nil {
				w.setStatus(now, to, s)
			}
		case "fleet":
			cs := rapid.Permutation(fleet(rapid.IntRange(-1, names).Draw(t, "skip"))).Draw(t, "order")
			require.NoError(t, e.SetCandidates(now, cs))
			w.setCandidates(now, cs)
		}
		if err != nil {
			return err
		}
		if check {
			restoresItself(t, e)
		}
	}
	return differCounters(t, e, w.count)
}

func TestPrequalSyncEqualsItsSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genSyncConfig(t)
		p, err := policy.NewPrequalSync(c)
		require.NoError(t, err)
		require.NoError(t, syncWalk(t, newSyncTwin(c), engine.New(p, engine.Config{}), rapid.Bool().Draw(t, "restores")))
	})
}

func TestTheSyncTwinNoticesEveryPlantedFault(t *testing.T) {
	everyFaultIsNoticed(t, slices.Concat(syncFaults, aversionFaults), func(t *rapid.T, f fault) error {
		c := genSyncConfig(t)
		p, err := policy.NewPrequalSync(c)
		require.NoError(t, err)
		w := newSyncTwin(c)
		w.fault = f
		return syncWalk(t, w, engine.New(p, engine.Config{}), false)
	})
}
