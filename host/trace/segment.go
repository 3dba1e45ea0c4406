package trace

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// Magic begins a recording. What follows are segments; docs/formats.md describes them.
const Magic = "HEADROOMTRACE\x00\x01\n"

// The operations of a segment, a byte each. Frozen: recordings outlive programs.
const (
	segEndpoints = iota + 1
	segStatus
	segState
	segInFlight
	segReading
	segLoad
	segForget
	segDecide
	segDone
	segProbes
)

// MaxSegment bounds a segment's payload in bytes.
const MaxSegment = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Head is what a segment begins with: whose calls it holds, and where the machine stood.
type Head struct {
	Shard      uint64
	Generation uint64
	Machine    uint64 // tells the machines of a recording apart: a shard's next one has another number
	Number     uint64 // grows by one from segment to segment of a machine; 0 is a machine's first
	Spec       string
	Salt       uint64
	Began      int64 // nanoseconds since 1970 at instant 0
}

// SegmentWriter writes down the calls of one machine, in the recording's form. It is made for
// a shard's lock: nothing waits, and memory grows only with the segment.
type SegmentWriter struct {
	buf    []byte
	last   int64 // instant
	index  map[engine.ID]uint64
	Ops    int // so far
	Decide int // of them decides
	Fell   int // of those in fallback, or refused for no good reason
}

// Begin starts a segment in place of the last one.
func (w *SegmentWriter) Begin(h Head) {
	w.buf, w.last, w.Ops, w.Decide, w.Fell = append(w.buf[:0], make([]byte, frame)...), 0, 0, 0, 0
	for _, v := range []uint64{h.Shard, h.Generation, h.Machine, h.Number, h.Salt, uint64(h.Began)} {
		w.number(v)
	}
	w.text(h.Spec)
	if w.index == nil {
		w.index = map[engine.ID]uint64{}
	}
}

// frame is the room before a payload: its length and its checksum.
const frame = 8

// Finish returns the segment, ready to be written. It holds until the next Begin.
func (w *SegmentWriter) Finish() []byte {
	payload := w.buf[frame:]
	binary.LittleEndian.PutUint32(w.buf, uint32(len(payload)))
	binary.LittleEndian.PutUint32(w.buf[4:], crc32.Checksum(payload, castagnoli))
	return w.buf
}

// Len is the segment's length so far, in bytes.
func (w *SegmentWriter) Len() int { return len(w.buf) }

func (w *SegmentWriter) number(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *SegmentWriter) signed(v int64)  { w.buf = binary.AppendVarint(w.buf, v) }
func (w *SegmentWriter) text(s string) {
	w.number(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *SegmentWriter) op(op byte, at engine.Instant) {
	w.Ops++
	w.buf = append(w.buf, op)
	w.signed(int64(at) - w.last)
	w.last = int64(at)
}

// id is an endpoint's number in the last fleet, from 1, or 0 and the identity of a stranger.
func (w *SegmentWriter) id(id engine.ID) {
	n := w.index[id]
	w.number(n)
	if n == 0 {
		w.number(uint64(id))
	}
}

// Endpoints is a change of the fleet; name is the name of the candidate in a slot, and locality
// its locality's.
func (w *SegmentWriter) Endpoints(at engine.Instant, cs []engine.Candidate, name func(slot int) (name, locality string)) {
	w.op(segEndpoints, at)
	w.number(uint64(len(cs)))
	clear(w.index)
	for i, c := range cs {
		n, l := name(i)
		w.text(n)
		w.text(l)
		w.number(uint64(c.Weight))
		w.buf = append(w.buf, c.Priority, byte(c.Status))
		w.index[c.ID] = uint64(i + 1)
	}
}

// Status is a change of one status.
func (w *SegmentWriter) Status(at engine.Instant, id engine.ID, st engine.Status) {
	w.op(segStatus, at)
	w.id(id)
	w.buf = append(w.buf, byte(st))
}

// State is where the machine stands: a block that it gave, or that was put back.
func (w *SegmentWriter) State(at engine.Instant, block []byte) {
	w.op(segState, at)
	w.number(uint64(len(block)))
	w.buf = append(w.buf, block...)
}

// InFlight is what the machine was told of open queries.
func (w *SegmentWriter) InFlight(at engine.Instant, open []engine.InFlight) {
	w.op(segInFlight, at)
	w.number(uint64(len(open)))
	for _, o := range open {
		w.id(o.ID)
		w.number(uint64(o.Queries))
	}
}

func (w *SegmentWriter) reading(id engine.ID, rd engine.Reading) {
	w.id(id)
	w.number(uint64(rd.RIF))
	w.signed(int64(max(rd.Latency, engine.UnknownLatency)))
	w.signed(int64(rd.Asked) - w.last)
}

// Reading is a probe's answer that was recorded.
func (w *SegmentWriter) Reading(at engine.Instant, id engine.ID, rd engine.Reading) {
	w.op(segReading, at)
	w.reading(id, rd)
}

// Load is a load report.
func (w *SegmentWriter) Load(at engine.Instant, id engine.ID, l engine.LoadReport) {
	w.op(segLoad, at)
	w.id(id)
	w.number(uint64(l.Utilization))
	w.number(uint64(l.QPS))
	w.number(uint64(l.EPS))
}

// Forget is a probe that failed.
func (w *SegmentWriter) Forget(at engine.Instant, id engine.ID, asked engine.Instant) {
	w.op(segForget, at)
	w.id(id)
	w.signed(int64(asked) - w.last)
}

// Decided is a query and what was answered.
func (w *SegmentWriter) Decided(q *engine.Query, d *engine.Decision, err error) {
	w.op(segDecide, q.Now)
	w.Decide++
	w.number(uint64(q.Key))
	w.number(uint64(len(q.Tried)))
	for _, id := range q.Tried {
		w.id(id)
	}
	w.number(uint64(len(q.Answers)))
	for _, a := range q.Answers {
		w.reading(a.ID, a.Reading)
	}
	w.number(uint64(-int64(abi.CodeOf(err))))
	if err != nil {
		return
	}
	if d.Regime == engine.RegimeFallback {
		w.Fell++
	}
	w.buf = append(w.buf, byte(d.Regime), byte(d.Cause))
	for _, v := range [...]uint32{d.Index, d.Offered, d.Cold, d.Hot, ^d.Threshold, d.RIF, d.UsesLeft} {
		w.number(uint64(v))
	}
	w.signed(int64(d.Latency))
	w.signed(int64(d.Age))
}

// Done is the end of a placed query.
func (w *SegmentWriter) Done(at engine.Instant, r engine.Report) {
	w.op(segDone, at)
	w.id(r.ID)
	w.buf = append(w.buf, byte(r.Outcome))
	w.signed(int64(max(r.Latency, engine.UnknownLatency)))
}

// Probes is a question who is due, and the answer.
func (w *SegmentWriter) Probes(at engine.Instant, due []engine.ID) {
	w.op(segProbes, at)
	w.number(uint64(len(due)))
	for _, id := range due {
		w.id(id)
	}
}
