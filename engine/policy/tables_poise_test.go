package policy

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

// The seed library's bytes: domain, name, 0xff, and for a point domain 4 and its number.
func poiseHash(domain byte, name string) uint64 {
	return hash.FNV1a(string([]byte{domain}) + name + "\xff")
}

func poiseRing(t *testing.T, n int) (*RingHash, []engine.Candidate) {
	cs, names := fixture(n)
	p, err := NewRingHash(0, 128)
	require.NoError(t, err)
	p.ring.emit = func(dst []uint64, id engine.ID, n int) []uint64 {
		start := (poiseHash(3, names[id]) ^ 4) * 0x100000001b3
		for j := range n {
			dst = append(dst, hash.Mix(hash.Word(start, uint64(j))))
		}
		return dst
	}
	require.NoError(t, engine.New(p, engine.Config{}).SetCandidates(0, cs))
	return p, cs
}

func TestRingHashFollowsTheSeedLibraryInItsByteOrder(t *testing.T) {
	p, _ := poiseRing(t, 8)
	var got []uint64
	for i := range 24 {
		key := hash.Mix(poiseHash(5, fmt.Sprintf("request-%05d", i)))
		got = append(got, p.ring.points[p.ring.find(key)]&ringSlotMask)
	}
	assert.Equal(t, []uint64{7, 2, 0, 1, 3, 0, 6, 1, 7, 7, 3, 2, 3, 6, 7, 3, 3, 2, 3, 7, 3, 7, 7, 2}, got)
	for n, points := range map[int]int{8: 2560, 64: 20480, 512: 163840} {
		p, _ := poiseRing(t, n)
		assert.Equal(t, points, p.ring.len())
	}
}

func poiseMaglev(t *testing.T, size int, cs []engine.Candidate, names map[engine.ID]string) *Maglev {
	p := plainMaglev(size, false)
	p.table.hashes = func(id engine.ID) (offset, skip, order uint64) {
		return hash.Mix(poiseHash(6, names[id])), hash.Mix(poiseHash(7, names[id])), hash.Mix(poiseHash(8, names[id]))
	}
	require.NoError(t, engine.New(p, engine.Config{}).SetCandidates(0, cs))
	return p
}

func TestMaglevFollowsTheSeedLibraryInItsByteOrder(t *testing.T) {
	cs, names := fixture(8)
	p := poiseMaglev(t, 65537, cs, names)
	var got []uint32
	for i := range 24 {
		got = append(got, p.table.at(uint32(hash.Mix(poiseHash(10, fmt.Sprintf("request-%05d", i)))%65537)))
	}
	assert.Equal(t, []uint32{0, 7, 0, 7, 4, 4, 3, 7, 2, 1, 4, 3, 0, 4, 1, 2, 6, 5, 4, 3, 6, 2, 4, 3}, got)

	p = poiseMaglev(t, 11, []engine.Candidate{{ID: 1}, {ID: 2}, {ID: 3}}, map[engine.ID]string{1: "a", 2: "b", 3: "c"})
	got = nil
	for i := range uint32(11) {
		got = append(got, p.table.at(i))
	}
	assert.Equal(t, []uint32{1, 2, 1, 2, 1, 0, 0, 2, 0, 1, 0}, got)
}

// Maglev: A Fast and Reliable Software Network Load Balancer (NSDI 2016), table 1.
func TestMaglevFillsThePapersExample(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		p := plainMaglev(7, weighted)
		p.table.hashes = func(id engine.ID) (offset, skip, order uint64) {
			return []uint64{3, 0, 3}[id], []uint64{4, 2, 1}[id] - 1, uint64(id)
		}
		require.NoError(t, engine.New(p, engine.Config{}).SetCandidates(0, []engine.Candidate{{ID: 0}, {ID: 1}, {ID: 2}}))
		assert.Equal(t, []engine.ID{1, 0, 1, 0, 2, 2, 0}, owners(p))
	}
}
