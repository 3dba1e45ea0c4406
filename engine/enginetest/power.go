package enginetest

import (
	"fmt"
	"math"
)

// A distribution test that samples too little cannot fail. These two bounds settle how much is
// enough: a right policy fails once in about 10^11 runs, and one that is off by the stated
// deviation passes once in twenty.
const (
	alarmSigmas = 6.8
	powerSigmas = 1.645
	margin      = 1.02
)

// Draws is how many draws it takes to notice a share that is off by a relative deviation, as in
// Draws(0.1, 0.02): a tenth that is really 0.098 or 0.102.
func Draws(share, deviation float64) int {
	sd := math.Sqrt(share * (1 - share))
	off := share * (1 + deviation)
	sdOff := math.Sqrt(off * (1 - off))
	n := (alarmSigmas*sd + powerSigmas*sdOff) / (share * deviation)
	return int(math.Ceil(n * n * margin))
}

// CheckShare fails for a count of n draws that is too far from a share of them.
func CheckShare(share float64, count, n int) error {
	want := share * float64(n)
	if off := math.Abs(float64(count) - want); off > alarmSigmas*math.Sqrt(want*(1-share))+1 {
		return fmt.Errorf("%d of %d draws, want about %.0f", count, n, want)
	}
	return nil
}
