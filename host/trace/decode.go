package trace

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// decoder reads a payload. After the first error it reads zeros.
type decoder struct {
	b     []byte
	err   error
	last  int64
	names []named
	room  int // bytes that what is read may take yet
}

// named is an endpoint, and what its name takes in the text of an answer.
type named struct {
	name   string
	quoted int
}

// What a segment may take once it is read. A recorder's takes some fifty times what it has in the file; a file
// made up to do harm names one long name in each of many short operations.
const (
	roomLeast  = 4 << 20
	roomFactor = 512
	roomMost   = 512 << 20
)

// About what single things take.
const (
	opRoom       = 512
	endpointRoom = 128
	elementRoom  = 64
	answerRoom   = 320 // the text of a decision, but for the name
)

func newDecoder(payload []byte) *decoder {
	return &decoder{b: payload, room: min(roomLeast+roomFactor*len(payload), roomMost)}
}

// spend takes of the room, before it is used.
func (d *decoder) spend(n int) bool {
	if d.room -= n; d.room < 0 && d.err == nil {
		d.err = errors.New("it says more than a segment of its length can mean: no recorder wrote this")
		d.b = nil
	}
	return d.room >= 0
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

// elements is the count of a list, for which there is room.
func (d *decoder) elements(size int) int {
	n := d.count()
	if !d.spend(n * size) {
		return 0
	}
	return n
}

func (d *decoder) bytes() []byte {
	n := d.count()
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() string {
	b := d.bytes()
	if !d.spend(len(b)) {
		return ""
	}
	return string(b)
}

func (d *decoder) at() *int64 {
	d.last += d.signed()
	at := d.last
	return &at
}

// who is an endpoint; a stranger's name is not known and need not be: it is no part of the fleet.
func (d *decoder) who() named {
	n := d.number()
	switch {
	case n == 0:
		stranger := fmt.Sprintf("?%016x", d.number())
		return named{stranger, len(stranger) + 2}
	case n > uint64(len(d.names)):
		d.err = fmt.Errorf("endpoint %d of %d", n, len(d.names))
		return named{"?", 3}
	}
	return d.names[n-1]
}

func (d *decoder) endpoint() string { return d.who().name }

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
	for len(d.b) > 0 && d.err == nil && d.spend(opRoom) {
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
		d.names = d.names[:0]
		for range d.elements(endpointRoom) {
			if d.err != nil {
				break
			}
			ep := Endpoint{Name: d.text(), Locality: d.text(), Weight: d.small(), Priority: d.byte()}
			ep.Status = d.status()
			op.Endpoints = append(op.Endpoints, ep)
			quoted, _ := json.Marshal(ep.Name)
			d.names = append(d.names, named{ep.Name, len(quoted)})
		}
	case segStatus:
		op.Op, op.Endpoint, op.Status = OpStatus, d.endpoint(), d.status()
	case segState:
		op.Op, op.Block = OpState, d.bytes()
	case segInFlight:
		op.Op = OpInFlight
		for range d.elements(elementRoom) {
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
		for range d.elements(elementRoom) {
			w := d.who()
			if !d.spend(w.quoted) {
				break
			}
			r.Probe = append(r.Probe, w.name)
		}
		op.Op, op.Want = OpProbes, d.want(&r)
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
	for range d.elements(elementRoom) {
		op.Tried = append(op.Tried, d.endpoint())
	}
	for range d.elements(2 * elementRoom) {
		op.Answers = append(op.Answers, d.reading())
	}
	r := Result{At: *op.At}
	d.spend(answerRoom)
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
			w := d.names[x.Index]
			if d.spend(w.quoted) {
				r.Endpoint = w.name
			}
		} else if d.err == nil {
			d.err = fmt.Errorf("a decision for candidate %d of %d", x.Index, len(d.names))
		}
	}
	op.Want = d.want(&r)
}

// want is the text of an answer, for which there is room unless there was an error.
func (d *decoder) want(r *Result) json.RawMessage {
	if d.err != nil {
		return nil
	}
	text, _ := r.Want()
	return text
}
