package fuel

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknown is a part of the binary format that this package does not know. The module may
	// be right all the same: guard it in another way.
	ErrUnknown = errors.New("not understood")
	// ErrMalformed is a module that is not WebAssembly, or beyond the limits set here. Nothing
	// should run it.
	ErrMalformed = errors.New("malformed module")
)

// reader walks bytes. The first failure sticks: what is read after it is zero, and every loop
// over a count of the module's own asks ok.
type reader struct {
	b   []byte
	pos int
	at  int // of b[0] in the module
	err error
}

func (r *reader) ok() bool   { return r.err == nil }
func (r *reader) left() int  { return len(r.b) - r.pos }
func (r *reader) done() bool { return r.err != nil || r.pos >= len(r.b) }

func (r *reader) fail(kind error, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s at offset %#x", kind, fmt.Sprintf(format, args...), r.at+r.pos)
		r.pos = len(r.b)
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.pos >= len(r.b) {
		r.fail(ErrMalformed, "it ends too soon")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *reader) bytes(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(r.left()) {
		r.fail(ErrMalformed, "it ends too soon")
		return nil
	}
	part := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return part
}

// sub is a reader over the next n bytes.
func (r *reader) sub(n uint32) reader {
	at := r.at + r.pos
	part := r.bytes(n)
	return reader{b: part, at: at, err: r.err}
}

// u32 reads an unsigned LEB128: at most five bytes, over-long forms included.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				r.fail(ErrMalformed, "number of more than 32 bits")
				return 0
			}
			return uint32(v)
		}
	}
	r.fail(ErrMalformed, "number of more than five bytes")
	return 0
}

// signed reads a signed LEB128 of the given width; the bits beyond it repeat the sign.
func (r *reader) signed(width int) int64 {
	var v int64
	for shift := 0; shift < width; shift += 7 {
		c := r.byte()
		if rest := width - shift; rest < 7 {
			// The last byte that fits: its bits from the sign on are all alike.
			if sign := int8(c<<1) >> rest; c >= 0x80 || sign != 0 && sign != -1 {
				r.fail(ErrMalformed, "number of more than %d bits", width)
				return 0
			}
		}
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if shift += 7; shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
	r.fail(ErrMalformed, "number of more than %d bits", width)
	return 0
}

// count reads the length of a vector, whose elements take at least one byte each: a number that
// cannot be true is refused before anybody makes room for it.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(r.left()) {
		r.fail(ErrMalformed, "%d elements in %d bytes", n, r.left())
		return 0
	}
	return n
}

// index reads an index below n. An index that only the pass's own additions make valid must
// not pass: a guest could reach its fuel with it.
func (r *reader) index(n int, what string) uint32 {
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(n) {
		r.fail(ErrMalformed, "%s %d of %d", what, i, n)
	}
	return i
}

func appendU32(b []byte, v uint32) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func appendS64(b []byte, v int64) []byte {
	for v < -0x40 || v > 0x3f {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}
