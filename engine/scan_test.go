package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// chooser decides for the slot it is told.
type chooser struct {
	engine.Base
	slot   uint32
	layout engine.Layout
	err    error
}

func (*chooser) Name() string            { return "chooser" }
func (*chooser) Spec() string            { return "chooser" }
func (p *chooser) Layout() engine.Layout { return p.layout }
func (p *chooser) Decide(engine.Instant, engine.Key) error {
	p.Set.Choose(p.slot, engine.RegimeSpill)
	return p.err
}

// The scan finds the first of those with the fewest queries in flight, in every part of every
// fleet, whatever a slot's words are and whoever may not serve.
func TestLeastInFlightIsTheFirstOfTheLeast(t *testing.T) {
	for _, words := range []int{0, 1, 2} {
		for n := 1; n <= 11; n++ {
			for _, drained := range []bool{false, true} {
				p := &chooser{layout: engine.Layout{PerSlot: words}}
				e := engine.New(p, engine.Config{})
				cs := make([]engine.Candidate, n)
				for i := range cs {
					cs[i].ID = engine.ID(i + 1)
				}
				require.NoError(t, e.SetCandidates(0, cs))
				for i := range cs {
					for range (i*7 + n) % 5 {
						p.slot = uint32(i)
						decide(t, e, engine.Query{})
					}
				}
				for i := 1; drained && i < n; i += 3 {
					require.NoError(t, e.SetStatus(0, cs[i].ID, engine.StatusDraining))
				}
				slots := p.Set.EligibleSlots()
				for from := range slots {
					for to := from + 1; to <= len(slots); to++ {
						want := from
						for i := from; i < to; i++ {
							if p.Set.InFlight(slots[i]) < p.Set.InFlight(slots[want]) {
								want = i
							}
						}
						at, load := p.Set.LeastInFlight(from, to)
						require.Equal(t, []any{want, p.Set.InFlight(slots[want])}, []any{at, load}, "%d of %d, %d words", from, n, words)
					}
				}
				for slot := range uint32(n + 2) {
					want := 0
					for i, s := range slots {
						if s >= slot {
							want = i
							break
						}
					}
					require.Equal(t, want, p.Set.From(slot))
				}
			}
		}
	}
}

// Place with what it leaves behind is Decide: a guest uses the one, a Go caller the other.
func TestPlaceIsDecide(t *testing.T) {
	one, two := &chooser{}, &chooser{}
	a, b := engine.New(one, engine.Config{}), engine.New(two, engine.Config{})
	now := engine.Instant(5)
	step := func(tried []engine.ID, answers []engine.Answer) {
		var d engine.Decision
		err := a.Decide(&engine.Query{Now: now, Tried: tried, Answers: answers}, &d)
		var other error
		if len(tried)+len(answers) > 0 {
			other = b.Attach(now, tried, answers)
		}
		if other == nil {
			other = b.Place(now, 0)
		}
		require.Equal(t, err, other)
		if err == nil {
			placed := *b.Placed()
			placed.ID = d.ID
			require.Equal(t, d, placed)
		}
		assert.Equal(t, snapshot(t, a), snapshot(t, b))
	}
	step(nil, nil)
	for _, e := range []*engine.Engine{a, b} {
		require.NoError(t, e.SetCandidates(now, ids(1, 2, 3)))
	}
	for i := range 12 {
		one.slot, two.slot = uint32(i%3), uint32(i%3)
		one.err, two.err = nil, nil
		if i%5 == 4 {
			one.err, two.err = errOwn, errOwn
		}
		step(nil, nil)
		step([]engine.ID{2}, []engine.Answer{{ID: 1}})
		step([]engine.ID{1, 2, 3}, nil)
		now += engine.Instant(3 - i%7) // it may go back
	}
	step(make([]engine.ID, engine.MaxTried+1), nil)
	step(nil, make([]engine.Answer, engine.MaxAnswers+1))
}
