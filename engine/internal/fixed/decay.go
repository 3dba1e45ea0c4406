package fixed

import "math/bits"

// One is 1 as Decay tells fractions; Octave is 1 as Decay takes exponents.
const (
	One    = uint64(1) << 63
	Octave = uint64(1) << 58
)

// Decay is 2^(-x / Octave) in parts of One, within 2^-47 of its true value, relatively, or
// within one part where that is more; in x it falls as far as that can be told.
func Decay(x uint64) uint64 {
	const fraction = 50
	i := x >> fraction & 255
	y, _ := bits.Mul64(x<<(64-fraction)>>8, ln2) // the rest as a natural exponent, below 2^-8, in parts of 1<<64
	z := y >> 24
	y2 := z * z >> 16
	y3 := (y2 >> 16) * z >> 24
	y4 := (y2 >> 16) * (y2 >> 16) >> 32
	rest := One - y>>1 + y2>>2 - y3/12 + y4/48
	if x>>fraction == 0 { // the usual wait is short, and a guest's long multiplication dear
		return rest
	}
	hi, lo := bits.Mul64(halves[i], rest)
	return (hi<<1 | lo>>63) >> (x >> 58)
}

const ln2 = 0xb17217f7d1cf79ac // in parts of 1<<64

// DecayRate is the exponent per nanosecond of an exponential decay with a time constant in
// nanoseconds, which is at least 1: Decay(elapsed * rate) is e^(-elapsed / constant). An elapsed
// time of MostConstants time constants or more has decayed to nothing, and may not fit.
func DecayRate(constant uint64) uint64 { return log2e / constant }

const log2e = 415828534307635078 // log2(e) in parts of Octave

// MostConstants bounds what DecayRate is good for: e^-40 is below any share that matters.
const MostConstants = 40
