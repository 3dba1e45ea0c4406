package policy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

// row is a candidate of a hand-written fleet.
type row struct {
	priority uint8
	weight   engine.Weight
	status   engine.Status
	zone     string
}

const up, draining, down = engine.StatusReady, engine.StatusDraining, engine.StatusUnavailable

func grouped(tb testing.TB, spec string, rows ...row) (*engine.Engine, []engine.Candidate) {
	tb.Helper()
	var cs []engine.Candidate
	for i, r := range rows {
		cs = append(cs, engine.Candidate{ID: engine.IDOf(fmt.Sprint("replica-", i)), Weight: r.weight, Priority: r.priority, Status: r.status, Locality: engine.LocalityOf(r.zone)})
	}
	return start(tb, spec, cs), cs
}

// drawn checks the shares of a fleet's candidates by draws enough to notice one in twenty-five,
// or a fiftieth where the share is large.
func drawn(t *testing.T, e *engine.Engine, tried []engine.ID, want ...float64) {
	t.Helper()
	n := 0
	for _, share := range want {
		if share > 0 && share < 1 {
			n = max(n, enginetest.Draws(share, 0.04))
		}
	}
	n = max(n, 1000)
	counts := make([]int, len(want))
	var d engine.Decision
	q := engine.Query{Tried: tried}
	for range n {
		require.NoError(t, e.Decide(&q, &d))
		counts[d.Index]++
	}
	for i, share := range want {
		assert.NoError(t, enginetest.CheckShare(share, counts[i], n), "candidate %d", i)
	}
}

func regimeOf(t *testing.T, e *engine.Engine, index uint32) engine.Regime {
	t.Helper()
	var d engine.Decision
	for range 100000 {
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		if d.Index == index {
			return d.Regime
		}
	}
	require.Fail(t, "never decided for")
	return 0
}

func TestTheFirstPriorityTakesAllWhileItCan(t *testing.T) {
	// 5 of 7 available, times 1.4, is exactly all.
	e, _ := grouped(t, "priority seed=1", row{priority: 3, weight: 2}, row{priority: 1, weight: 4}, row{priority: 1, weight: 1}, row{priority: 1, weight: 2, status: down})
	drawn(t, e, nil, 0, 0.8, 0.2, 0)
	assert.Equal(t, engine.RegimeDirect, regimeOf(t, e, 1))
}

func TestWhatThePreferredCannotTakeSpillsInOrder(t *testing.T) {
	// 2 of 4 times 1.4 is 0.7; the second can take 0.2 x 1.4 = 0.28; the third gets 0.02.
	rows := []row{{0, 1, up, ""}, {0, 1, up, ""}, {0, 2, down, ""}, {1, 1, up, ""}, {1, 4, down, ""}, {2, 1, up, ""}, {3, 1, up, ""}}
	e, _ := grouped(t, "priority seed=2", rows...)
	drawn(t, e, nil, 0.35, 0.35, 0, 0.28, 0, 0.02, 0)
	assert.Equal(t, engine.RegimeDirect, regimeOf(t, e, 0))
	assert.Equal(t, engine.RegimeSpill, regimeOf(t, e, 3), "below the threshold, but together they can take all: no panic")
	assert.Equal(t, engine.RegimeSpill, regimeOf(t, e, 5))
	e, _ = grouped(t, "priority seed=2 overprovision=1", rows...)
	drawn(t, e, nil, 0.25, 0.25, 0, 0.2, 0, 0.3, 0)
}

func TestWhenAllAreShortTheSharesKeepTheirProportion(t *testing.T) {
	// Effective 0.14 and 0.56: a fifth and four fifths, and every replica that is up has the same.
	rows := []row{{0, 1, up, ""}, {0, 9, down, ""}, {1, 1, up, ""}, {1, 3, up, ""}, {1, 6, down, ""}}
	e, _ := grouped(t, "priority seed=3", rows...)
	drawn(t, e, nil, 0.2, 0, 0.2, 0.6, 0)
	assert.Equal(t, engine.RegimePanic, regimeOf(t, e, 0))
	assert.Equal(t, engine.RegimePanic, regimeOf(t, e, 2))
	e, _ = grouped(t, "priority seed=3 panic_threshold=0.4", rows...)
	assert.Equal(t, engine.RegimePanic, regimeOf(t, e, 0))
	assert.Equal(t, engine.RegimeSpill, regimeOf(t, e, 2), "at the threshold is not below it")
	e, _ = grouped(t, "priority seed=3 panic_threshold=0", rows...)
	drawn(t, e, nil, 0.2, 0, 0.2, 0.6, 0)
	assert.Equal(t, engine.RegimeDirect, regimeOf(t, e, 0))
}

func TestDrainingReplicasAreNoMembers(t *testing.T) {
	e, _ := grouped(t, "priority seed=4", row{0, 9, draining, ""}, row{1, 1, up, ""}, row{1, 50, draining, ""}, row{2, 1, up, ""})
	drawn(t, e, nil, 0, 1, 0, 0)
	assert.Equal(t, engine.RegimeDirect, regimeOf(t, e, 1), "the first priority that has members")
}

func TestAPriorityThatIsAllDownIsSpillNotSilence(t *testing.T) {
	e, _ := grouped(t, "priority seed=4", row{0, 9, down, ""}, row{1, 1, up, ""})
	drawn(t, e, nil, 0, 1)
	assert.Equal(t, engine.RegimeSpill, regimeOf(t, e, 1))
}

func TestFailClosedRefusesTheShareOfAPriorityInPanic(t *testing.T) {
	e, cs := grouped(t, "priority seed=5 panic=fail_closed", row{0, 1, up, ""}, row{0, 9, down, ""}, row{1, 5, up, ""}, row{1, 5, down, ""})
	var d engine.Decision
	refused, n := 0, enginetest.Draws(1.0/6, 0.04)
	for range n {
		if err := e.Decide(&engine.Query{}, &d); err != nil {
			refused++
			require.ErrorIs(t, err, engine.ErrRejected)
			require.EqualError(t, err, "rejected: too few healthy: priority 0 has 0.1 of its weight available, below panic_threshold=0.5")
			continue
		}
		require.Equal(t, uint32(2), d.Index)
		require.Equal(t, engine.RegimeSpill, d.Regime)
	}
	require.NoError(t, enginetest.CheckShare(1.0/6, refused, n))
	assert.Zero(t, e.InFlight(cs[0].ID))
	assert.Equal(t, uint32(n-refused), e.InFlight(cs[2].ID), "a refused query is not in flight")
	x := e.Explain(&engine.Query{})
	assert.Equal(t, "priority 0: weight 1 of 10 available (0.1, effective 0.14), takes 0.1667, in panic: refuses", x.Notes[0])
	e, _ = grouped(t, "locality seed=5 panic=fail_closed", row{0, 1, up, ""}, row{0, 9, down, ""})
	x = e.Explain(&engine.Query{})
	assert.Len(t, x.Notes, 1)
	assert.ErrorIs(t, x.Err, engine.ErrRejected)
	e, cs = grouped(t, "priority seed=5 panic=fail_closed", row{0, 1, up, ""}, row{0, 9, down, ""}, row{1, 5, up, ""}, row{1, 5, down, ""})
	for _, id := range []engine.ID{cs[1].ID, cs[3].ID} {
		require.NoError(t, e.SetStatus(0, id, up))
	}
	require.NoError(t, e.Decide(&engine.Query{}, &d), "and it ends with the panic")
}

// D4: millionths lose a live group.
func TestOneEligibleUnitOf3000001IsDecidedFor(t *testing.T) {
	for _, spec := range []string{"priority seed=1", "priority seed=1 panic_threshold=0", "locality seed=1", "locality seed=1 panic_threshold=0 zone=a"} {
		e, _ := grouped(t, spec, row{0, 3000000, down, ""}, row{0, 1, up, ""})
		drawn(t, e, nil, 0, 1)
		e, _ = grouped(t, spec, row{0, 3000000, down, ""}, row{0, 1, up, ""}, row{1, 3000000, down, ""}, row{1, 3, up, ""})
		drawn(t, e, nil, 0, 3000003.0/(3000003+3*3000001), 0, 3*3000001.0/(3000003+3*3000001))
	}
}

// D1: eligibility that flips between two looks.
func TestEligibilityIsLookedAtOncePerChange(t *testing.T) {
	for _, spec := range []string{"priority seed=1", "locality seed=1 zone=a"} {
		e, cs := grouped(t, spec, row{0, 1, up, "a"}, row{0, 2, up, "b"}, row{1, 3, up, "a"}, row{1, 4, up, ""})
		var d engine.Decision
		for mask := range 4 * 256 {
			down := 0
			for i, c := range cs {
				require.NoError(t, e.SetStatus(0, c.ID, engine.Status(mask>>(2*i)%4%3)))
				if mask>>(2*i)%4%3 != 0 {
					down++
				}
			}
			if err := e.Decide(&engine.Query{Tried: []engine.ID{cs[mask%4].ID}[:mask/256%2]}, &d); err != nil {
				require.ErrorIs(t, err, engine.ErrNoneEligible)
				continue
			}
			require.Zero(t, mask>>(2*d.Index)%4%3)
			require.Less(t, down, 4)
		}
	}
}

func TestARetryStaysInItsPriorityWhileThatHasAnother(t *testing.T) {
	for _, name := range []string{"priority", "locality"} {
		e, cs := grouped(t, name+" seed=6", row{0, 1, up, ""}, row{0, 3, up, ""}, row{0, 4, down, ""}, row{1, 1, up, ""}, row{2, 1, up, ""})
		drawn(t, e, nil, 0.175, 0.525, 0, 0.3, 0)
		drawn(t, e, []engine.ID{cs[1].ID}, 0.7, 0, 0, 0.3, 0)
		drawn(t, e, []engine.ID{cs[0].ID, cs[1].ID}, 0, 0, 0, 1, 0)
		drawn(t, e, []engine.ID{cs[3].ID}, 0.25, 0.75, 0, 0, 0)
		drawn(t, e, []engine.ID{cs[0].ID, cs[1].ID, cs[3].ID}, 0, 0, 0, 0, 1)
		e, cs = grouped(t, name+" seed=6", row{0, 1e6, up, ""}, row{0, 1, up, ""}, row{0, 3, up, ""})
		drawn(t, e, []engine.ID{cs[0].ID}, 0, 0.25, 0.75)
	}
}

func TestAPriorityLargerThanARetrysListIsNeverAllTried(t *testing.T) {
	for _, name := range []string{"priority", "locality"} {
		rows := make([]row, 34, 35)
		e, cs := grouped(t, name+" seed=6", append(rows, row{priority: 1})...)
		var tried []engine.ID
		for i := range engine.MaxTried {
			tried = append(tried, cs[i].ID)
		}
		want := make([]float64, 35)
		want[32], want[33] = 0.5, 0.5
		drawn(t, e, tried, want...)
	}
}

func TestGroupPoliciesDoNotAllocateWhateverHappens(t *testing.T) {
	for _, spec := range []string{"priority seed=7", "locality seed=7", "locality seed=7 zone=b", "priority seed=7 panic=fail_closed"} {
		var rows []row
		for i := range 60 {
			rows = append(rows, row{uint8(i % 4), engine.Weight(i % 5), engine.Status(i % 3), string(rune('a' + i%7))})
		}
		e, cs := grouped(t, spec, rows...)
		var d engine.Decision
		q, retry := engine.Query{}, engine.Query{Tried: []engine.ID{cs[0].ID, cs[12].ID, cs[24].ID, cs[36].ID, cs[48].ID}}
		i := 0
		assert.Zero(t, testing.AllocsPerRun(3000, func() {
			i++
			_ = e.Decide(&q, &d)
			_ = e.Decide(&retry, &d)
			if spec != "priority seed=7 panic=fail_closed" { // its refusals are worded at the change
				_ = e.SetStatus(0, cs[i*7%60].ID, engine.Status(i%3))
			}
		}), spec)
	}
}

func TestGroupPoliciesRefuseWeightsThatAreTooLargeTogether(t *testing.T) {
	cs := make([]engine.Candidate, 1<<17)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.ID(i), Weight: 1<<32 - 1, Locality: uint32(i % 1000)}
	}
	for spec, n := range map[string]int{"priority seed=1": len(cs), "locality seed=1 zone=a": 2000} {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		e := engine.New(p, engine.Config{MaxCandidates: len(cs)})
		require.NoError(t, e.SetCandidates(0, cs[:200]))
		err = e.SetCandidates(0, cs[:n])
		require.ErrorIs(t, err, engine.ErrOverflow)
		assert.ErrorContains(t, err, "divide them all by a common factor")
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d), "the old fleet serves on")
		assert.Less(t, d.Index, uint32(200))
	}
	e, _ := grouped(t, "priority seed=1", row{0, 1<<32 - 1, up, ""}, row{0, 1<<32 - 1, up, ""})
	drawn(t, e, nil, 0.5, 0.5)
}

func TestPrioritySpecsAreCanonicalAndNameWhatIsWrong(t *testing.T) {
	for spec, want := range map[string]string{
		"priority": "priority seed=0",
		"priority panic=fail_closed overprovision=1.40 seed=3": "priority seed=3 panic=fail_closed",
		"priority panic_threshold=0 overprovision=2.5":         "priority seed=0 overprovision=2.5 panic_threshold=0",
		"locality zone=eu-west-1a panic=use_all seed=9":        "locality seed=9 zone=eu-west-1a",
	} {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		assert.Equal(t, want, p.Spec())
	}
	for spec, want := range map[string]string{
		"priority overprovision=0.9":   "priority: overprovision=0.9: want 1 to 100",
		"locality panic_threshold=1.1": "locality: panic_threshold=1.1: want 0 to 1",
		"priority panic=open":          "priority: panic=open: want one of use_all, fail_closed",
		"priority zone=a":              "priority: zone: no such setting; want one of seed, overprovision, panic_threshold, panic",
	} {
		_, err := policy.Parse(spec)
		require.ErrorIs(t, err, engine.ErrConfig)
		assert.EqualError(t, err, want)
	}
}

func TestPriorityExplainsWhyItSpilled(t *testing.T) {
	e, _ := grouped(t, "priority seed=8", row{0, 1, down, ""}, row{0, 3000000, down, ""}, row{1, 1, up, ""}, row{1, 2, down, ""}, row{4, 2, up, ""})
	x := e.Explain(&engine.Query{})
	assert.Equal(t, []string{
		"priority 0: weight 0 of 3000001 available (0, effective 0), takes 0",
		"priority 1: weight 1 of 3 available (0.3333, effective 0.4666), takes 0.4667",
		"priority 4: weight 2 of 2 available (1, effective 1), takes 0.5333",
		"priority 0 cannot take all load: 1 of it spills",
	}, x.Notes)
	name := map[uint8]string{1: "1", 4: "4"}[map[uint32]uint8{2: 1, 4: 4}[x.Decision.Index]]
	assert.Contains(t, x.Sentence(func(engine.ID) string { return "it" }), "it was drawn by weight in priority "+name+", because priority 0 has not enough available")
}
