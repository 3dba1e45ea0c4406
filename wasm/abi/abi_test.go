package abi

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// The bytes of every record are part of the contract with guests in other languages.
func TestGoldenBytes(t *testing.T) {
	c := engine.Candidate{ID: 0x0102030405060708, Weight: 9, Locality: 10, Priority: 11, Status: engine.StatusDraining}
	b := make([]byte, CandidateSize)
	PutCandidate(b, &c)
	assert.Equal(t, "0807060504030201"+"09000000"+"0a000000"+"0b01"+"0000"+"00000000"+"0000000000000000", hex.EncodeToString(b))
	var c2 engine.Candidate
	GetCandidate(b, &c2)
	assert.Equal(t, c, c2)

	d := engine.Decision{
		Latency: -1, Age: 2, Index: 3, Offered: 4, Cold: 5, Hot: 6, Threshold: engine.NoThreshold,
		RIF: 8, UsesLeft: 9, Regime: engine.RegimeFallback, Cause: engine.CauseThin,
	}
	b = make([]byte, DecisionSize)
	PutDecision(b, &d)
	assert.Equal(t, "0000000000000000"+"ffffffffffffffff"+"0200000000000000"+"03000000"+"04000000"+"05000000"+"06000000"+
		"ffffffff"+"08000000"+"09000000"+"0302"+"0000"+"0000000000000000", hex.EncodeToString(b))
	var d2 engine.Decision
	GetDecision(b, &d2)
	assert.Equal(t, d, d2)

	e := engine.Entry{ID: 1, At: 2, Asked: -3, Latency: 4, RawLatency: -1, RIF: 6, RawRIF: 7, Uses: 8, Eligible: true, Hot: true}
	b = make([]byte, EntrySize)
	PutEntry(b, &e)
	assert.Equal(t, "0100000000000000"+"0200000000000000"+"fdffffffffffffff"+"0400000000000000"+"ffffffffffffffff"+
		"06000000"+"07000000"+"08000000"+"0101"+"0000"+"0000000000000000", hex.EncodeToString(b))
	var e2 engine.Entry
	GetEntry(b, &e2)
	assert.Equal(t, e, e2)

	counts := engine.Counters{
		Admitted: 1, Replaced: 2, EvictedOldest: 3, DroppedStale: 4, RemovedWorst: 5, RemovedOldest: 6, Expired: 7,
		Exhausted: 8, Forgotten: 9, Decisions: 10, Fallbacks: 11, Readings: 12, ProbesDue: 13, HeldFit: 14,
	}
	fit := engine.Fit{Pool: 15, RemoveRate: 16, ReuseBudget: 17, Threshold: 18, WindowFilled: 19, Shrunk: true, Probes: 20, Wait: 21}
	b = make([]byte, InspectSize)
	PutInspection(b, &counts, &fit)
	for i := range 14 {
		assert.Equal(t, uint64(i+1), Get64(b[8*i:]))
	}
	assert.Equal(t, "0f000000"+"10000000"+"1100000000000000"+"12000000"+"13000000"+"0100"+"0000"+
		"14000000"+"15000000"+"000000000000000000000000", hex.EncodeToString(b[InspectPool:]))
	var counts2 engine.Counters
	var fit2 engine.Fit
	GetInspection(b, &counts2, &fit2)
	assert.Equal(t, counts, counts2)
	assert.Equal(t, fit, fit2)
}

// Every sentinel has one code and one name, and every code leads back to its sentinel.
func TestErrorsAndCodesAreOneToOne(t *testing.T) {
	errs, codes, names := Sentinels()
	seen := map[any]bool{}
	for i, err := range errs {
		assert.Negative(t, int32(codes[i]))
		assert.Equal(t, codes[i], CodeOf(err))
		assert.Equal(t, codes[i], CodeOf(fmt.Errorf("wrapped: %w", err)))
		assert.Same(t, err, ErrorOf(codes[i]))
		assert.Equal(t, names[i], NameOf(err))
		assert.False(t, seen[codes[i]] || seen[names[i]], "used twice: %v", err)
		seen[codes[i]], seen[names[i]] = true, true
	}
	for _, err := range []error{
		engine.ErrNoCandidates, engine.ErrNoneEligible, engine.ErrDuplicateID, engine.ErrUnknownID, engine.ErrConfig, engine.ErrCapacity,
		engine.ErrOverflow, engine.ErrTopology, engine.ErrRejected, engine.ErrLoadOverflow, engine.ErrBlock,
	} {
		assert.NotEqual(t, CodeInternal, CodeOf(err), err)
	}
	assert.Zero(t, CodeOf(nil))
	assert.Empty(t, NameOf(nil))
	assert.NoError(t, ErrorOf(0))
	assert.NoError(t, ErrorOf(7))
	assert.ErrorIs(t, ErrorOf(-77), ErrInternal, "a code this host does not know")
	assert.Equal(t, CodeInternal, CodeOf(errors.New("anything")))
	assert.Equal(t, "internal", NameOf(errors.New("anything")))
}

func TestExportsAreWellFormed(t *testing.T) {
	names := map[string]bool{}
	for _, e := range Exports() {
		assert.Regexp(t, "^lb_[a-z_]+$", e.Name)
		assert.Regexp(t, "^[il]*$", e.Params)
		assert.Regexp(t, "^[il]$", e.Results)
		assert.NotEmpty(t, e.Doc)
		assert.False(t, names[e.Name], e.Name)
		names[e.Name] = true
	}
}

func TestRecordsFitTheArena(t *testing.T) {
	require.LessOrEqual(t, MaxEntries*EntrySize, ArenaMin)
	require.LessOrEqual(t, MaxProbes*8, ArenaMin)
	require.LessOrEqual(t, max(MaxText, MaxSpec), ArenaMin)
}

// The names of the counters in the inspection record are those of the fields.
func TestCountersAreNamed(t *testing.T) {
	var c engine.Counters
	fields := reflect.TypeOf(c)
	each := c.Each()
	require.Len(t, counterNames, len(each))
	for i, p := range each {
		f, ok := fields.FieldByName(counterNames[i])
		require.True(t, ok, counterNames[i])
		assert.Equal(t, reflect.ValueOf(&c).Elem().FieldByIndex(f.Index).Addr().Interface(), p)
		*p = uint64(i + 1)
		assert.Equal(t, uint64(i+1), reflect.ValueOf(c).FieldByIndex(f.Index).Uint(), counterNames[i])
	}
}
