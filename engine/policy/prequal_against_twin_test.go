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

// genConfig draws settings in which every branch of the rule is near: short ages, small
// pools and windows, odd rates.
func genConfig(t *rapid.T) policy.PrequalConfig {
	pick := func(name string, of ...uint64) uint64 { return rapid.SampledFrom(of).Draw(t, name) }
	c := policy.DefaultPrequal(pick("seed", 0, 1, 7, 1<<63))
	c.Pool = int(pick("pool", 1, 2, 3, 4, 6, 16, 17, 40))
	c.MinPool = min(int(pick("min_pool", 1, 2, 3)), c.Pool)
	c.Quantile = pick("quantile", 0, 1, 3000, 5000, 8400, 9999, 10000)
	c.ProbeRate = pick("probe_rate", 0, 5000, 10000, 30000, 33333)
	c.RemoveRate = pick("remove_rate", 0, 2500, 10000, 10000, 25000)
	c.Delta = pick("delta", 0, 10000, 12345)
	c.Window = int(pick("window", 1, 2, 5, 16, 128))
	c.MaxAge = engine.Duration(pick("max_age", 1000, 1001, 5000))
	c.WindowAge = engine.Duration(pick("window_age", 1000, 3000, 100000))
	c.Idle = engine.Duration(pick("idle", 0, 500, 5000))
	c.Reuse = pick("reuse", 0, 0, 0, 10000, 13160, 30000)
	c.Aversion = rapid.Bool().Draw(t, "aversion")
	return c
}

// walk drives engine and twin through the same calls and stops at the first difference.
func walk(t *rapid.T, w *twin, e engine.Machine, check bool) error {
	names := rapid.IntRange(0, 30).Draw(t, "fleet")
	fleet := func(n, skip int) (cs []engine.Candidate) {
		for i := range n {
			if i != skip {
				cs = append(cs, engine.Candidate{ID: engine.IDOf(fmt.Sprint("r", i))})
			}
		}
		return cs
	}
	cs := fleet(names, -1)
	require.NoError(t, e.SetCandidates(0, cs))
	w.setCandidates(0, cs)
	now := engine.Instant(0)
	id := func() engine.ID {
		return engine.IDOf(fmt.Sprint("r", rapid.IntRange(0, max(names, 1)).Draw(t, "replica")))
	}
	for range rapid.IntRange(20, 250).Draw(t, "steps") {
		now += pause(t)
		var err error
		switch op := rapid.SampledFrom([]string{
			"record", "record", "record", "record", "decide", "decide", "decide", "retry", "report", "probes", "status", "fleet", "forget", "entries",
		}).Draw(t, "op"); op {
		case "record":
			rd := engine.Reading{RIF: uint32(rapid.IntRange(0, 5).Draw(t, "rif")), Latency: engine.Duration(rapid.IntRange(-1, 6).Draw(t, "latency"))}
			if rapid.IntRange(0, 9).Draw(t, "huge") == 0 { // where keys stop telling entries apart
				rd.RIF += 1<<24 - 4
				rd.Latency += 1<<33 - 3
			}
			rd.Asked = now - engine.Instant(rapid.SampledFrom([]int{0, 0, 0, 100, 700, -20}).Draw(t, "asked"))
			to := id()
			a, err1 := e.Record(now, to, rd)
			b, err2 := w.record(now, to, rd)
			err = differ(op, fmt.Sprint(a, err1), fmt.Sprint(b, err2))
		case "decide", "retry":
			q := engine.Query{Now: now}
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
		case "report":
			r := engine.Report{ID: id(), Outcome: engine.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome"))}
			for range times(t) {
				err = errors.Join(err, differ(op, e.Report(now, r), w.report(now, r)))
			}
		case "forget":
			to := id()
			asked := now - engine.Instant(rapid.SampledFrom([]int{0, 0, 100, 700, -20}).Draw(t, "asked"))
			err = differ(op, e.Forget(now, to, asked), w.forget(now, to, asked))
		case "probes":
			due, perr := e.Probes(now, nil)
			require.NoError(t, perr)
			err = differ(op, due, w.probes(now))
		case "status":
			to, s := id(), engine.Status(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "status"))
			if err1 := e.SetStatus(now, to, s); err1 == nil {
				w.setStatus(now, to, s)
			}
		case "fleet":
			cs := rapid.Permutation(fleet(names, rapid.IntRange(-1, names).Draw(t, "skip"))).Draw(t, "order")
			require.NoError(t, e.SetCandidates(now, cs))
			w.setCandidates(now, cs)
		case "entries":
			es, eerr := e.Entries(now, nil)
			require.NoError(t, eerr)
			seen := w.now
			w.now = max(w.now, now)
			err = differ(op, es, w.entries())
			w.now = seen
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

// restoresItself hands a machine its own block.
func restoresItself(t *rapid.T, e engine.Machine) {
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	require.NoError(t, e.Restore(block), "a machine restores its own block")
}

// differ says where engine and twin part, in words.
func differ(what string, got, want any) error {
	if fmt.Sprint(got) == fmt.Sprint(want) {
		return nil
	}
	return fmt.Errorf("%w: %s: engine %v, twin %v", errDiffer, what, got, want)
}

func differCounters(t *rapid.T, e engine.Machine, want engine.Counters) error {
	var c engine.Counters
	var f engine.Fit
	require.NoError(t, e.Inspect(&c, &f))
	return differ("counters", c, want)
}

func TestPrequalEqualsItsSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genConfig(t)
		p, err := policy.NewPrequal(c)
		require.NoError(t, err)
		require.NoError(t, walk(t, newTwin(c), engine.New(p, engine.Config{}), rapid.Bool().Draw(t, "restores")))
	})
}

// everyFaultIsNoticed plants each fault and looks for a walk that shows it: a law that cannot fail
// proves nothing.
func everyFaultIsNoticed(t *testing.T, faults []fault, walk func(t *rapid.T, f fault) error) {
	t.Helper()
	for _, f := range faults {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			walks := rapid.Custom(func(t *rapid.T) error { return walk(t, f) })
			for seed := range 3000 {
				if err := walks.Example(seed); err != nil {
					require.ErrorIs(t, err, errDiffer)
					t.Logf("noticed in walk %d", seed)
					return
				}
			}
			t.Fatal("not noticed in 3,000 walks")
		})
	}
}

func TestTheTwinNoticesEveryPlantedFault(t *testing.T) {
	everyFaultIsNoticed(t, slices.Concat(faults, aversionFaults), func(t *rapid.T, f fault) error {
		c := genConfig(t)
		p, err := policy.NewPrequal(c)
		require.NoError(t, err)
		w := newTwin(c)
		w.fault = f
		return walk(t, w, engine.New(p, engine.Config{}), false)
	})
}
