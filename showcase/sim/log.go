package sim

import "math/bits"

// Constants in 32 and 64 fractional bits.
const (
	ln2        = 2977044472          // the natural logarithm of 2
	log2eBelow = 8166282121979093367 // of the binary logarithm of e, what is below the point
)

// negLn is -ln(u / 2^64) in 32 fractional bits, for u above 0. It is exact in integers, hence the
// same on every architecture.
func negLn(u uint64) int64 {
	lead := bits.LeadingZeros64(u)
	frac, sure := quickLog(u << lead)
	if !sure {
		frac = slowLog(u<<lead, 32)
	}
	// log2(u/2^64) = -(lead+1) + frac/2^32
	whole := uint64(lead+1)<<32 - frac
	hi, lo := bits.Mul64(whole, ln2)
	return int64(hi<<32 | lo>>32)
}

// slowLog is the first n bits, at most 62, of the binary logarithm of x, in 1.63 fixed point and
// from [1, 2): one by each squaring. What squarings lose adds up to less than 2^-62.
func slowLog(x uint64, n int) (frac uint64) {
	for range n {
		hi, _ := bits.Mul64(x, x) // 2.62 fixed point
		frac <<= 1
		if hi>>63 != 0 {
			frac |= 1
			x = hi
		} else {
			x = hi << 1
		}
	}
	return frac
}

// A quick logarithm looks a factor up by the first logSteps bits of x that brings it close to
// one, and takes the series of ln(1+z) from there.
const logSteps = 8

// logTable holds those factors, in 1.63 fixed point, and the binary logarithms that they take
// off, in 64 fractional bits.
var logTable = func() (t [1 << logSteps]struct{ by, off uint64 }) {
	t[0].by = 1 << 63
	for i := 1; i < len(t); i++ {
		by := (uint64(1)<<63-1)/(1<<logSteps+uint64(i))<<logSteps + 1<<logSteps // a little above 1/x: z is not negative
		t[i].by, t[i].off = by, -(slowLog(by<<1, 60) << 4)
	}
	return t
}()

// quickLog is the first 32 bits of the binary logarithm of x, in 1.63 fixed point and from
// [1, 2). It is not sure where its own error, under 2^-58, could matter: once in millions.
func quickLog(x uint64) (frac uint64, sure bool) {
	f := &logTable[x>>(63-logSteps)&(1<<logSteps-1)]
	p, _ := bits.Mul64(x, f.by) // 2.62 fixed point, in [1, 1 + 2^-8)
	z := p << 2                 // less one, in 64 fractional bits
	s := uint64(1<<64-1) / 7
	for _, c := range [...]uint64{(1<<64 - 1) / 6, (1<<64 - 1) / 5, 1 << 62, (1<<64 - 1) / 3, 1 << 63} {
		hi, _ := bits.Mul64(s, z)
		s = c - hi
	}
	s, _ = bits.Mul64(s, z)
	s, _ = bits.Mul64(s, z)
	ln := z - s
	hi, _ := bits.Mul64(ln, log2eBelow)
	log := f.off + ln + hi
	const margin = 1 << 8
	return log >> 32, uint32(log)-margin < 1<<32-2*margin
}
