package policy_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// ranks records a reading and shows it as ranked.
func ranks(t *testing.T, e *engine.Engine, now engine.Instant, id engine.ID, rd engine.Reading) (uint32, engine.Duration) {
	t.Helper()
	rd.Asked = now
	_, err := e.Record(now, id, rd)
	require.NoError(t, err)
	es, err := e.Entries(now, nil)
	require.NoError(t, err)
	for _, x := range es {
		if x.ID == id {
			return x.RIF, x.Latency
		}
	}
	require.Fail(t, "no entry")
	return 0, 0
}

func ends(t *testing.T, e *engine.Engine, now engine.Instant, id engine.ID, o engine.Outcome, times int) {
	t.Helper()
	for range times {
		require.NoError(t, e.Report(now, engine.Report{ID: id, Outcome: o}))
	}
}

const sec = engine.Instant(engine.Second)

// Every policy over a pool has the same aversion.
var averse = []string{"prequal seed=1", "prequal seed=1 variant=keen", "linear seed=1", "c3 seed=1"}

func TestAversionWeighsWhatIsBeyondTheUsual(t *testing.T) {
	const ms = engine.Millisecond
	for _, spec := range averse {
		e, cs := machine(t, spec, 30)
		ends(t, e, 0, cs[1].ID, engine.OutcomeFailure, 1)
		// A fifth, less twice a 256th, times a hundred, and one: 20.21875.
		rif, latency := ranks(t, e, 0, cs[1].ID, engine.Reading{RIF: 3, Latency: ms})
		assert.EqualValues(t, 79, rif, spec)
		assert.InDelta(t, 20_218_750, float64(latency), 200, spec)
		rif, _ = ranks(t, e, 0, cs[1].ID, engine.Reading{Latency: ms})
		assert.EqualValues(t, 19, rif, "an idle one too: %s", spec)
		rif, latency = ranks(t, e, 0, cs[2].ID, engine.Reading{RIF: 3, Latency: ms})
		assert.Equal(t, engine.Duration(ms), latency, spec)
		assert.EqualValues(t, 3, rif, spec)

		_, latency = ranks(t, e, 5*sec, cs[1].ID, engine.Reading{Latency: ms}) // half of a fifth
		assert.InDelta(t, 10_218_750, float64(latency), 200, spec)
		ends(t, e, 5*sec, cs[1].ID, engine.OutcomeSuccess, 1) // a fifth of that off
		_, latency = ranks(t, e, 5*sec, cs[1].ID, engine.Reading{Latency: ms})
		assert.InDelta(t, 1+100*(0.08-2*255.0/256/256), float64(latency)/float64(ms), 0.001, spec)
		_, latency = ranks(t, e, 165*sec, cs[1].ID, engine.Reading{Latency: ms})
		assert.Equal(t, engine.Duration(ms), latency, "32 times five seconds leave nothing: %s", spec)
	}
}

// Where most fail, nothing is excused once it is seen that it is always the same; where all fail
// alike, twice the usual is.
func TestAversionTellsASharedFaultFromThoseWhoFail(t *testing.T) {
	for _, spec := range averse {
		e, cs := machine(t, spec, 40)
		for i := range 400 { // three of four fail always
			o := engine.OutcomeFailure
			if i%4 == 0 {
				o = engine.OutcomeSuccess
			}
			ends(t, e, 0, cs[i%40].ID, o, 1)
		}
		_, latency := ranks(t, e, 0, cs[1].ID, engine.Reading{Latency: 1000})
		assert.Greater(t, latency, engine.Duration(80_000), spec)
		_, latency = ranks(t, e, 0, cs[4].ID, engine.Reading{Latency: 1000})
		assert.EqualValues(t, 1000, latency, spec)

		e, cs = machine(t, spec, 40)
		for i := range 4000 { // everybody fails two of five
			o := engine.OutcomeSuccess
			if i/40%5 < 2 {
				o = engine.OutcomeFailure
			}
			ends(t, e, 0, cs[i*7%40].ID, o, 1)
		}
		ends(t, e, 0, cs[2].ID, engine.OutcomeFailure, 1)
		_, latency = ranks(t, e, 0, cs[2].ID, engine.Reading{Latency: 1000})
		assert.EqualValues(t, 1000, latency, spec)
	}
}

func TestAversionDoesNotOverflow(t *testing.T) {
	e, cs := machine(t, "prequal seed=1", 30)
	ends(t, e, 0, cs[0].ID, engine.OutcomeFailure, 20)
	rif, latency := ranks(t, e, 0, cs[0].ID, engine.Reading{RIF: 1<<32 - 1, Latency: engine.MaxLatency})
	assert.Equal(t, engine.NoThreshold-1, rif)
	assert.Equal(t, engine.Duration(engine.MaxLatency), latency)
	_, latency = ranks(t, e, 0, cs[0].ID, engine.Reading{Latency: engine.UnknownLatency})
	assert.Equal(t, engine.Duration(engine.MaxLatency), latency, "unknown is not the median for one that fails")
}

// Words that no failure could have left are refused, and those before the layout changed.
func TestAversionRefusesWordsThatAreNoAverage(t *testing.T) {
	for _, spec := range append(averse, "prequal seed=1 mode=sync") {
		e, cs := machine(t, spec, 3)
		ends(t, e, 7, cs[0].ID, engine.OutcomeFailure, 1)
		ends(t, e, 9, cs[1].ID, engine.OutcomeSuccess, 1)
		block, err := e.Snapshot(nil)
		require.NoError(t, err)
		require.NoError(t, e.Restore(block))
		word := func(at int) uint64 { return binary.LittleEndian.Uint64(block[8*at:]) }
		at := -1
		for i := range len(block) / 8 {
			if word(i) == (1<<30)/5 {
				at = i
			}
		}
		require.Positive(t, at, spec)
		require.EqualValues(t, 7, word(at+1), spec)
		for name, change := range map[string]struct {
			at   int
			word uint64
		}{
			"an average above all":        {at, 1<<30 + 1},
			"a failure to come":           {at + 1, 10},
			"a failure before the first":  {at + 1, ^uint64(0)},
			"an instant without average":  {at, 0},
			"another layout of the block": {0, word(0) - 1},
		} {
			bad := append([]byte(nil), block...)
			binary.LittleEndian.PutUint64(bad[8*change.at:], change.word)
			err := e.Restore(bad)
			require.ErrorIs(t, err, engine.ErrBlock, "%s: %s", spec, name)
			if change.at == 0 {
				assert.ErrorContains(t, err, "layout differs")
			}
		}
	}
}

func TestAversionAllocatesNothing(t *testing.T) {
	for _, spec := range append(averse, "prequal seed=1 mode=sync") {
		e, cs := machine(t, spec, 30)
		now := engine.Instant(0)
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			now++
			_ = e.Report(now, engine.Report{ID: cs[now%7].ID, Outcome: engine.Outcome(now % 2)})
			_, _ = e.Record(now, cs[now%7].ID, engine.Reading{RIF: 1, Latency: 5, Asked: now})
		}), spec)
	}
}
