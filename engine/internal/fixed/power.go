package fixed

import "math/bits"

// Log2 is log2(v) in parts of 1<<32, cut short, for v of at least 1: the true value less at
// most two parts.
func Log2(v uint64) uint64 {
	whole := uint64(bits.Len64(v) - 1)
	m := v << (63 - whole) // from 1 to 2 in parts of One
	var fraction uint64
	for range 32 {
		hi, lo := bits.Mul64(m, m)
		fraction <<= 1
		if hi>>63 == 1 { // the square is 2 or more
			fraction |= 1
			m = hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return whole<<32 | fraction
}

// InversePower is v^-(num/den) in parts of One, for v and den of at least 1 and num below 1<<24:
// within 2^-24 of its true value, relatively, or one part, for exponents up to 10.
func InversePower(v, num, den uint64) uint64 {
	if v == 1 || num == 0 {
		return One
	}
	if num == den {
		return One / v
	}
	return shrink(Log2(v), num, den)
}

// FractionPower is (a/b)^(num/den) in parts of One, for 0 < a <= b, with the same bounds.
func FractionPower(a, b, num, den uint64) uint64 {
	if a == b || num == 0 {
		return One
	}
	if num == den {
		q, _ := bits.Div64(a>>1, a<<63, b)
		return q
	}
	return shrink(Log2(b)-min(Log2(a), Log2(b)), num, den)
}

// shrink is 2^-(octaves * num/den), octaves in parts of 1<<32.
func shrink(octaves, num, den uint64) uint64 {
	hi, lo := bits.Mul64(octaves, num)
	if hi >= den {
		return 0
	}
	x, _ := bits.Div64(hi, lo, den)
	if x >= 64<<32 {
		return 0
	}
	return Decay(x << 26)
}
