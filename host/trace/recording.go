package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
)

// Segment is a part of a recording: what one machine was asked for a while, in the lines of a
// trace. The first lines are its spec, its fleet and the state it started from.
type Segment struct {
	Head
	Ops []Op
}

// RecordingError says where a recording is wrong.
type RecordingError struct {
	File   string
	Offset int64 // in bytes
	Reason string
}

func (e *RecordingError) Error() string {
	return fmt.Sprintf("%s: at byte %d: %s", e.File, e.Offset, e.Reason)
}

// ErrCut says that a recording ends in the midst of a segment, as one does whose writer died.
// What stands before it is whole.
var ErrCut = errors.New("the recording ends in the midst of a segment")

// IsRecording says whether what follows is a recording, and not lines; it takes nothing.
func IsRecording(r *bufio.Reader) bool {
	head, _ := r.Peek(len(Magic))
	return string(head) == Magic
}

// ReadRecording reads a whole recording: [Segments] for one that may be large. With [ErrCut] it returns the
// segments that are whole.
func ReadRecording(file string, r io.Reader) ([]Segment, error) {
	var out []Segment
	for s, err := range Segments(file, r) {
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, nil
}

// Segments reads a recording, one segment after the other. The first error is the last: [ErrCut], a
// [RecordingError], or the reader's. Whoever wrote the file, one segment takes at most 512 MiB, and not more than
// some hundred times what it has in the file.
func Segments(file string, r io.Reader) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		head := make([]byte, len(Magic))
		if _, err := io.ReadFull(r, head); err != nil || string(head) != Magic {
			yield(Segment{}, &RecordingError{file, 0, "not a recording"})
			return
		}
		for offset := int64(len(Magic)); ; {
			s, size, err := readSegment(file, r, offset)
			if err == io.EOF || !yield(s, err) || err != nil {
				return
			}
			offset += size
		}
	}
}

// readSegment reads one segment and says how long it is; io.EOF if there is none.
func readSegment(file string, r io.Reader, offset int64) (s Segment, length int64, err error) {
	var f [frame]byte
	switch _, err := io.ReadFull(r, f[:]); {
	case err == io.ErrUnexpectedEOF:
		return s, 0, ErrCut
	case err != nil:
		return s, 0, err
	}
	size := binary.LittleEndian.Uint32(f[:])
	if size > MaxSegment {
		return s, 0, &RecordingError{file, offset, fmt.Sprintf("a segment of %d bytes, at most %d", size, MaxSegment)}
	}
	payload, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return s, 0, err
	}
	if len(payload) < int(size) {
		return s, 0, ErrCut
	}
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(f[4:]) {
		return s, 0, &RecordingError{file, offset, "the checksum does not fit: the file was damaged"}
	}
	d := newDecoder(payload)
	if s, err = d.segment(); err != nil {
		return Segment{}, 0, &RecordingError{file, offset + frame + int64(len(payload)-len(d.b)), err.Error()}
	}
	return s, frame + int64(size), nil
}
