package fixed

import "math/bits"

// ln(2) in parts of 1<<58, and what that leaves in parts of 1<<90.
const (
	ln2Whole = 0x2c5c85fdf473de6
	ln2Rest  = 0xaf278ece
)

// 1/n in parts of 1<<32, cut short.
const (
	third  = 1 << 32 / 3
	fourth = 1 << 32 / 4
	fifth  = 1 << 32 / 5
	sixth  = 1 << 32 / 6
)

// NegLog is -ln((h+1) / 1<<64) in parts of 1<<58: how long an exponential race of rate one
// takes, if h is uniform. It is at most the true value, short of it by less than 1<<-54, and
// never grows with h. Its value in parts of 1<<32, cut short, is at least that of ^h / 1<<64.
//
// Every coefficient of -ln(1-x) is positive and every step here rounds down, so each stretch
// of the table rises with ^h and ends at or below the start of the next: no rounding can
// reverse the order of two arguments.
func NegLog(h uint64) uint64 {
	e := uint64(bits.LeadingZeros64(h))
	d := ^h << e                             // 1 - (h+1)/1<<(64-e), below 1/2, in parts of 1<<64
	i := d >> 55 & 255                       // the stretch: d is i/512 and a rest
	g, _ := bits.Mul64(d<<9, reciprocals[i]) // the rest over 1 - i/512, below 1/256, in parts of 1<<72
	q := g >> 32                             // the same in parts of 1<<40, for the small terms
	s := third + (fourth+(fifth+sixth*q>>40)*q>>40)*q>>40
	r, _ := bits.Mul64(g, 1<<62+s*q>>9) // g/2 + g²/3 + ... + g⁵/6 in parts of 1<<71
	t, _ := bits.Mul64(g, r)            // g times that, in parts of 1<<79
	return e*ln2Whole + e*ln2Rest>>32 + neglogs[i] + (g+t>>7)>>14
}
