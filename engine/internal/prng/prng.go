// Package prng is Headroom's frozen random generator: SplitMix64 (Steele, Lea, Flood 2014),
// one word of state, so that it lives in the state block and travels with it.
package prng

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine/internal/hash"
)

const gamma = 0x9e3779b97f4a7c15

// Next advances the state and returns 64 uniform bits.
func Next(state *uint64) uint64 {
	*state += gamma
	return hash.Mix(*state)
}

// Below returns a uniform number in [0, n). It is exact: the few values that would favour
// small results are drawn again (Lemire 2019). n must be at least 1.
func Below(state *uint64, n uint32) uint32 {
	m := (Next(state) >> 32) * uint64(n)
	if uint32(m) < n {
		m = again(state, m, n)
	}
	return uint32(m >> 32)
}

func again(state *uint64, m uint64, n uint32) uint64 {
	for floor := -n % n; uint32(m) < floor; {
		m = (Next(state) >> 32) * uint64(n)
	}
	return m
}

// Below64 is Below for large numbers.
func Below64(state *uint64, n uint64) uint64 {
	hi, lo := bits.Mul64(Next(state), n)
	if lo < n {
		for floor := -n % n; lo < floor; {
			hi, lo = bits.Mul64(Next(state), n)
		}
	}
	return hi
}
