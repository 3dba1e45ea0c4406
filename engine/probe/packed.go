package probe

import "math/bits"

// packed is a sequence of up to sixteen handles of four bits each, the first one lowest: taking
// one out of the middle is arithmetic on one word, where a list in memory would be moved.
type packed uint64

const (
	packedRoom = 16
	nibbles    = 0x1111111111111111 // one in each
)

func (s packed) at(i int) uint32 { return uint32(s>>(uint(i)<<2&63)) & 15 }

// find is four times the position of a handle that is there. A nibble that is zero after the
// exclusive or is the first to borrow.
func (s packed) find(h uint32) uint {
	x := uint64(s) ^ uint64(h)*nibbles
	return uint(bits.TrailingZeros64((x-nibbles)&^x&(8*nibbles))) & 60
}

// cut takes out the handle at four times a position.
func (s packed) cut(at uint) packed {
	low := packed(1)<<(at&63) - 1
	return s&low | s>>4&^low
}

// put inserts a handle at four times a position.
func (s packed) put(at uint, h uint32) packed {
	low := packed(1)<<(at&63) - 1
	return s&low | packed(h)<<(at&63) | s&^low<<4
}

// keys holds the rank of each handle's entry, all ones where there is none.
type keys [packedRoom]uint64

const blank = ^uint64(0)

// below is how many entries have a key less than v. It is a call and has no branch: where keys
// come in no order, a guest and a processor pay more for a jump than for a comparison.
//
//go:noinline
func (k *keys) below(v uint64) int {
	a := lessKey(k[0], v) + lessKey(k[1], v) + lessKey(k[2], v) + lessKey(k[3], v)
	b := lessKey(k[4], v) + lessKey(k[5], v) + lessKey(k[6], v) + lessKey(k[7], v)
	c := lessKey(k[8], v) + lessKey(k[9], v) + lessKey(k[10], v) + lessKey(k[11], v)
	d := lessKey(k[12], v) + lessKey(k[13], v) + lessKey(k[14], v) + lessKey(k[15], v)
	return a + b + c + d
}

func lessKey(a, b uint64) (one int) {
	if a < b {
		one = 1
	}
	return one
}
