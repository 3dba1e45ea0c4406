package trace

import "bytes"

// Framed is a recording of one segment with such a payload.
func Framed(payload []byte) []byte {
	w := SegmentWriter{buf: append(make([]byte, frame), payload...)}
	return append([]byte(Magic), bytes.Clone(w.Finish())...)
}
