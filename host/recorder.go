package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/trace"
)

// Recorder keeps the last calls to a balancer's machines, so that what they decided can be
// decided again, bit for bit, and explained. Set its fields before a balancer gets it; the zero
// value keeps 30 seconds in at most 64 MiB. What it keeps are segments of about a second, each
// with the fleet and the state that it starts from, and longer where those are large. Keys of queries are
// kept as hashes only. One recorder serves one balancer at a time, until that has closed.
type Recorder struct {
	Keep     time.Duration // how long; zero means 30 s
	MaxBytes int           // of the segments kept; zero means 64 MiB
	Sample   int           // keep one segment in so many; zero means every one
	// Sink, if set, is given every segment kept, after the recording's first bytes, in their order and on a
	// goroutine of its own, so that a slow disk holds up no decision. What waits for it takes at most MaxBytes
	// besides; a segment beyond that is lost to the sink, and counted. [Balancer.Close] waits for it, 5 s at
	// most. After its first error it is given no more: see [Recorder.Stats].
	Sink io.Writer
	// OnAnomaly, if set, is called, on a goroutine of its own and at most once in AnomalyEvery, when a
	// segment was full of fallbacks or a machine failed. Dump what is kept there.
	OnAnomaly    func(reason string)
	AnomalyEvery time.Duration // zero means a minute

	mu      sync.Mutex
	kept    []segment
	bytes   int
	stats   RecorderStats
	outbox  outbox
	alarmed time.Time
	owner   atomic.Pointer[Balancer]
	made    atomic.Uint64 // machines
}

type segment struct {
	ended time.Time
	data  []byte
}

// RecorderStats say what a recorder did.
type RecorderStats struct {
	Segments  uint64 // finished
	Bytes     uint64 // of them
	Kept      int    // segments at the moment
	KeptBytes int
	TooLarge  uint64 // segments that were not kept: their fleet alone is more than a reader takes
	Anomalies uint64
	SinkLost  uint64 // segments kept that the sink did not get: it had fallen behind, or failed
	SinkError error  // the sink's first; nothing was written to it since
}

// serve gives the recorder to a balancer.
func (r *Recorder) serve(b *Balancer) error {
	if r != nil && !r.owner.CompareAndSwap(nil, b) {
		return ErrRecorderTaken
	}
	return nil
}

// leave takes it back, if that balancer has it, when the sink has what it was given.
func (r *Recorder) leave(b *Balancer) error {
	if r == nil || r.owner.Load() != b {
		return nil
	}
	err := r.flush()
	r.owner.CompareAndSwap(b, nil)
	return err
}

// ErrRecorderTaken says that a recorder has a balancer already.
var ErrRecorderTaken = errors.New("the recorder serves another balancer already")

// WithRecorder has a balancer's calls kept: about 0.2 us more for each.
func WithRecorder(r *Recorder) Option { return func(o *options) { o.recorder = r } }

// A segment ends after this time or size of its calls, and it is an anomaly if of so many decisions such
// a part was fallback.
const (
	segmentSpan   = time.Second
	segmentBytes  = 1 << 20
	segmentMost   = 4 << 20 // where more is due because the start is large
	anomalyLeast  = 50
	anomalyShare  = 5 // one in so many
	defaultKeep   = 30 * time.Second
	defaultRecord = 64 << 20
)

// Stats says what was recorded.
func (r *Recorder) Stats() RecorderStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Kept, s.KeptBytes = len(r.kept), r.bytes
	return s
}

// Dump writes the segments that ended within the last so long, zero for all that are kept, as a
// recording that wasmhost replay reads. The segments under way end with the next call to their
// machines: [Balancer.Dump] ends them first.
func (r *Recorder) Dump(w io.Writer, last time.Duration) error {
	r.mu.Lock()
	kept := slices.Clone(r.kept) // segments do not change
	r.mu.Unlock()
	if _, err := io.WriteString(w, trace.Magic); err != nil {
		return err
	}
	for _, s := range kept {
		if last > 0 && time.Since(s.ended) > last {
			continue
		}
		if _, err := w.Write(s.data); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoRecorder says that a balancer records nothing.
var ErrNoRecorder = errors.New("nothing is recorded: the balancer has no recorder")

// Dump writes what the recorder holds of the last so long, zero for all of it, up to now.
func (b *Balancer) Dump(w io.Writer, last time.Duration) error {
	r := b.opts.recorder
	if r == nil {
		return ErrNoRecorder
	}
	for _, s := range b.all() {
		s.mu.Lock()
		if m, ok := s.machine.(*recorded); ok {
			m.finish()
		}
		s.release()
	}
	return r.Dump(w, last)
}

// take keeps a finished segment.
func (r *Recorder) take(data []byte, number uint64) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(data) > trace.MaxSegment {
		r.stats.TooLarge++
		return
	}
	r.stats.Segments++
	r.stats.Bytes += uint64(len(data))
	if r.Sample > 1 && number%uint64(r.Sample) != 0 {
		return
	}
	data = slices.Clone(data)
	r.kept, r.bytes = append(r.kept, segment{now, data}), r.bytes+len(data)
	keep, most := orDefault(r.Keep, defaultKeep), orDefault(r.MaxBytes, defaultRecord)
	drop := 0
	for drop < len(r.kept)-1 && (r.bytes > most || now.Sub(r.kept[drop].ended) > keep) {
		r.bytes -= len(r.kept[drop].data)
		drop++
	}
	r.kept = slices.Delete(r.kept, 0, drop)
	if r.Sink != nil {
		r.send(data, most)
	}
}

// alarm tells of an anomaly, unless one was told of lately.
func (r *Recorder) alarm(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stats.Anomalies > 0 && time.Since(r.alarmed) < orDefault(r.AnomalyEvery, time.Minute) {
		return
	}
	r.stats.Anomalies++
	r.alarmed = time.Now()
	if r.OnAnomaly != nil {
		go r.OnAnomaly(reason)
	}
}

// recorded is a machine whose calls are written down, under its shard's lock.
type recorded struct {
	engine.Machine
	r     *Recorder
	s     *shard
	fleet *fleet // as the machine was told
	spec  string
	gen   uint64
	id    uint64
	w     trace.SegmentWriter
	n     uint64
	began time.Time // of the segment; zero if none is under way
	start int       // bytes of it that say where it starts from
	block []byte
}

// recording has a machine's calls written down, if anybody wants that.
func (s *shard) recording(m engine.Machine) engine.Machine {
	r := s.b.opts.recorder
	if r == nil {
		return m
	}
	return &recorded{Machine: m, r: r, s: s, fleet: s.fleet, spec: s.arm.spec, gen: s.arm.generation, id: r.made.Add(1)}
}

// begin makes sure that a segment is under way. Each starts with fleet and state, before the
// call that is to be written down. An error is the machine's, which did not give its state.
func (m *recorded) begin(now engine.Instant) error {
	if !m.began.IsZero() {
		if !m.full() {
			return nil
		}
		m.finish()
	}
	block, err := m.Machine.Snapshot(m.block[:0])
	if err != nil {
		return err
	}
	m.block, m.began = block, time.Now()
	m.w.Begin(trace.Head{
		Shard: uint64(m.s.index), Generation: m.gen, Machine: m.id, Number: m.n, Spec: m.spec, Salt: m.s.salt,
		Began: m.s.b.began.UnixNano(),
	})
	m.n++
	m.endpoints(now - before)
	if len(block) > 0 {
		m.w.State(now-before, block)
	}
	m.start = m.w.Len()
	return nil
}

// full says whether the segment has had its calls. Its start is not counted among them: with thousands of
// endpoints it is larger than they are, and a recording would be made of starts. So the larger the
// start, the more calls follow, and the longer.
func (m *recorded) full() bool {
	calls := min(max(segmentBytes, m.start), segmentMost)
	span := segmentSpan * time.Duration(1+m.start/segmentBytes)
	return m.w.Len()-m.start >= calls || time.Since(m.began) >= span
}

func (m *recorded) endpoints(at engine.Instant) {
	f := m.fleet
	m.w.Endpoints(at, f.candidates, func(i int) (string, string) {
		return f.endpoints[i].Name, f.endpoints[i].Locality
	})
}

func (m *recorded) finish() {
	if m.began.IsZero() {
		return
	}
	m.began = time.Time{}
	m.r.take(m.w.Finish(), m.n-1)
	if m.w.Decide >= anomalyLeast && m.w.Fell*anomalyShare >= m.w.Decide {
		m.r.alarm(fmt.Sprintf("%d of %d decisions of shard %d fell back", m.w.Fell, m.w.Decide, m.s.index))
	}
}

// Close ends the recording of this machine.
func (m *recorded) Close(ctx context.Context) error {
	m.finish()
	return closeMachine(ctx, m.Machine)
}

func (m *recorded) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	err := m.begin(now)
	if err == nil {
		err = m.Machine.SetCandidates(now, cs)
	}
	if err == nil {
		m.fleet = m.s.fleet
		m.endpoints(now)
	}
	return err
}

func (m *recorded) SetStatus(now engine.Instant, id engine.ID, st engine.Status) error {
	err := m.begin(now)
	if err == nil {
		err = m.Machine.SetStatus(now, id, st)
	}
	if err == nil {
		m.fleet = m.s.fleet
		m.w.Status(now, id, st)
	}
	return err
}

func (m *recorded) Decide(q *engine.Query, d *engine.Decision) error {
	err := m.begin(q.Now)
	if err == nil {
		err = m.Machine.Decide(q, d)
	}
	if !failed(err) { // a machine that failed is not asked again, and no replay can fail as it did
		m.w.Decided(q, d, err)
	} else {
		m.r.alarm(err.Error())
	}
	return err
}

func (m *recorded) Report(now engine.Instant, r engine.Report) error {
	if err := m.begin(now); err != nil {
		return err
	}
	m.w.Done(now, r)
	return m.Machine.Report(now, r)
}

func (m *recorded) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	if err := m.begin(now); err != nil {
		return engine.NotKept, err
	}
	m.w.Reading(now, id, rd)
	return m.Machine.Record(now, id, rd)
}

func (m *recorded) RecordLoad(now engine.Instant, id engine.ID, l engine.LoadReport) error {
	if err := m.begin(now); err != nil {
		return err
	}
	m.w.Load(now, id, l)
	return m.Machine.RecordLoad(now, id, l)
}

func (m *recorded) Forget(now engine.Instant, id engine.ID, asked engine.Instant) error {
	if err := m.begin(now); err != nil {
		return err
	}
	m.w.Forget(now, id, asked)
	return m.Machine.Forget(now, id, asked)
}

func (m *recorded) Probes(now engine.Instant, dst []engine.ID) ([]engine.ID, error) {
	if err := m.begin(now); err != nil {
		return dst, err
	}
	due, err := m.Machine.Probes(now, dst)
	if err == nil {
		m.w.Probes(now, due[len(dst):])
	}
	return due, err
}
