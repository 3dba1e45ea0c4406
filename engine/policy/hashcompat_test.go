package policy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// The seed library scores bytes that hold both key and identity, which no pair of hashes can
// repeat. But the mix is a bijection: for one key at a time, a column of hashes can be worked
// out that makes Decide see exactly that library's scores. So its picks test our decisions, and
// no code of ours knows of it.

// rustString is a string as that library hashes it: its bytes, then 0xff.
func rustString(s string) string { return s + "\xff" }

func libraryScore(key, id string) uint64 {
	return hash.Mix(hash.FNV1a("\x00" + rustString(key) + "\x01" + rustString(id)))
}

// unmix undoes hash.Mix.
func unmix(x uint64) uint64 {
	undo := func(x uint64, by uint) uint64 { return x ^ x>>by ^ x>>(2*by) }
	x = undo(x, 31) * inverse(0x94d049bb133111eb)
	x = undo(x, 27) * inverse(0xbf58476d1ce4e5b9)
	return undo(x, 30)
}

// inverse of an odd number modulo 1<<64, by Newton's steps.
func inverse(a uint64) uint64 {
	x := a
	for range 6 {
		x *= 2 - a*x
	}
	return x
}

// hashFor is the hash of an identity with which it gets a score under a key.
func hashFor(key engine.Key, score uint64) uint64 { return unmix(score) ^ rank.Key(uint64(key)) }

func TestTheLibrarysVectors(t *testing.T) {
	assert.Equal(t, uint64(0xcbf29ce484222325), hash.FNV1a(""))
	assert.Equal(t, uint64(0xaf63dc4c8601ec8c), hash.FNV1a("a"))
	assert.Equal(t, uint64(0xa430d84680aabd0b), hash.FNV1a("hello"))
	assert.Equal(t, uint64(0x089bc907b544c769), hash.FNV1a(rustString("a")))
	assert.Equal(t, uint64(0x89cd31291d2aefa4), hash.Word(hash.Start(), 1))
	assert.Equal(t, uint64(0xad2aca7747985764), hash.FNV1a("\x01\x00\x00\x00"))
	for x, want := range map[uint64]uint64{0: 0, 1: 0x5692161d100b05e5, 2: 0xdbd238973a2b148a, 1<<64 - 1: 0xb4d055fcf2cbbd7b} {
		assert.Equal(t, want, hash.Mix(x))
		assert.Equal(t, x, unmix(want))
	}
	assert.Equal(t, uint64(0xd2cc53a920c1beb4), libraryScore("request-00000", "backend-0000"))
	assert.Equal(t, uint64(7), rank.Score(rank.Key(5), hashFor(5, 7)))
}

// libraryFleet is its fixture: eight members with weights 1 2 3 4 1 2 3 4, and i queries in
// flight on the i-th.
func libraryFleet(t *testing.T, p engine.Policy) *engine.Engine {
	e := engine.New(p, engine.Config{})
	cs := make([]engine.Candidate, 8)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(i%4 + 1)}
	}
	require.NoError(t, e.SetCandidates(0, cs))
	for i := range 8 {
		var others []engine.ID
		for j := range 8 {
			if j != i {
				others = append(others, engine.ID(j))
			}
		}
		for range i {
			var d engine.Decision
			require.NoError(t, e.Decide(&engine.Query{Tried: others}, &d))
		}
	}
	return e
}

// libraryPicks decides for its first 24 keys; give sets the hash of the i-th member.
func libraryPicks(t *testing.T, e *engine.Engine, give func(i int, hash uint64)) string {
	var picks []string
	for k := range 24 {
		key := engine.Key(k + 1)
		for i := range 8 {
			give(i, hashFor(key, libraryScore(fmt.Sprintf("request-%05d", k), fmt.Sprintf("backend-%04d", i))))
		}
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Key: key}, &d))
		require.NoError(t, e.Report(0, engine.Report{ID: d.ID}))
		picks = append(picks, strconv.Itoa(int(d.Index)))
	}
	return strings.Join(picks, " ")
}

func TestRendezvousPicksAsTheSeedLibrary(t *testing.T) {
	p := NewRendezvous(0)
	assert.Equal(t, "2 3 2 3 7 0 0 3 6 4 2 3 2 7 4 6 7 7 7 7 0 6 5 3",
		libraryPicks(t, libraryFleet(t, p), func(i int, h uint64) { p.hashes[i] = h }))
}

func TestWeightedRendezvousPicksAsTheSeedLibrary(t *testing.T) {
	p := NewWeightedRendezvous(0)
	assert.Equal(t, "2 3 2 3 7 6 3 3 6 6 2 3 2 7 4 6 7 7 7 7 6 6 6 3",
		libraryPicks(t, libraryFleet(t, p), func(i int, h uint64) { p.race.lanes[i].hash = h }))
}

func TestBoundedLoadPicksAsTheSeedLibrary(t *testing.T) {
	p, err := NewBoundedLoad(0, defaultLoadFactor)
	require.NoError(t, err)
	assert.Equal(t, "2 3 2 3 7 6 3 3 6 6 2 3 2 7 3 6 7 7 7 7 6 6 6 3",
		libraryPicks(t, libraryFleet(t, p), func(i int, h uint64) { p.race.lanes[i].hash = h }))
}

func TestEqualScoresGoToTheLowestIDInAnyOrder(t *testing.T) {
	p := NewRendezvous(0)
	e := engine.New(p, engine.Config{})
	for _, order := range [][]engine.Candidate{{{ID: 3}, {ID: 2}, {ID: 9}}, {{ID: 9}, {ID: 3}, {ID: 2}}, {{ID: 2}, {ID: 9}, {ID: 3}}} {
		require.NoError(t, e.SetCandidates(0, order))
		for _, score := range []uint64{0, 77, 1<<64 - 1} {
			for i := range order {
				p.hashes[i] = hashFor(5, score)
			}
			var d engine.Decision
			require.NoError(t, e.Decide(&engine.Query{Key: 5}, &d))
			assert.Equal(t, engine.ID(2), d.ID)
			require.NoError(t, e.Decide(&engine.Query{Key: 5, Tried: []engine.ID{2}}, &d))
			assert.Equal(t, engine.ID(3), d.ID)
		}
	}
	x := e.Explain(&engine.Query{Key: 5})
	assert.Equal(t, 2, x.Ties)
}
