package host

import (
	"fmt"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// SetCandidates hands the whole set over; on an error the old one stands.
func (in *Instance) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	if len(cs) > engine.MaxCandidates {
		return fmt.Errorf("%w: %d candidates, at most %d", engine.ErrCapacity, len(cs), engine.MaxCandidates)
	}
	if err := in.open(max(abi.ArenaMin, len(cs)*abi.CandidateSize)); err != nil {
		return err
	}
	for i := range cs {
		abi.PutCandidate(in.view[i*abi.CandidateSize:], &cs[i])
	}
	if err := in.ask(in.function(abi.FuncCandidates), uint64(now), uint64(len(cs))); err != nil {
		return err
	}
	in.rows = append(in.rows[:0], cs...)
	clear(in.byID)
	for i, c := range cs {
		in.byID[c.ID] = uint32(i)
	}
	return nil
}

// SetStatus changes one candidate's status.
func (in *Instance) SetStatus(now engine.Instant, id engine.ID, s engine.Status) error {
	if err := in.ask(in.function(abi.FuncStatus), uint64(now), uint64(id), uint64(s)); err != nil {
		return err
	}
	if slot, ok := in.byID[id]; ok {
		in.rows[slot].Status = s
	}
	return nil
}

// Decide places a query. The guest's word is not trusted: an answer that is no candidate, not
// eligible or one to avoid is an [ErrAnswer].
func (in *Instance) Decide(q *engine.Query, d *engine.Decision) error {
	if len(q.Tried)|len(q.Answers) != 0 {
		if err := in.attach(q); err != nil {
			return err
		}
	}
	in.stack[0], in.stack[1], in.stack[2] = uint64(q.Now), uint64(q.Key), uint64(len(q.Tried))
	v, err := in.run(in.decide)
	if err != nil {
		return err
	}
	if v < 0 {
		return in.explain(abi.Code(v))
	}
	if in.mem.Size() != in.memory {
		if err := in.look(); err != nil {
			return err
		}
	}
	abi.GetDecision(in.decision, d)
	slot := uint32(v)
	if slot >= uint32(len(in.rows)) || d.Index != slot || d.Regime >= engine.Regime(engine.Regimes) || d.Cause >= engine.Cause(engine.Causes) {
		return fmt.Errorf("%w: index %d of %d candidates, regime %d", ErrAnswer, slot, len(in.rows), d.Regime)
	}
	row := &in.rows[slot]
	if !row.Status.Eligible() || len(q.Tried) > 0 && slices.Contains(q.Tried, row.ID) {
		return fmt.Errorf("%w: candidate %d may not be decided for", ErrAnswer, slot)
	}
	d.ID = row.ID
	return nil
}

// attach hands over a query's lists; a guest that knows nothing of answers goes without.
func (in *Instance) attach(q *engine.Query) error {
	if len(q.Tried) > abi.MaxTried {
		return fmt.Errorf("%w: %d replicas tried, at most %d", engine.ErrCapacity, len(q.Tried), abi.MaxTried)
	}
	if len(q.Answers) > abi.MaxAnswers {
		return fmt.Errorf("%w: %d answers, at most %d", engine.ErrCapacity, len(q.Answers), abi.MaxAnswers)
	}
	if err := in.look(); err != nil {
		return err
	}
	if f := in.function(abi.FuncAnswers); f != nil && len(q.Answers) > 0 {
		for i := range q.Answers {
			abi.PutAnswer(in.view[i*abi.AnswerSize:], &q.Answers[i])
		}
		in.stack[0] = uint64(len(q.Answers))
		if err := in.settle(in.run(f)); err != nil {
			return err
		}
	}
	for i, id := range q.Tried {
		abi.Put64(in.view[8*i:], uint64(id))
	}
	return nil
}

// Report ends a placed query.
func (in *Instance) Report(now engine.Instant, r engine.Report) error {
	in.stack[0], in.stack[1], in.stack[2], in.stack[3] = uint64(now), uint64(r.ID), uint64(r.Outcome), uint64(r.Latency)
	return in.settle(in.run(in.report))
}

func (in *Instance) settle(v int32, err error) error {
	if err != nil || v >= 0 {
		return err
	}
	if c := abi.Code(v); c == abi.CodeOf(engine.ErrUnknownID) {
		return engine.ErrUnknownID // ordinary: the replica has left
	}
	return in.explain(abi.Code(v))
}

// Record takes a reading.
func (in *Instance) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	in.stack[0], in.stack[1], in.stack[2] = uint64(now), uint64(id), uint64(rd.RIF)
	in.stack[3], in.stack[4] = uint64(rd.Latency), uint64(rd.Asked)
	v, err := in.run(in.record)
	if err = in.settle(v, err); err != nil {
		return engine.NotKept, err
	}
	if v > int32(engine.DroppedStale) {
		return engine.NotKept, fmt.Errorf("%w: admission %d", ErrAnswer, v)
	}
	return engine.Admission(v), nil
}

// RecordLoad takes a load report; a guest that knows nothing of load goes without.
func (in *Instance) RecordLoad(now engine.Instant, id engine.ID, l engine.LoadReport) error {
	f := in.function(abi.FuncLoad)
	if f == nil {
		if _, ok := in.byID[id]; !ok {
			return engine.ErrUnknownID
		}
		return nil
	}
	in.stack[0], in.stack[1], in.stack[2] = uint64(now), uint64(id), uint64(l.Utilization)
	in.stack[3], in.stack[4] = uint64(l.QPS), uint64(l.EPS)
	return in.settle(in.run(f))
}

// Forget drops what is held of a replica, unless it was asked later.
func (in *Instance) Forget(now engine.Instant, id engine.ID, asked engine.Instant) error {
	return in.settle(in.call(in.function(abi.FuncForget), uint64(now), uint64(id), uint64(asked)))
}

// Probes appends the replicas that are due. Strangers among them are an [ErrAnswer].
func (in *Instance) Probes(now engine.Instant, dst []engine.ID) ([]engine.ID, error) {
	n, err := in.count(in.probes, abi.MaxProbes, "probes due", uint64(now))
	if err != nil {
		return dst, err
	}
	for i := range n {
		id := engine.ID(abi.Get64(in.view[8*i:]))
		if _, ok := in.byID[id]; !ok {
			return dst, fmt.Errorf("%w: a probe of an unknown replica is due", ErrAnswer)
		}
		dst = append(dst, id)
	}
	return dst, nil
}

// Entries appends what the guest holds, for display.
func (in *Instance) Entries(now engine.Instant, dst []engine.Entry) ([]engine.Entry, error) {
	n, err := in.count(in.function(abi.FuncEntries), abi.MaxEntries, "entries", uint64(now))
	if err != nil {
		return dst, err
	}
	for i := range n {
		var e engine.Entry
		abi.GetEntry(in.view[i*abi.EntrySize:], &e)
		if _, ok := in.byID[e.ID]; !ok {
			return dst, fmt.Errorf("%w: an entry of an unknown replica", ErrAnswer)
		}
		dst = append(dst, e)
	}
	return dst, nil
}

// Inspect fills in counters and the settings in force.
func (in *Instance) Inspect(c *engine.Counters, f *engine.Fit) error {
	if err := in.ask(in.function(abi.FuncInspect)); err != nil {
		return err
	}
	if err := in.look(); err != nil {
		return err
	}
	abi.GetInspection(in.view, c, f)
	if in.function(abi.FuncAnswers) == nil {
		f.Probes, f.Wait = 0, 0 // a guest of before 1.1, which named neither
	}
	if f.Probes != 0 && (f.Probes < 2 || f.Probes > abi.MaxAnswers || f.Wait < 1 || f.Wait > f.Probes) {
		return fmt.Errorf("%w: %d probes for a query, %d answers to wait for", ErrAnswer, f.Probes, f.Wait)
	}
	return nil
}

// Snapshot appends the state block: a copy out of the guest's memory.
func (in *Instance) Snapshot(dst []byte) ([]byte, error) {
	if _, err := in.call(in.function(abi.FuncBlock)); err != nil {
		return dst, err
	}
	at, size := uint32(in.stack[0]>>32), uint32(in.stack[0])
	if size > abi.ArenaMax { // no guest could be asked to take it back
		return dst, fmt.Errorf("%w: a block of %d bytes, at most %d", ErrAnswer, size, abi.ArenaMax)
	}
	block, ok := in.mem.Read(at, size)
	if !ok {
		return dst, fmt.Errorf("%w: a block of %d bytes at %d lies outside its memory", ErrAnswer, size, at)
	}
	return append(dst, block...), nil
}

// Restore puts a snapshot back, or is [engine.ErrBlock] and changes nothing.
func (in *Instance) Restore(block []byte) error {
	if err := in.open(max(abi.ArenaMin, len(block))); err != nil {
		return err
	}
	copy(in.view, block)
	return in.ask(in.function(abi.FuncRestore), uint64(len(block)))
}

// SetInFlight replaces the counts of queries in flight, or is [ErrOldGuest] from a guest that
// knows nothing of it.
func (in *Instance) SetInFlight(open []engine.InFlight) error {
	f := in.function(abi.FuncInFlight)
	if f == nil {
		return ErrOldGuest
	}
	if err := in.open(max(abi.ArenaMin, len(open)*abi.InFlightSize)); err != nil {
		return err
	}
	for i := range open {
		abi.PutInFlight(in.view[i*abi.InFlightSize:], &open[i])
	}
	return in.ask(f, uint64(len(open)))
}

// Nothing calls a function that does nothing, if the guest has it: the price of crossing the
// boundary.
func (in *Instance) Nothing() error {
	if in.nothing == nil {
		return nil
	}
	_, err := in.run(in.nothing)
	return err
}
