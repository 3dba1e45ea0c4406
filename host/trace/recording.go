package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
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

// ReadRecording reads a recording. With [ErrCut] it returns the segments that are whole; any other
// error is a [RecordingError] or the reader's.
func ReadRecording(file string, r io.Reader) ([]Segment, error) {
	head := make([]byte, len(Magic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != Magic {
		return nil, &RecordingError{file, 0, "not a recording"}
	}
	var out []Segment
	offset := int64(len(Magic))
	for {
		var f [frame]byte
		switch _, err := io.ReadFull(r, f[:]); {
		case err == io.EOF:
			return out, nil
		case err == io.ErrUnexpectedEOF:
			return out, ErrCut
		case err != nil:
			return out, err
		}
		size := binary.LittleEndian.Uint32(f[:])
		if size > MaxSegment {
			return out, &RecordingError{file, offset, fmt.Sprintf("a segment of %d bytes, at most %d", size, MaxSegment)}
		}
		payload, err := io.ReadAll(io.LimitReader(r, int64(size)))
		if err != nil {
			return out, err
		}
		if len(payload) < int(size) {
			return out, ErrCut
		}
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(f[4:]) {
			return out, &RecordingError{file, offset, "the checksum does not fit: the file was damaged"}
		}
		d := decoder{b: payload}
		s, err := d.segment()
		if err != nil {
			return out, &RecordingError{file, offset + frame + int64(len(payload)-len(d.b)), err.Error()}
		}
		out = append(out, s)
		offset += frame + int64(size)
	}
}

// decoder reads a payload. After the first error it reads zeros.
type decoder struct {
	b     []byte
	err   error
	last  int64
	names []string
}

var errShort = errors.New("the segment ends in the midst of a value")

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.err = errShort
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) signed() int64 {
	v := d.number()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) small() uint32 {
	v := d.number()
	if v > 1<<32-1 {
		d.err = errors.New("a number of more than 32 bits")
	}
	return uint32(v)
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.err = errShort
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// count is a number of things that take at least a byte each.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.err = errShort
		return 0
	}
	return int(n)
}

func (d *decoder) bytes() []byte {
	n := d.count()
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() string { return string(d.bytes()) }

func (d *decoder) at() *int64 {
	d.last += d.signed()
	at := d.last
	return &at
}

// endpoint is a name; a stranger's is not known and need not be: it is no part of the fleet.
func (d *decoder) endpoint() string {
	n := d.number()
	switch {
	case n == 0:
		return fmt.Sprintf("?%016x", d.number())
	case n > uint64(len(d.names)):
		d.err = fmt.Errorf("endpoint %d of %d", n, len(d.names))
		return "?"
	}
	return d.names[n-1]
}

func (d *decoder) status() string {
	st := engine.Status(d.byte())
	if st > engine.StatusUnavailable {
		d.err = fmt.Errorf("status %d", st)
	}
	return st.String()
}

func (d *decoder) latency() *int64 {
	if v := d.signed(); v >= 0 {
		return &v
	}
	return nil
}

func (d *decoder) reading() Answer {
	a := Answer{Endpoint: d.endpoint(), RIF: d.small(), LatencyNS: d.latency()}
	asked := d.last + d.signed()
	a.Asked = &asked
	return a
}

func (d *decoder) segment() (s Segment, err error) {
	for _, v := range []*uint64{&s.Shard, &s.Generation, &s.Machine, &s.Number, &s.Salt} {
		*v = d.number()
	}
	s.Began = int64(d.number())
	s.Spec = d.text()
	s.Ops = append(s.Ops, Op{Op: OpSpec, Spec: s.Spec, Salt: s.Salt})
	for len(d.b) > 0 && d.err == nil {
		op := d.op()
		op.Line = len(s.Ops) + 1
		s.Ops = append(s.Ops, op)
	}
	return s, d.err
}

func (d *decoder) op() Op {
	kind := d.byte()
	op := Op{At: d.at()}
	switch kind {
	case segEndpoints:
		op.Op = OpEndpoints
		n := d.count()
		d.names = d.names[:0]
		for range n {
			ep := Endpoint{Name: d.text(), Locality: d.text(), Weight: d.small(), Priority: d.byte()}
			ep.Status = d.status()
			op.Endpoints = append(op.Endpoints, ep)
			d.names = append(d.names, ep.Name)
		}
	case segStatus:
		op.Op, op.Endpoint, op.Status = OpStatus, d.endpoint(), d.status()
	case segState:
		op.Op, op.Block = OpState, d.bytes()
	case segInFlight:
		op.Op = OpInFlight
		for range d.count() {
			op.Open = append(op.Open, Open{Endpoint: d.endpoint(), Queries: d.small()})
		}
	case segReading:
		a := d.reading()
		op.Op, op.Endpoint, op.RIF, op.LatencyNS, op.Asked = OpReading, a.Endpoint, &a.RIF, a.LatencyNS, a.Asked
	case segLoad:
		op.Op, op.Endpoint = OpLoad, d.endpoint()
		u, q, e := d.small(), d.small(), d.small()
		op.Utilization, op.QPS, op.EPS = &u, &q, &e
	case segForget:
		op.Op, op.Endpoint = OpForget, d.endpoint()
		asked := d.last + d.signed()
		op.Asked = &asked
	case segDecide:
		d.decide(&op)
	case segDone:
		op.Op, op.Endpoint = OpDone, d.endpoint()
		o := engine.Outcome(d.byte())
		if o > engine.OutcomeCancelled {
			d.err = fmt.Errorf("outcome %d", o)
		}
		op.Outcome, op.LatencyNS = o.String(), d.latency()
	case segProbes:
		r := Result{Placement: -1, At: *op.At}
		for range d.count() {
			r.Probe = append(r.Probe, d.endpoint())
		}
		op.Op = OpProbes
		op.Want, _ = r.Want()
	default:
		d.err = fmt.Errorf("no operation %d: a newer program wrote this", kind)
	}
	return op
}

func (d *decoder) decide(op *Op) {
	op.Op = OpDecide
	if key := d.number(); key != 0 {
		op.KeyHash = fmt.Sprintf("%016x", key)
	}
	for range d.count() {
		op.Tried = append(op.Tried, d.endpoint())
	}
	for range d.count() {
		op.Answers = append(op.Answers, d.reading())
	}
	r := Result{At: *op.At}
	if code := d.number(); code != 0 {
		r.Err = abi.ErrorOf(abi.Code(-int64(min(code, 1<<31-1))))
	} else {
		x := &r.Decision
		x.Regime, x.Cause = engine.Regime(d.byte()), engine.Cause(d.byte())
		for _, v := range []*uint32{&x.Index, &x.Offered, &x.Cold, &x.Hot, &x.Threshold, &x.RIF, &x.UsesLeft} {
			*v = d.small()
		}
		x.Threshold = ^x.Threshold
		x.Latency, x.Age = engine.Duration(d.signed()), engine.Duration(d.signed())
		if int(x.Index) < len(d.names) {
			r.Endpoint = d.names[x.Index]
		} else if d.err == nil {
			d.err = fmt.Errorf("a decision for candidate %d of %d", x.Index, len(d.names))
		}
	}
	op.Want, _ = r.Want()
}
