package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func named(id engine.ID) string { return fmt.Sprint("r", uint64(id)) }

// verdicts are the rows of an explanation in words.
func verdicts(x *engine.Explanation) (rows []string) {
	for _, w := range x.Weighed {
		rows = append(rows, fmt.Sprintf("%d@%d %s %d", w.ID, w.Slot, w.Verdict, w.Load))
	}
	return rows
}

// loads makes a stub that decides for the least load, by slot, and weighs them all.
func loads(p *stub, tie string, by ...uint64) {
	p.choose = func(s *engine.Set) uint32 {
		best := s.OpenAt(0)
		for k := range uint32(s.Open()) {
			if slot := s.OpenAt(k); by[slot] < by[best] {
				best = slot
			}
		}
		return best
	}
	p.explain = func(s *engine.Set, x *engine.Explanation) {
		x.Unit, x.Because, x.TieBreak = "loads", "is least loaded", tie
		for k := range uint32(s.Open()) {
			x.Weigh(s, s.OpenAt(k), by[s.OpenAt(k)])
		}
		s.Draw(10) // an explanation may draw
		p.fixed[0]++
	}
}

func TestAnExplanationGivesEveryCandidateItsVerdict(t *testing.T) {
	cs := []engine.Candidate{{ID: 1, Weight: 6}, {ID: 2}, {ID: 3, Status: engine.StatusDraining}, {ID: 4}, {ID: 5}, {ID: 6}}
	e, p := started(t, cs)
	loads(p, "the lower slot won", 9, 4, 0, 3, 3, 8)
	before := snapshot(t, e)
	x := e.Explain(&engine.Query{Now: 150, Key: 8, Tried: []engine.ID{6}})
	assert.Equal(t, before, snapshot(t, e), "nothing changed, the clock included")
	assert.Equal(t, []string{"1@0 lost 9", "2@1 lost 4", "4@3 chosen 3", "5@4 tied 3", "3@2 ineligible 0", "6@5 tried 0"}, verdicts(x))
	assert.Equal(t, uint32(6), x.Weighed[0].Weight)
	assert.Equal(t, uint32(1), x.Weighed[4].Weight)
	assert.Equal(t, 1, x.Ties)
	assert.Equal(t, engine.ID(4), x.Decision.ID)
	assert.Equal(t, engine.ID(5), x.RunnerUp)
	assert.Equal(t, "stub", x.Rule)
	assert.Equal(t, "r4 is least loaded; one other was equal, the lower slot won; next would be r5", x.Sentence(named))
	log := p.told()
	assert.Contains(t, log, "explain 150 8")
	assert.Contains(t, log, "bind 3 words, 6 candidates, fresh false", "what it derives from its words is derived anew")
	assert.Equal(t, x.Decision, decide(t, e, engine.Query{Now: 150, Key: 8, Tried: []engine.ID{6}}))

	loads(p, "", 9, 4, 0, 3, 3, 8)
	x = e.Explain(&engine.Query{Now: 150})
	assert.Equal(t, []string{"1@0 lost 9", "2@1 lost 4", "4@3 chosen 3", "5@4 runner_up 3", "6@5 lost 8", "3@2 ineligible 0"}, verdicts(x),
		"nothing ties where the rule says so")
	assert.Equal(t, "r4 is least loaded; next would be r5", x.Sentence(named))

	loads(p, "by lot", 3, 3, 0, 3, 4, 8)
	assert.Equal(t, "r1 is least loaded; 2 others were equal, by lot; next would be r2", e.Explain(&engine.Query{Now: 150}).Sentence(named))
	loads(p, "by lot", 3, 3, 0, 3, 3, 8)
	x = e.Explain(&engine.Query{Now: 150})
	assert.Equal(t, 3, x.Ties)
	assert.Equal(t, "r1 is least loaded; 3 others were equal, by lot; next would be r2", x.Sentence(named))
}

func TestWhatTheRuleLeftOutIsShownToo(t *testing.T) {
	e, p := started(t, ids(1, 2, 3, 4))
	p.choose = func(s *engine.Set) uint32 { return s.OpenAt(uint32(s.Open() - 1)) } // looks at nobody else
	x := e.Explain(&engine.Query{Now: 100})
	assert.Equal(t, []string{"1@0 unweighed 0", "2@1 unweighed 0", "3@2 runner_up 0", "4@3 chosen 0"}, verdicts(x))
	assert.Equal(t, "r4; next would be r3", x.Sentence(named))

	x = e.Explain(&engine.Query{Now: 100, Tried: []engine.ID{1, 2, 3}})
	assert.False(t, x.Second, "nobody is left")
	assert.Equal(t, []string{"1@0 tried 0", "2@1 tried 0", "3@2 tried 0", "4@3 chosen 0"}, verdicts(x))
	assert.Equal(t, "r4", x.Sentence(named))
}

func TestAnEntryThatLeftAndAReplicaThatDecidedAreTwoRows(t *testing.T) {
	e, p := started(t, ids(1, 2))
	p.explain = func(s *engine.Set, x *engine.Explanation) {
		for slot := range uint32(2) {
			x.Weigh(s, slot, 0)
			x.Weighed[slot].Verdict = engine.VerdictRemoved
		}
	}
	x := e.Explain(&engine.Query{Now: 100})
	assert.Equal(t, []string{"1@0 removed 0", "2@1 removed 0", "1@0 chosen 0"}, verdicts(x), "1 was drawn all the same")
}

func TestAQueryThatCannotBePlacedIsExplained(t *testing.T) {
	e, p := started(t, ids(1, 2))
	loads(p, "by lot", 1, 1)
	before := snapshot(t, e)
	x := e.Explain(&engine.Query{Now: 300, Tried: []engine.ID{1, 2}})
	assert.ErrorIs(t, x.Err, engine.ErrNoneEligible)
	assert.Equal(t, []string{"1@0 tried 0", "2@1 tried 0"}, verdicts(x))
	assert.False(t, x.Second)
	assert.Zero(t, x.Ties)
	assert.NotContains(t, p.told(), "explain 300 0", "nobody is open, so the rule is not asked")
	p.fail = errOwn
	x = e.Explain(&engine.Query{Now: 300})
	assert.Same(t, errOwn, x.Err)
	assert.Equal(t, []string{"1@0 lost 1", "2@1 lost 1"}, verdicts(x), "nobody was chosen, so nobody tied")
	assert.Equal(t, "not placed: the policy's own", x.Sentence(named))
	assert.Equal(t, before, snapshot(t, e))
	p.fail = nil
	require.NoError(t, e.SetCandidates(100, ids(0, 1)))
	p.failing = func(s *engine.Set) error {
		if s.AnyTried() {
			return nil
		}
		return errOwn
	}
	assert.False(t, e.Explain(&engine.Query{Now: 100}).Second, "a query that is not placed has no runner-up")
	p.failing = nil
	assert.Equal(t, engine.ID(0), decide(t, e, engine.Query{Now: 100}).ID, "no list of an explained query is left over")
}

// A query that has tried as many as it may has no runner-up to name.
func TestAFullListOfTriedHasNoRunnerUp(t *testing.T) {
	cs := make([]engine.Candidate, 40)
	tried := make([]engine.ID, 0, 32)
	for i := range cs {
		cs[i].ID = engine.ID(i)
		if i < 32 {
			tried = append(tried, engine.ID(i))
		}
	}
	e, _ := started(t, cs)
	assert.False(t, e.Explain(&engine.Query{Now: 100, Tried: tried}).Second)
	x := e.Explain(&engine.Query{Now: 100, Tried: tried[:31]})
	assert.True(t, x.Second)
	assert.Equal(t, engine.ID(32), x.RunnerUp)
	require.Len(t, tried, 32)
}

func TestVerdictsHaveNames(t *testing.T) {
	for v, name := range []string{"lost", "chosen", "runner_up", "tied", "ineligible", "tried", "full", "removed", "unweighed", "invalid"} {
		assert.Equal(t, name, engine.Verdict(v).String())
	}
}

// The rule may draw and change its words while it explains; the decision does not see that.
func TestTheDecisionIsMadeFromTheStateBeforeTheExplanation(t *testing.T) {
	e, p := started(t, ids(1, 2, 3))
	loads(p, "", 1, 1, 1)
	p.choose = func(s *engine.Set) uint32 { return uint32(p.fixed[0]+1) % 3 }
	p.explain = func(*engine.Set, *engine.Explanation) { p.fixed[0]++ }
	x := e.Explain(&engine.Query{Now: 100})
	assert.Equal(t, uint32(1), x.Decision.Index)
	assert.Equal(t, x.Decision, decide(t, e, engine.Query{Now: 100}))
}

func TestASingleOpenCandidateIsExplained(t *testing.T) {
	e, p := started(t, ids(1, 2))
	loads(p, "", 5, 6)
	x := e.Explain(&engine.Query{Now: 100, Tried: []engine.ID{1}})
	assert.Equal(t, []string{"2@1 chosen 6", "1@0 tried 0"}, verdicts(x))
}
