// Package rank scores replicas for affinity keys. The numbers that leave are part of
// Headroom's compatibility contract: changing one moves keys.
package rank

import "github.com/headroom-lb/headroom/engine/internal/hash"

// Keys and replicas are named by one hash, so a key may well equal an identity. The domains
// keep the two apart.
const (
	keyDomain     = 0x79656b2d72766472 // "rdvr-key", little-endian
	replicaDomain = 0x7065722d72766472 // "rdvr-rep"
)

// Key spreads an affinity key for [Score].
func Key(k uint64) uint64 { return hash.Mix(k ^ keyDomain) }

// Replica spreads an identity for [Score]; different identities stay different.
func Replica(id uint64) uint64 { return hash.Mix(id ^ replicaDomain) }

// Score is the rendezvous score of a spread key and a spread identity. Every step is a
// bijection, so under one key different replicas have different scores.
func Score(key, replica uint64) uint64 { return hash.Mix(key ^ replica) }
