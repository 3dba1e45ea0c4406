package rank_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// Frozen: a change of any of these numbers moves keys between replicas.
func TestPublishedRendezvousVectors(t *testing.T) {
	for _, v := range []struct{ key, id, spreadKey, spreadID, score uint64 }{} {
		assert.Equal(t, v.spreadKey, rank.Key(v.key))
		assert.Equal(t, v.spreadID, rank.Replica(v.id))
		assert.Equal(t, v.score, rank.Score(v.spreadKey, v.spreadID))
	}
}

// A key and a replica may have the same name, and then the same number.
func TestAKeyNamedLikeAReplicaIsNotSpecialToIt(t *testing.T) {
	for n := range uint64(1000) {
		assert.NotEqual(t, rank.Key(n), rank.Replica(n))
	}
}
