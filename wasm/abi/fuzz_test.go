package abi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// decoders read a record and write it again; the second result is what they read.
var decoders = []struct {
	name string
	size int
	both func(from, to []byte) any
}{
	{"candidate", CandidateSize, func(from, to []byte) any {
		var v engine.Candidate
		GetCandidate(from, &v)
		PutCandidate(to, &v)
		return v
	}},
	{"answer", AnswerSize, func(from, to []byte) any {
		var v engine.Answer
		GetAnswer(from, &v)
		PutAnswer(to, &v)
		return v
	}},
	{"in flight", InFlightSize, func(from, to []byte) any {
		var v engine.InFlight
		GetInFlight(from, &v)
		PutInFlight(to, &v)
		return v
	}},
	{"decision", DecisionSize, func(from, to []byte) any {
		var v engine.Decision
		GetDecision(from, &v)
		PutDecision(to, &v)
		return v
	}},
	{"entry", EntrySize, func(from, to []byte) any {
		var v engine.Entry
		GetEntry(from, &v)
		PutEntry(to, &v)
		return v
	}},
	{"inspection", InspectSize, func(from, to []byte) any {
		var c engine.Counters
		var f engine.Fit
		GetInspection(from, &c, &f)
		PutInspection(to, &c, &f)
		return []any{c, f}
	}},
}

// Whatever a stranger's record holds, it is read without panic, and what was read is written so
// that it reads the same again, in the record's own bytes and no others.
func FuzzRecords(f *testing.F) {
	f.Add(uint8(0), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		d := decoders[int(which)%len(decoders)]
		from := make([]byte, d.size+1)
		copy(from, b)
		to := make([]byte, d.size+1)
		to[d.size] = 0xee
		read := d.both(from, to)
		again := make([]byte, d.size+1)
		require.Equal(t, read, d.both(to, again), d.name)
		require.Equal(t, to[:d.size], again[:d.size], "%s: what is written once is written so again", d.name)
		require.Equal(t, byte(0xee), to[d.size], "%s: nothing beyond the record", d.name)
		require.Panics(t, func() { d.both(from[:d.size/2:d.size/2], to) }, "%s: half a record is none", d.name)
	})
}

// Any code is an error, or none if it is not negative; and back again.
func FuzzCodes(f *testing.F) {
	f.Add(int32(-1))
	f.Fuzz(func(t *testing.T, c int32) {
		err := ErrorOf(Code(c))
		require.Equal(t, c >= 0, err == nil)
		if back := CodeOf(err); c >= 0 {
			require.Zero(t, back)
		} else if back != CodeInternal {
			require.Equal(t, Code(c), back)
		}
		require.Equal(t, err == nil, NameOf(err) == "")
	})
}
