package abi

import "github.com/headroom-lb/headroom/engine"

func put32(b []byte, v uint32) {
	_ = b[3]
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func get32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// Put64 writes a little-endian word.
func Put64(b []byte, v uint64) {
	_ = b[7]
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	b[4], b[5], b[6], b[7] = byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56)
}

// Get64 reads a little-endian word.
func Get64(b []byte) uint64 { return uint64(get32(b)) | uint64(get32(b[4:]))<<32 }

// PutCandidate writes a candidate record.
func PutCandidate(b []byte, c *engine.Candidate) {
	b = b[:CandidateSize]
	clear(b)
	Put64(b[CandidateID:], uint64(c.ID))
	put32(b[CandidateWeight:], uint32(c.Weight))
	put32(b[CandidateLocality:], c.Locality)
	b[CandidatePriority], b[CandidateStatus] = c.Priority, byte(c.Status)
}

// GetCandidate reads a candidate record.
func GetCandidate(b []byte, c *engine.Candidate) {
	*c = engine.Candidate{
		ID: engine.ID(Get64(b[CandidateID:])), Weight: engine.Weight(get32(b[CandidateWeight:])),
		Locality: get32(b[CandidateLocality:]), Priority: b[CandidatePriority], Status: engine.Status(b[CandidateStatus]),
	}
}

// PutAnswer writes an answer record.
func PutAnswer(b []byte, a *engine.Answer) {
	b = b[:AnswerSize]
	clear(b)
	Put64(b[AnswerID:], uint64(a.ID))
	Put64(b[AnswerLatency:], uint64(a.Reading.Latency))
	Put64(b[AnswerAsked:], uint64(a.Reading.Asked))
	put32(b[AnswerRIF:], a.Reading.RIF)
}

// GetAnswer reads an answer record.
func GetAnswer(b []byte, a *engine.Answer) {
	*a = engine.Answer{ID: engine.ID(Get64(b[AnswerID:])), Reading: engine.Reading{
		RIF: get32(b[AnswerRIF:]), Latency: engine.Duration(Get64(b[AnswerLatency:])), Asked: engine.Instant(Get64(b[AnswerAsked:])),
	}}
}

// PutInFlight writes an in-flight record.
func PutInFlight(b []byte, o *engine.InFlight) {
	b = b[:InFlightSize]
	clear(b)
	Put64(b[InFlightID:], uint64(o.ID))
	put32(b[InFlightQueries:], o.Queries)
}

// GetInFlight reads an in-flight record.
func GetInFlight(b []byte, o *engine.InFlight) {
	*o = engine.InFlight{ID: engine.ID(Get64(b[InFlightID:])), Queries: get32(b[InFlightQueries:])}
}

// PutDecision writes a decision record, all but what the index tells.
func PutDecision(b []byte, d *engine.Decision) {
	r := (*[DecisionSize]byte)(b)
	Put64(r[DecisionLatency:], uint64(d.Latency))
	Put64(r[DecisionAge:], uint64(d.Age))
	put32(r[DecisionIndex:], d.Index)
	put32(r[DecisionOffered:], d.Offered)
	put32(r[DecisionCold:], d.Cold)
	put32(r[DecisionHot:], d.Hot)
	put32(r[DecisionThreshold:], d.Threshold)
	put32(r[DecisionRIF:], d.RIF)
	put32(r[DecisionUsesLeft:], d.UsesLeft)
	r[DecisionRegime], r[DecisionCause] = byte(d.Regime), byte(d.Cause)
}

// GetDecision reads a decision record; the ID is the caller's to fill in.
func GetDecision(b []byte, d *engine.Decision) {
	r := (*[DecisionSize]byte)(b)
	d.Latency, d.Age = engine.Duration(Get64(r[DecisionLatency:])), engine.Duration(Get64(r[DecisionAge:]))
	d.Index, d.Offered = get32(r[DecisionIndex:]), get32(r[DecisionOffered:])
	d.Cold, d.Hot = get32(r[DecisionCold:]), get32(r[DecisionHot:])
	d.Threshold, d.RIF, d.UsesLeft = get32(r[DecisionThreshold:]), get32(r[DecisionRIF:]), get32(r[DecisionUsesLeft:])
	d.Regime, d.Cause = engine.Regime(r[DecisionRegime]), engine.Cause(r[DecisionCause])
}

// PutEntry writes an entry record.
func PutEntry(b []byte, e *engine.Entry) {
	b = b[:EntrySize]
	clear(b)
	Put64(b[EntryID:], uint64(e.ID))
	Put64(b[EntryAt:], uint64(e.At))
	Put64(b[EntryAsked:], uint64(e.Asked))
	Put64(b[EntryLatency:], uint64(e.Latency))
	Put64(b[EntryRawLatency:], uint64(e.RawLatency))
	put32(b[EntryRIF:], e.RIF)
	put32(b[EntryRawRIF:], e.RawRIF)
	put32(b[EntryUses:], e.Uses)
	b[EntryEligible], b[EntryHot] = flag(e.Eligible), flag(e.Hot)
}

// GetEntry reads an entry record.
func GetEntry(b []byte, e *engine.Entry) {
	*e = engine.Entry{
		ID: engine.ID(Get64(b[EntryID:])), At: engine.Instant(Get64(b[EntryAt:])), Asked: engine.Instant(Get64(b[EntryAsked:])),
		Latency: engine.Duration(Get64(b[EntryLatency:])), RawLatency: engine.Duration(Get64(b[EntryRawLatency:])),
		RIF: get32(b[EntryRIF:]), RawRIF: get32(b[EntryRawRIF:]), Uses: get32(b[EntryUses:]),
		Eligible: b[EntryEligible] == 1, Hot: b[EntryHot] == 1,
	}
}

// PutInspection writes the inspection record.
func PutInspection(b []byte, c *engine.Counters, f *engine.Fit) {
	b = b[:InspectSize]
	clear(b)
	for i, v := range c.Each() {
		Put64(b[8*i:], *v)
	}
	put32(b[InspectPool:], f.Pool)
	put32(b[InspectRemove:], f.RemoveRate)
	Put64(b[InspectReuse:], f.ReuseBudget)
	put32(b[InspectThreshold:], f.Threshold)
	put32(b[InspectWindow:], f.WindowFilled)
	b[InspectShrunk], b[InspectHeld] = flag(f.Shrunk), flag(f.Held)
	put32(b[InspectProbes:], f.Probes)
	put32(b[InspectWait:], f.Wait)
}

// GetInspection reads the inspection record.
func GetInspection(b []byte, c *engine.Counters, f *engine.Fit) {
	for i, v := range c.Each() {
		*v = Get64(b[8*i:])
	}
	*f = engine.Fit{
		Pool: get32(b[InspectPool:]), RemoveRate: get32(b[InspectRemove:]), ReuseBudget: Get64(b[InspectReuse:]),
		Threshold: get32(b[InspectThreshold:]), WindowFilled: get32(b[InspectWindow:]),
		Shrunk: b[InspectShrunk] == 1, Held: b[InspectHeld] == 1,
		Probes: get32(b[InspectProbes:]), Wait: get32(b[InspectWait:]),
	}
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
