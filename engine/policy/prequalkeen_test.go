package policy_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func because(t *testing.T, e *engine.Engine, now engine.Instant) string {
	t.Helper()
	x := e.Explain(&engine.Query{Now: now})
	require.NoError(t, x.Err)
	return x.Because
}

func TestPrequalKeenSaysWhatItWeighed(t *testing.T) {
	const spec = "prequal seed=1 variant=keen remove_rate=0 reuse=9 "
	e, cs := filled(t, spec, 30, engine.Reading{RIF: 3, Latency: 80 * millis}, engine.Reading{RIF: 1, Latency: 100 * millis}, engine.Reading{RIF: 3, Latency: 200 * millis})
	assert.Equal(t, "weighs least of the 3 cold entries on offer (RIF at most 3): latency 100 ms, times 1.175 for RIF 1 where the median is 3, "+
		"times 1.5 for an age of 50 ms; 0 are hot", because(t, e, engine.Instant(50*millis)))
	_, err := e.Record(0, cs[1].ID, engine.Reading{RIF: 9, Latency: engine.UnknownLatency})
	require.NoError(t, err)
	assert.Equal(t, "weighs least of the 3 cold entries on offer (RIF at most 9): latency 80 ms, times 1.525 for RIF 3 where the median is 3, "+
		"times 1 for an age of 0 ns; 0 are hot", because(t, e, 0))

	mute := engine.Reading{RIF: 2, Latency: engine.UnknownLatency}
	e, _ = filled(t, spec+"quantile=1", 30, mute, mute)
	assert.Equal(t, "weighs least of the 2 cold entries on offer (there is no threshold): latency unknown as all are, "+
		"times 1.4666 for RIF 2 where the median is 2, times 1 for an age of 0 ns; 0 are hot", because(t, e, 0))
	e, _ = filled(t, spec+"quantile=1", 30, mute, engine.Reading{RIF: 30, Latency: 5 * millis}, engine.Reading{RIF: 30, Latency: 6 * millis})
	assert.Equal(t, "weighs least of the 3 cold entries on offer (there is no threshold): latency 5 ms, the median of the others, its own being unknown, "+
		"times 1.0451 for RIF 2 where the median is 30, times 1 for an age of 0 ns; 0 are hot", because(t, e, 0))
	e, _ = filled(t, spec+"quantile=0", 30, mute, engine.Reading{RIF: 3, Latency: millis})
	assert.Equal(t, "is the only cold one (RIF at most 2) of the 2 entries on offer", because(t, e, 0))
	e, _ = filled(t, spec+"quantile=0", 30, engine.Reading{RIF: 2, Latency: millis}, engine.Reading{RIF: 2, Latency: millis}, engine.Reading{RIF: 2})
	var d engine.Decision
	for range 3 {
		require.NoError(t, e.Decide(&engine.Query{}, &d))
	}
	assert.Equal(t, "has the least RIF (3) of the entries on offer, which are all hot (3, above 2)", because(t, e, 0))
	e, _ = machine(t, spec, 30)
	assert.Equal(t, "was drawn among the open candidates, because the pool has 0 on offer, fewer than min_pool=2", because(t, e, 0))
}

// A replica that does not answer its probes is not asked at every draw.
func TestPrequalKeenLeavesTheSilentAlone(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 variant=keen probe_rate=1 idle=0", 10)
	asked := map[engine.ID]int{}
	now := engine.Instant(0)
	for range 1000 { // ten seconds and a little
		now += engine.Instant(engine.Second) / 99
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Now: now}, &d))
		due, err := e.Probes(now, nil)
		require.NoError(t, err)
		for _, id := range due {
			if asked[id]++; id == cs[4].ID {
				require.NoError(t, e.Forget(now, id, now))
				continue
			}
			_, err := e.Record(now, id, engine.Reading{RIF: 1, Latency: millis, Asked: now})
			require.NoError(t, err)
		}
	}
	assert.LessOrEqual(t, asked[cs[4].ID], 2)
	assert.Greater(t, asked[cs[3].ID], 50)
}

// Words that no reading could have left are refused.
func TestPrequalKeenRefusesWordsThatAreNoMemory(t *testing.T) {
	e, cs := machine(t, "prequal seed=1 variant=keen", 3)
	_, err := e.Record(7, cs[0].ID, engine.Reading{RIF: 0xabcdef, Latency: 12345})
	require.NoError(t, err)
	require.NoError(t, e.Forget(9, cs[1].ID, 9))
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	require.NoError(t, e.Restore(block))
	find := func(want uint64) int {
		for at := len(block) - 8; at >= 0; at -= 8 {
			if binary.LittleEndian.Uint64(block[at:]) == want {
				return at / 8
			}
		}
		require.Fail(t, "no such word")
		return 0
	}
	const latency, rif, when = 0, 1, 2
	at, silent := find(12346), find(1<<64-1)
	for name, change := range map[string]struct {
		at   int
		word uint64
	}{
		"too long":               {at + latency, uint64(engine.MaxLatency) + 2},
		"nothing, and a RIF":     {at + latency, 0},
		"a RIF out of range":     {at + rif, 1 << 32},
		"a reading to come":      {at + when, 10},
		"before the first call":  {at + when, ^uint64(0)},
		"silent, and with a RIF": {silent + rif, 1},
	} {
		bad := append([]byte(nil), block...)
		binary.LittleEndian.PutUint64(bad[8*change.at:], change.word)
		assert.ErrorIs(t, e.Restore(bad), engine.ErrBlock, name)
	}
}
