package policy_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

func TestEveryPolicyKeepsTheLaws(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) { enginetest.TestPolicy(t, enginetest.Native(policy.Parse, name+" seed=7")) })
	}
	t.Run("prequal with short ages", func(t *testing.T) {
		enginetest.TestPolicy(t, enginetest.Native(policy.Parse, "prequal seed=7 pool=4 quantile=0.3 max_age=20us window=16"))
	})
	for _, spec := range []string{"prequal seed=7 variant=keen", "prequal seed=7 variant=keen pool=40 quantile=0.3 max_age=20us window=16", "prequal seed=7 mode=sync", "prequal seed=7 mode=sync probes=5 wait=2 quantile=0.3 window=16 window_age=20us"} {
		t.Run(spec, func(t *testing.T) { enginetest.TestPolicy(t, enginetest.Native(policy.Parse, spec)) })
	}
}

// broken is a machine with one planted fault.
type broken struct {
	*engine.Engine
	fault string
	n     int
}

func (b *broken) Decide(q *engine.Query, d *engine.Decision) error {
	b.n++
	err := b.Engine.Decide(q, d)
	switch b.fault {
	case "index out of range":
		d.Index += 1000
	case "tried replica":
		if len(q.Tried) > 0 {
			again := *q
			again.Tried = nil
			return b.Engine.Decide(&again, d)
		}
	case "merged errors":
		if errors.Is(err, engine.ErrNoneEligible) {
			return engine.ErrNoCandidates
		}
	case "clock of its own":
		if q.Now > 1<<50 {
			d.UsesLeft++
		}
	case "wrong count":
		d.Hot++
	}
	return err
}

func (b *broken) Explain(q *engine.Query) *engine.Explanation {
	x := b.Engine.Explain(q)
	switch b.fault {
	case "explaining charges":
		var d engine.Decision
		_ = b.Engine.Decide(q, &d)
	case "explains another":
		x.Decision.ID++
	}
	return x
}

func (b *broken) Restore(block []byte) error {
	if b.fault == "restore forgets" {
		return nil
	}
	return b.Engine.Restore(block)
}

func (b *broken) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	err := b.Engine.SetCandidates(now, cs)
	if err != nil && b.fault == "refused fleet taken" {
		_ = b.Engine.SetCandidates(now, cs[:1])
	}
	return err
}

var made int

// Each law must be able to fail.
func TestTheLawsNoticePlantedFaults(t *testing.T) {
	for fault, law := range map[string]int{
		"index out of range": 0, "tried replica": 0, "merged errors": 0, "not the same each time": 1,
		"clock of its own": 2, "restore forgets": 3, "refused fleet taken": 4, "wrong count": 5,
		"explaining charges": 6, "explains another": 6,
	} {
		mk := func() (engine.Machine, func(), error) {
			made++
			spec := "prequal seed=7 max_age=20us"
			if fault == "not the same each time" && made%2 == 0 {
				spec = "prequal seed=8 max_age=20us"
			}
			p, err := policy.Parse(spec)
			return &broken{Engine: engine.New(p, engine.Config{}), fault: fault}, func() {}, err
		}
		noticed := false
		for seed := range uint64(8) {
			noticed = noticed || enginetest.Laws()[law].Check(mk, seed, 3000) != nil
		}
		assert.True(t, noticed, fault)
	}
}

func TestDecisionsReadingsAndReportsDoNotAllocate(t *testing.T) {
	for _, name := range append(policy.Names(), "prequal variant=keen") {
		e, cs := machine(t, name+" seed=7", 100)
		now := engine.Instant(0)
		var d engine.Decision
		q := engine.Query{}
		retry := engine.Query{Tried: []engine.ID{cs[3].ID, cs[50].ID}}
		probes := make([]engine.ID, 0, policy.MaxProbes)
		i := 0
		allocs := testing.AllocsPerRun(2000, func() {
			now += 100000
			i++
			_, _ = e.Record(now, cs[i*37%100].ID, engine.Reading{RIF: uint32(i % 9), Latency: engine.Duration(i * 7919 % 50000), Asked: now})
			q.Now, retry.Now = now, now
			_ = e.Decide(&q, &d)
			_ = e.Decide(&retry, &d)
			_ = e.Report(now, engine.Report{ID: d.ID, Outcome: engine.Outcome(i % 4)})
			probes, _ = e.Probes(now, probes[:0])
		})
		assert.Zero(t, allocs, name)
	}
}

// A change of the set builds in what the last one left behind.
func TestAChangeOfTheSetDoesNotAllocate(t *testing.T) {
	for _, name := range append(policy.Names(), "prequal variant=keen") {
		e, cs := machine(t, name+" seed=7", 50)
		less := append(append([]engine.Candidate(nil), cs[:25]...), cs[26:]...)
		assert.Zero(t, testing.AllocsPerRun(20, func() {
			_ = e.SetCandidates(0, less)
			_ = e.SetStatus(0, cs[3].ID, engine.StatusDraining)
			_ = e.SetCandidates(0, cs)
		}), name)
	}
}

func TestInFlightCountsReturnToZero(t *testing.T) {
	for _, name := range policy.Names() {
		e, cs := machine(t, name+" seed=7", 10)
		var placed []engine.ID
		for i := range 500 {
			var d engine.Decision
			require.NoError(t, e.Decide(&engine.Query{Now: engine.Instant(i)}, &d))
			placed = append(placed, d.ID)
		}
		total := uint32(0)
		for _, c := range cs {
			total += e.InFlight(c.ID)
		}
		assert.Equal(t, uint32(500), total, name)
		for _, id := range append(placed, placed[0]) { // one report too many stays at zero
			require.NoError(t, e.Report(1000, engine.Report{ID: id}))
		}
		for _, c := range cs {
			assert.Zero(t, e.InFlight(c.ID), name)
		}
	}
}
