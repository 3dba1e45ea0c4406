package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
)

// aim sets a machine's generator so that its next 64 bits are x: SplitMix64 backwards.
func aim(e *engine.Engine, x uint64) {
	const generator = 6 // its word in the block
	x ^= x>>31 ^ x>>62
	x *= 0x319642b2d24d8ec3
	x ^= x>>27 ^ x>>54
	x *= 0x96de1b173f119089
	x ^= x>>30 ^ x>>60
	e.Block()[generator] = x - 0x9e3779b97f4a7c15
}

// A third has no end in binary: the first 32 places, all 0101..., leave the rest of one ticket
// of three, in which the first group has a third again.
func TestATicketOnTheBoundIsDrawnToItsLastPlace(t *testing.T) {
	c := DefaultGroups(1)
	c.Overprovision = 10000
	p, err := NewPriority(c)
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, []engine.Candidate{
		{ID: 1, Weight: 1}, {ID: 2, Weight: 2, Status: engine.StatusUnavailable}, {ID: 3, Priority: 1},
	}))
	const cut = 0x55555555
	require.Equal(t, []uint64{cut, cells}, p.g.cuts.cut)
	first := func(x uint64) bool {
		aim(e, x)
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		return d.Index == 0
	}
	assert.True(t, first(cut<<32-1))
	assert.False(t, first((cut+1)<<32+1))
	assert.False(t, first(1<<64-1))
	n, count := enginetest.Draws(1.0/3, 0.05), 0
	for i := range n {
		if first(cut<<32 | uint64(i+1)*2654435761&(1<<32-1)) {
			count++
		}
	}
	assert.NoError(t, enginetest.CheckShare(1.0/3, count, n))
}

// Two bounds within one cell, the second group's share being less than 1/(1<<32), and a group of
// nothing before and between them: the rest of the ticket tells them apart.
func TestSeveralBoundsInOneCellAreToldApart(t *testing.T) {
	const most = 1<<32 - 1
	dead := engine.StatusUnavailable
	c := DefaultGroups(1)
	c.Overprovision = 10000
	p, err := NewPriority(c)
	require.NoError(t, err)
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, []engine.Candidate{
		{ID: 9, Status: dead}, {ID: 1, Priority: 1}, {ID: 2, Weight: 2, Status: dead, Priority: 1},
		{ID: 10, Status: dead, Priority: 2}, {ID: 3, Priority: 3}, {ID: 4, Weight: most, Status: dead, Priority: 3},
		{ID: 5, Weight: most, Status: dead, Priority: 3}, {ID: 6, Priority: 4},
	}))
	require.Equal(t, []uint64{0, 0x55555555, 0x55555555, 0x55555555, cells}, p.g.cuts.cut)
	n := enginetest.Draws(1.0/3, 0.05)
	counts := map[uint32]int{}
	for i := range n {
		aim(e, 0x55555555<<32|uint64(i+1)*2654435761&(1<<32-1))
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		counts[d.Index]++
	}
	second := float64(uint64(1)<<32) / (2*most + 1)
	assert.NoError(t, enginetest.CheckShare(1.0/3, counts[1], n))
	assert.NoError(t, enginetest.CheckShare(second, counts[4], n))
	assert.NoError(t, enginetest.CheckShare(2.0/3-second, counts[7], n))
	aim(e, 0)
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{}, &d))
	assert.Equal(t, uint32(1), d.Index, "a group of nothing has not even the first ticket")
}
