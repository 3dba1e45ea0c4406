// Package wide is arithmetic on whole numbers of several 64-bit words, low word first. Both
// operands have the same number of words. Results that do not fit are the caller's mistake.
package wide

import "math/bits"

// Mul makes x the product of x and w.
func Mul(x []uint64, w uint64) {
	carry := uint64(0)
	for i := range x {
		hi, lo := bits.Mul64(x[i], w)
		var c uint64
		x[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
}

// Div makes x the quotient of x and w, which is not zero, rounded down.
func Div(x []uint64, w uint64) {
	rest := uint64(0)
	for i := len(x) - 1; i >= 0; i-- {
		x[i], rest = bits.Div64(rest, x[i], w)
	}
}

// Add makes x the sum of x and y.
func Add(x, y []uint64) {
	carry := uint64(0)
	for i := range x {
		x[i], carry = bits.Add64(x[i], y[i], carry)
	}
}

// Less reports whether x is below y.
func Less(x, y []uint64) bool {
	for i := len(x) - 1; i >= 0; i-- {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

// Split returns the first 32 binary places of x/y, rounded down, and makes x what remains, in
// units of y over 1<<32. x is below y, and the top bit of y is not set.
func Split(x, y []uint64) uint32 {
	places := uint32(0)
	for range 32 {
		places <<= 1
		Add(x, x)
		if !Less(x, y) {
			places |= 1
			borrow := uint64(0)
			for i := range x {
				x[i], borrow = bits.Sub64(x[i], y[i], borrow)
			}
		}
	}
	return places
}

// Len is the number of bits that x needs.
func Len(x []uint64) int {
	for i := len(x) - 1; i >= 0; i-- {
		if x[i] != 0 {
			return 64*i + bits.Len64(x[i])
		}
	}
	return 0
}
