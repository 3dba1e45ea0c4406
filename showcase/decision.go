package showcase

import (
	"encoding/binary"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// Verdict says what a decision made of one entry of the pool.
type Verdict uint8

const (
	VerdictChosen        Verdict = iota
	VerdictCold                  // cold, but not the fastest
	VerdictHot                   // above the threshold
	VerdictRemovedWorst          // removed before the decision
	VerdictRemovedOldest         // ...
	VerdictIneligible            // its replica may not receive queries
)

// Row is one entry of the pool as a decision met it.
type Row struct {
	Replica int
	RIF     uint32 // as ranked
	RawRIF  uint32 // as reported
	Latency int64  // as ranked, ns; -1 is unknown
	Age     int64  // ns
	Uses    uint32
	Verdict Verdict
	rank    int64 // latency, or what an unknown one counts as
}

// DecisionFrame is a decision of the focused client with the pool it was made from.
type DecisionFrame struct {
	Serial   uint64
	At       int64
	Client   int
	Replica  int // -1 before the first decision
	World    int
	Held     bool
	Decision engine.Decision
	Rows     []Row
}

// explain lays a decision out. Rows come in the order of the rule: cold by latency, then hot
// by RIF, then what informed nothing.
func explain(w *sim.World, e *sim.Explained, held bool) DecisionFrame {
	d := DecisionFrame{Serial: e.Serial, At: e.At, Client: e.Client, Replica: -1, Held: held, Decision: e.Decision}
	if e.Serial == 0 {
		d.Decision.Threshold = engine.NoThreshold // nothing is hot before the first decision
		return d
	}
	d.Replica = w.Replica(e.Decision.ID)
	informed := e.Decision.Regime == engine.RegimeCold || e.Decision.Regime == engine.RegimeHot
	gone := missing(e, informed)
	worst := e.CountedAfter.RemovedWorst - e.CountedBefore.RemovedWorst
	for _, n := range e.Before {
		r := Row{
			Replica: w.Replica(n.ID), RIF: n.RIF, RawRIF: n.RawRIF, Latency: int64(n.Latency),
			Age: e.At - int64(n.At), Uses: n.Uses,
		}
		switch {
		case informed && n.ID == e.Decision.ID:
			r.Verdict = VerdictChosen
		case slices.Contains(gone, n.ID):
			r.Verdict = VerdictRemovedOldest
			if worst > 0 && gone[len(gone)-1] == n.ID {
				r.Verdict = VerdictRemovedWorst
			}
		case !n.Eligible:
			r.Verdict = VerdictIneligible
		case n.RIF > e.Decision.Threshold:
			r.Verdict = VerdictHot
		default:
			r.Verdict = VerdictCold
		}
		d.Rows = append(d.Rows, r)
	}
	middle := median(d.Rows)
	for i := range d.Rows {
		if d.Rows[i].rank = d.Rows[i].Latency; d.Rows[i].rank < 0 {
			d.Rows[i].rank = middle
		}
	}
	slices.SortStableFunc(d.Rows, func(a, b Row) int { return compareRows(a, b, e.Decision.Threshold) })
	return d
}

// missing lists the entries that left without deciding, oldest first: where one of each sort was
// removed, the worst stands last. The entry that informed the decision may have left too, with
// its last use.
func missing(e *sim.Explained, informed bool) []engine.ID {
	var out []engine.Entry
	for _, n := range e.Before {
		stays := slices.ContainsFunc(e.After, func(a engine.Entry) bool { return a.ID == n.ID })
		if !stays && !(informed && n.ID == e.Decision.ID) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b engine.Entry) int { return int(a.At - b.At) })
	ids := make([]engine.ID, len(out))
	for i, n := range out {
		ids[i] = n.ID
	}
	return ids
}

// median is the lower median of the known latencies on offer, or -1.
func median(rows []Row) int64 {
	var known []int64
	for _, r := range rows {
		if r.Latency >= 0 && r.Verdict < VerdictRemovedWorst {
			known = append(known, r.Latency)
		}
	}
	if len(known) == 0 {
		return -1
	}
	slices.Sort(known)
	return known[(len(known)-1)/2]
}

// compareRows is the order of the rule. The chosen one is its minimum, whatever broke a tie.
func compareRows(a, b Row, threshold uint32) int {
	class := func(r Row) int {
		switch {
		case r.Verdict == VerdictChosen:
			return -1
		case r.Verdict >= VerdictRemovedWorst:
			return 2
		case r.RIF > threshold:
			return 1
		}
		return 0
	}
	ca, cb := class(a), class(b)
	switch {
	case ca != cb:
		return ca - cb
	case ca == 1 && a.RIF != b.RIF:
		return int(a.RIF) - int(b.RIF)
	case a.rank != b.rank:
		return int(a.rank - b.rank)
	}
	return int(a.RIF) - int(b.RIF)
}

func (d *DecisionFrame) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(d.Serial))
	b = le.AppendUint64(b, uint64(d.At/1000))
	b = le.AppendUint16(b, uint16(d.Client))
	replica := uint16(none)
	if d.Replica >= 0 {
		replica = uint16(d.Replica)
	}
	b = le.AppendUint16(b, replica)
	b = le.AppendUint16(b, threshold16(d.Decision.Threshold))
	b = le.AppendUint16(b, u16(int64(d.Decision.RIF)))
	b = le.AppendUint16(b, tenths(int64(d.Decision.Latency)))
	b = le.AppendUint16(b, u16(int64(d.Decision.Age)/sim.Millisecond))
	held := byte(0)
	if d.Held {
		held = 1
	}
	b = append(b, byte(d.Decision.Regime), byte(d.Decision.Cause), byte(d.World), held,
		byte(d.Decision.Offered), byte(d.Decision.Cold), byte(d.Decision.Hot), byte(len(d.Rows)))
	for _, r := range d.Rows {
		b = le.AppendUint16(b, uint16(r.Replica))
		b = le.AppendUint16(b, u16(int64(r.RIF)))
		b = le.AppendUint16(b, u16(int64(r.RawRIF)))
		b = le.AppendUint16(b, tenths(r.Latency))
		b = le.AppendUint16(b, u16(r.Age/sim.Millisecond))
		b = append(b, byte(min(r.Uses, 255)), byte(r.Verdict))
	}
	return b
}
