package trace_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/trace"
)

// oneOfEach is a segment with every operation.
func oneOfEach() []byte {
	var w trace.SegmentWriter
	w.Begin(trace.Head{Shard: 1, Generation: 2, Machine: 3, Number: 4, Spec: "prequal seed=7", Salt: 5, Began: 6})
	a, b, stranger := engine.IDOf("a"), engine.IDOf("b"), engine.IDOf("c")
	w.Endpoints(-5, []engine.Candidate{{ID: a, Weight: 2, Priority: 1}, {ID: b, Status: engine.StatusDraining}}, func(i int) (string, string) {
		return [...]string{"a", "b"}[i], [...]string{"z1", ""}[i]
	})
	w.State(-5, []byte{1, 2, 3})
	w.Status(10, b, engine.StatusReady)
	w.InFlight(11, []engine.InFlight{{ID: a, Queries: 3}})
	w.Reading(12, a, engine.Reading{RIF: 3, Latency: engine.UnknownLatency, Asked: 9})
	w.Load(13, b, engine.LoadReport{Utilization: 1, QPS: 2, EPS: 3})
	w.Forget(14, stranger, 13)
	w.Decided(&engine.Query{Now: 15, Key: 77, Tried: []engine.ID{b, stranger}, Answers: []engine.Answer{{ID: a, Reading: engine.Reading{RIF: 1, Latency: 2, Asked: 14}}}},
		&engine.Decision{ID: a, Offered: 2, Cold: 1, Hot: 1, Threshold: 3, RIF: 1, Latency: 2, Age: 1, UsesLeft: 4, Regime: engine.RegimeCold}, nil)
	w.Decided(&engine.Query{Now: 16}, &engine.Decision{}, engine.ErrNoneEligible)
	w.Decided(&engine.Query{Now: 16}, &engine.Decision{Index: 1, Threshold: engine.NoThreshold, Regime: engine.RegimeFallback, Cause: engine.CauseThin}, nil)
	w.Done(20, engine.Report{ID: a, Outcome: engine.OutcomeFailure, Latency: 5})
	w.Probes(21, []engine.ID{b, a})
	return append([]byte(trace.Magic), w.Finish()...)
}

func TestARecordingIsATraceInOtherWords(t *testing.T) {
	segments, err := trace.ReadRecording("r", bytes.NewReader(oneOfEach()))
	require.NoError(t, err)
	require.Len(t, segments, 1)
	assert.Equal(t, trace.Head{Shard: 1, Generation: 2, Machine: 3, Number: 4, Spec: "prequal seed=7", Salt: 5, Began: 6}, segments[0].Head)
	var lines strings.Builder
	for _, op := range segments[0].Ops {
		line, err := json.Marshal(op)
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	assert.Equal(t, `{"op":"spec","spec":"prequal seed=7","salt":5}
{"op":"endpoints","at":-5,"endpoints":[{"name":"a","weight":2,"priority":1,"locality":"z1","status":"ready"},{"name":"b","status":"draining"}]}
{"op":"state","at":-5,"block":"AQID"}
{"op":"status","at":10,"endpoint":"b","status":"ready"}
{"op":"in_flight","at":11,"open":[{"endpoint":"a","queries":3}]}
{"op":"reading","at":12,"endpoint":"a","rif":3,"asked":9}
{"op":"load","at":13,"endpoint":"b","utilization":1,"qps":2,"eps":3}
{"op":"forget","at":14,"endpoint":"?`+"ID"+`","asked":13}
{"op":"decide","at":15,"key_hash":"000000000000004d","tried":["b","?ID"],"answers":[{"endpoint":"a","rif":1,"latency_ns":2,"asked":14}],"want":{"at":15,"endpoint":"a","index":0,"regime":"cold","cause":"","offered":2,"cold":1,"hot":1,"threshold":3,"rif":1,"latency_ns":2,"age_ns":1,"uses_left":4}}
{"op":"decide","at":16,"want":{"at":16,"error":"none_eligible"}}
{"op":"decide","at":16,"want":{"at":16,"endpoint":"b","index":1,"regime":"fallback","cause":"thin","offered":0,"cold":0,"hot":0,"threshold":null,"rif":0,"latency_ns":0,"age_ns":0,"uses_left":0}}
{"op":"done","at":20,"endpoint":"a","latency_ns":5,"outcome":"failure"}
{"op":"probes","at":21,"want":{"at":21,"probe":["b","a"]}}
`, withoutStranger(lines.String()))
	again, err := trace.Read("lines", strings.NewReader(lines.String()))
	require.NoError(t, err, "and every line is one that a trace may have")
	assert.Len(t, again, len(segments[0].Ops))
}

func withoutStranger(s string) string {
	at := strings.Index(s, `"?`)
	return strings.ReplaceAll(s, s[at+2:at+18], "ID")
}

func TestADamagedRecordingSaysWhere(t *testing.T) {
	whole := oneOfEach()
	twice := append(bytes.Clone(whole), whole[len(trace.Magic):]...)
	segments, err := trace.ReadRecording("r", bytes.NewReader(twice))
	require.NoError(t, err)
	assert.Len(t, segments, 2)
	for cut := len(whole) + 1; cut < len(twice); cut++ {
		segments, err := trace.ReadRecording("r", bytes.NewReader(twice[:cut]))
		require.ErrorIs(t, err, trace.ErrCut)
		require.Len(t, segments, 1, "what is whole is not lost")
	}
	for at := range len(whole) {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x10
		_, err := trace.ReadRecording("r", bytes.NewReader(bad))
		require.Error(t, err, "byte %d", at)
	}
	_, err = trace.ReadRecording("r", strings.NewReader("{}"))
	assert.EqualError(t, err, "r: at byte 0: not a recording")
}

// payload is a segment's head, and what follows.
func payload(rest ...[]byte) []byte {
	out := []byte{0, 0, 0, 0, 0, 0, 0} // numbers, and no spec
	for _, b := range rest {
		out = append(out, b...)
	}
	return out
}

func varint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// The operations by their numbers: frozen.
const endpoints, state, inFlight, decided, probed = 1, 3, 4, 8, 10

// fleetOf is an endpoints operation with a single name.
func fleetOf(name string) []byte {
	return slices.Concat([]byte{endpoints, 0, 1}, varint(uint64(len(name))), []byte(name), []byte{0, 1, 0, 0})
}

// hostile are segments that name much with few bytes.
func hostile(scale int) map[string][]byte {
	long := strings.Repeat("n", scale)
	ones := bytes.Repeat([]byte{1}, scale)
	decide := slices.Concat([]byte{decided, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	return map[string][]byte{
		"a list longer than the file":     payload([]byte{probed, 0}, varint(1<<40)),
		"endpoints that are not there":    payload([]byte{endpoints, 0}, varint(1<<62)),
		"a block that is not there":       payload([]byte{state, 0}, varint(1<<33)),
		"queries that are not there":      payload([]byte{inFlight, 0}, varint(1<<60), ones),
		"a long name, probed often":       payload(fleetOf(long), []byte{probed, 0}, varint(uint64(scale)), ones),
		"a long name, decided for often":  payload(fleetOf(long), bytes.Repeat(decide, scale/len(decide))),
		"a name that grows when quoted":   payload(fleetOf(strings.Repeat("\x01", scale)), []byte{probed, 0}, varint(uint64(scale)), ones),
		"nothing but empty lists":         payload(bytes.Repeat([]byte{probed, 0, 0}, scale)),
		"strangers in flight, by the lot": payload([]byte{inFlight, 0}, varint(uint64(scale)), bytes.Repeat([]byte{0, 0, 0}, scale)),
	}
}

// A file that was made to do harm takes memory in proportion to its size, whatever it says.
func TestAHostileRecordingIsBounded(t *testing.T) {
	for name, payload := range hostile(1 << 16) {
		t.Run(name, func(t *testing.T) {
			file := trace.Framed(payload)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := trace.ReadRecording("r", bytes.NewReader(file))
			runtime.ReadMemStats(&after)
			took := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d KiB of %d KiB, %v", took>>10, len(file)>>10, err)
			assert.Less(t, took, uint64(16<<20+2*512*len(file)), "growing slices included")
			if strings.Contains(name, "often") || strings.Contains(name, "grows") {
				var wrong *trace.RecordingError
				require.ErrorAs(t, err, &wrong)
				assert.Contains(t, wrong.Reason, "no recorder wrote this")
			}
		})
	}
}

// One segment after the other is read, and no more than is asked for.
func TestSegmentsAreReadOneByOne(t *testing.T) {
	whole := oneOfEach()
	twice := append(bytes.Clone(whole), whole[len(trace.Magic):]...)
	r := bytes.NewReader(twice)
	for s, err := range trace.Segments("r", r) {
		require.NoError(t, err)
		assert.Equal(t, 13, len(s.Ops))
		break
	}
	assert.Equal(t, len(twice)-len(whole), r.Len())
}

// Whatever a file holds, reading it neither panics nor takes more than it is worth; and what is
// read can be written as a trace.
func FuzzReadRecording(f *testing.F) {
	f.Add(oneOfEach()[len(trace.Magic)+8:])
	for _, payload := range hostile(1 << 10) {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		segments, err := trace.ReadRecording("r", bytes.NewReader(trace.Framed(payload)))
		if err != nil {
			var wrong *trace.RecordingError
			require.ErrorAs(t, err, &wrong)
			return
		}
		for _, op := range segments[0].Ops {
			_, err := json.Marshal(op)
			require.NoError(t, err)
		}
	})
}
