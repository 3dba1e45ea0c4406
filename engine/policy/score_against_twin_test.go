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

// genScored draws a machine of one of the two rules and its twin.
func genScored(t *rapid.T, linear bool, f fault) (*engine.Engine, *scoreTwin) {
	c := genConfig(t)
	c.Quantile, c.Strict = 10000, false
	w := newScoreTwin(newTwin(c), linear)
	w.fault = f
	var p engine.Policy
	var err error
	if linear {
		w.lambda = rapid.SampledFrom([]uint64{0, 1, 2500, 5000, 7690, 10000}).Draw(t, "lambda")
		w.alpha = rapid.SampledFrom([]uint64{0, 1, 3, 75_000_000}).Draw(t, "alpha")
		p, err = policy.NewLinear(policy.LinearConfig{PoolConfig: c.PoolConfig, Lambda: w.lambda, Alpha: engine.Duration(w.alpha)})
	} else {
		w.clients = rapid.SampledFrom([]uint64{1, 3, 100, 1_000_000}).Draw(t, "clients")
		w.fresh = rapid.SampledFrom([]uint64{100, 5000, 9000, 10000}).Draw(t, "alpha")
		p, err = policy.NewC3(policy.C3Config{PoolConfig: c.PoolConfig, Clients: w.clients, Alpha: w.fresh})
	}
	require.NoError(t, err)
	return engine.New(p, engine.Config{}), w
}

// walkScored drives engine and twin through the same calls and stops at the first difference.
func walkScored(t *rapid.T, e *engine.Engine, w *scoreTwin, check bool) error {
	names := rapid.IntRange(1, 30).Draw(t, "fleet")
	fleet := func(skip int) (cs []engine.Candidate) {
		for i := range names {
			if i != skip {
				cs = append(cs, engine.Candidate{ID: engine.IDOf(fmt.Sprint("r", i))})
			}
		}
		return cs
	}
	set := func(now engine.Instant, cs []engine.Candidate) {
		require.NoError(t, e.SetCandidates(now, cs))
		w.setCandidates(now, cs)
	}
	set(0, fleet(-1))
	now := engine.Instant(0)
	id := func() engine.ID { return engine.IDOf(fmt.Sprint("r", rapid.IntRange(0, names).Draw(t, "replica"))) }
	ops := []string{"record", "record", "record", "record", "decide", "decide", "decide", "retry", "report", "report", "probes", "status", "fleet", "forget"}
	for range rapid.IntRange(20, 200).Draw(t, "steps") {
		now += pause(t)
		var err error
		switch op := rapid.SampledFrom(ops).Draw(t, "op"); op {
		case "record":
			rd := engine.Reading{RIF: uint32(rapid.IntRange(0, 5).Draw(t, "rif")), Latency: engine.Duration(rapid.IntRange(-1, 6).Draw(t, "latency"))}
			if rapid.IntRange(0, 9).Draw(t, "huge") == 0 {
				rd.RIF += 1<<24 - 4
				rd.Latency += 1<<40 - 3
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
			r := engine.Report{ID: id(), Outcome: engine.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome")), Latency: engine.Duration(rapid.SampledFrom([]int{-1, 0, 3, 9, 1000, 100_000}).Draw(t, "latency"))}
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
			if e.SetStatus(now, to, s) == nil {
				w.setStatus(now, to, s)
			}
		case "fleet":
			set(now, rapid.Permutation(fleet(rapid.IntRange(-1, names).Draw(t, "skip"))).Draw(t, "order"))
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

func TestLinearEqualsItsSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, w := genScored(t, true, "")
		require.NoError(t, walkScored(t, e, w, rapid.Bool().Draw(t, "restores")))
	})
}

func TestC3EqualsItsSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, w := genScored(t, false, "")
		require.NoError(t, walkScored(t, e, w, rapid.Bool().Draw(t, "restores")))
	})
}

func TestTheScoreTwinsNoticeEveryPlantedFault(t *testing.T) {
	for name, faults := range map[string][]fault{"linear": linearFaults, "c3": c3Faults} {
		t.Run(name, func(t *testing.T) {
			everyFaultIsNoticed(t, slices.Concat(faults, aversionFaults), func(t *rapid.T, f fault) error {
				e, w := genScored(t, name == "linear", f)
				return walkScored(t, e, w, false)
			})
		})
	}
}
