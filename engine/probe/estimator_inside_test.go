package probe

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func TestEstimatorDefaultsAreThoseOfItsDocs(t *testing.T) {
	e, err := NewEstimator(EstimatorConfig{})
	require.NoError(t, err)
	assert.Equal(t, EstimatorConfig{Samples: 9, Memory: 10 * engine.Second, Hold: 30 * engine.Second, Ring: 16, Tags: 64}, e.cfg)
	most := EstimatorConfig{Memory: engine.MaxLatency}.withDefaults()
	assert.Equal(t, engine.MaxLatency, most.Hold)
}

// The bounds belong to their ranges, and what is one beyond does not.
func TestEstimatorBoundsAreInside(t *testing.T) {
	for _, c := range []EstimatorConfig{
		{Samples: 1}, {Samples: 64}, {Memory: 1}, {Memory: engine.MaxLatency}, {Memory: 5, Hold: 5}, {Hold: engine.MaxLatency},
		{Ring: 1}, {Ring: 256}, {Tags: 8}, {Tags: 4096},
	} {
		assert.NoError(t, c.Validate(), "%+v", c)
		_, err := NewEstimator(c)
		assert.NoError(t, err)
	}
	for _, c := range []EstimatorConfig{
		{Samples: -1}, {Samples: 65}, {Memory: -1}, {Memory: engine.MaxLatency + 1}, {Memory: 5, Hold: 4}, {Hold: engine.MaxLatency + 1},
		{Ring: -1}, {Ring: 257}, {Tags: 4}, {Tags: 8192}, {Tags: 12}, {Tags: -8},
	} {
		assert.ErrorIs(t, c.Validate(), engine.ErrConfig, "%+v", c)
	}
}

// Tags are the RIFs themselves, then eight to each doubling, then one for all that is beyond.
func TestTagsCoverEveryRIFInOrder(t *testing.T) {
	for _, tags := range []int{8, 16, 64, 256, 4096} {
		e, err := NewEstimator(EstimatorConfig{Tags: tags})
		require.NoError(t, err)
		want, last := 0, -1
		for rif := range uint32(1 << 17) {
			width := uint32(1)
			for at := uint32(tags); at <= rif; at *= 2 {
				width = at / 8
			}
			switch {
			case rif >= 61440:
				want = len(e.tags) - 1
			case rif > 0 && rif%width == 0:
				want++
			}
			if got := e.tag(rif); got != want {
				t.Fatalf("%d tags: RIF %d has tag %d, want %d", tags, rif, got, want)
			}
			last = want
		}
		require.Equal(t, len(e.tags)-1, last)
		require.Equal(t, last, e.tag(1<<32-1))
		e.Finish(5, e.Arrive(2, 1<<32-1)) // the last tag has its place among the marks
		require.Equal(t, engine.Duration(3), e.Estimate(5, 0))
	}
}

// A tag whose last latency is as old as Hold is looked at once more and then no more.
func TestAStaleTagIsVisitedOnce(t *testing.T) {
	e, err := NewEstimator(EstimatorConfig{Memory: 10, Hold: 30})
	require.NoError(t, err)
	e.Finish(100, e.Arrive(95, 63))
	e.Finish(100, e.Arrive(95, 64))
	e.Finish(102, e.Arrive(100, 5))
	e.Finish(129, e.Arrive(128, 0))
	marks := func() []bool {
		return []bool{e.marked[0]&1 != 0, e.marked[0]>>5&1 != 0, e.marked[0]>>63&1 != 0 || e.marked[1]&1 != 0}
	}
	require.Equal(t, engine.Duration(1), e.Estimate(129, 0))
	require.Equal(t, []bool{true, true, true}, marks(), "not yet")
	require.Equal(t, engine.Duration(1), e.Estimate(130, 0))
	require.Equal(t, []bool{true, true, false}, marks())
	require.Zero(t, e.tags[63].held)
	require.Equal(t, uint16(1), e.tags[5].held)
	e.Arrive(131, 5)
	require.Equal(t, engine.Duration(1), e.Estimate(135, 0))
	require.Equal(t, []bool{true, true, false}, marks(), "a query with this tag is open")
	require.Zero(t, e.tags[5].held)
	e.Finish(160, e.Arrive(160, 0))
	e.Estimate(160, 0)
	require.True(t, e.tags[5].open, "not yet as old as Hold")
	e.Estimate(161, 0)
	require.False(t, e.tags[5].open)
	require.Equal(t, []bool{true, false, false}, marks(), "and a query as old as Hold is forgotten")
}

// Only queries older than the median of the finished ones speak for themselves: one as old as
// it would take a place and tell nothing.
func TestAnOpenQueryAsOldAsTheMedianTellsNothing(t *testing.T) {
	e, err := NewEstimator(EstimatorConfig{Samples: 3})
	require.NoError(t, err)
	a, b, c := e.Arrive(80, 0), e.Arrive(80, 0), e.Arrive(80, 1)
	e.Finish(84, a)
	e.Finish(86, c)
	e.Finish(88, b)
	e.Arrive(93, 1)
	e.Arrive(94, 0)
	require.Equal(t, engine.Duration(7), e.Estimate(100, 0))
}

func TestMarksAreFoundEitherWay(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, tags := range []int{8, 64, 256} { // 320 tags fill their words
		e, err := NewEstimator(EstimatorConfig{Tags: tags})
		require.NoError(t, err)
		for range 200 {
			clear(e.marked)
			set := make([]bool, len(e.tags))
			for range r.IntN(6) {
				i := []int{r.IntN(len(set)), r.IntN(len(set)) &^ 63, len(set) - 1}[r.IntN(3)]
				set[i] = true
				e.mark(i)
			}
			below, above := -1, len(set)
			for i := range set {
				if set[i] {
					below = i
				}
				require.Equal(t, below, e.below(i))
			}
			for i := len(set); i >= 0; i-- {
				if i < len(set) && set[i] {
					above = i
				}
				require.Equal(t, above, e.above(i))
			}
			require.Equal(t, -1, e.below(-1))
		}
	}
}

func TestAQueryThatEndsBeforeItArrivedTookNoTime(t *testing.T) {
	e, err := NewEstimator(EstimatorConfig{})
	require.NoError(t, err)
	e.Finish(5, Arrival{At: 9})
	require.Zero(t, e.Estimate(5, 0))
}

// Who looks for a mark walks the words: there are as many as the tags need, and no more.
func TestMarksTakeOneBitForATag(t *testing.T) {
	for tags := 8; tags <= 4096; tags *= 2 {
		e, err := NewEstimator(EstimatorConfig{Tags: tags})
		require.NoError(t, err)
		spare := 64*len(e.marked) - len(e.tags)
		assert.True(t, 0 <= spare && spare < 64, "%d words for %d tags", len(e.marked), len(e.tags))
	}
}
