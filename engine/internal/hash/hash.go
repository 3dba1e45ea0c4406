// Package hash names replicas and keys with frozen 64-bit hashes. The bytes that enter and
// the numbers that leave are part of Headroom's compatibility contract.
package hash

const (
	offset64 = 0xcbf29ce484222325
	prime64  = 0x100000001b3
)

// String is FNV-1a 64 over the bytes of s, finished with Mix so that every bit of the
// result depends on every byte. https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
func String(s string) uint64 { return Mix(FNV1a(s)) }

// FNV1a is plain FNV-1a 64.
func FNV1a(s string) uint64 {
	h := uint64(offset64)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * prime64
	}
	return h
}

// Word folds one 64-bit word, low byte first, into a running FNV-1a state.
func Word(h, w uint64) uint64 {
	for i := 0; i < 64; i += 8 {
		h = (h ^ (w >> i & 0xff)) * prime64
	}
	return h
}

// Start is the FNV-1a state before any byte.
func Start() uint64 { return offset64 }

// Mix is the SplitMix64 finalizer: a bijection on 64-bit words (Steele, Lea, Flood 2014).
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return x
}
