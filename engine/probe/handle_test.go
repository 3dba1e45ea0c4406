package probe

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// Every entry can be walked to by handle, and says what its reading said.
func TestEntriesAreWalkedByHandle(t *testing.T) {
	w := newWorld(t, 64, 1, 70)
	held := map[uint32]Incoming{}
	for i := range uint32(64) {
		in := Incoming{Slot: 69 - i, Uses: 1, RIF: 100 + i, RawRIF: 7, Latency: engine.Duration(i) - 1, RawLatency: 3, Asked: engine.Instant(i)}
		w.pool.Record(engine.Instant(200+i), &in)
		held[in.Slot] = in
	}
	require.Equal(t, blank, w.pool.Used())
	met := map[uint32]Incoming{}
	for used := w.pool.Used(); used != 0; used &= used - 1 {
		h := uint32(bits.TrailingZeros64(used))
		slot := w.pool.Slot(h)
		back, ok := w.pool.Handle(slot)
		assert.Equal(t, []any{h, true}, []any{back, ok})
		rif, latency, at := w.pool.Said(h)
		assert.Equal(t, held[slot].Asked+200, at)
		met[slot] = Incoming{Slot: slot, Uses: 1, RIF: rif, RawRIF: 7, Latency: latency, RawLatency: 3, Asked: at - 200}
	}
	assert.Equal(t, held, met)
	_, ok := w.pool.Handle(5)
	assert.False(t, ok, "a candidate without an entry")
}

func TestRemoveTakesOutTheEntryOfAHandle(t *testing.T) {
	w := newWorld(t, 4, 1, 4)
	w.fill(0, [2]int{1, 5}, [2]int{2, 6}, [2]int{3, 7})
	h, _ := w.pool.Handle(1)
	w.pool.Remove(h)
	w.m.drop(1)
	w.audit(t)
	assert.Equal(t, uint64(0b101), w.pool.Used())
}

// Open leaves out the entry of a replica that this query is to avoid, and of one that drains.
func TestOpenLeavesOutWhoIsNotOnOffer(t *testing.T) {
	w := newWorld(t, 4, 1, 4)
	w.fill(0, [2]int{1, 5}, [2]int{2, 6}, [2]int{3, 7})
	require.NoError(t, w.e.SetStatus(0, 0, engine.StatusDraining))
	require.NoError(t, w.e.Attach(0, []engine.ID{2}, nil))
	w.look = func() { assert.Equal(t, uint64(0b010), w.pool.Open()) }
	require.NoError(t, w.e.Place(0, 0))
	assert.Equal(t, uint64(0b111), w.pool.Used())
}
