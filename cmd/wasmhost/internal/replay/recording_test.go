package replay

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/trace"
)

// recorded is a recording of some five seconds of two replicas, one of them slow.
func recorded(t *testing.T) (data []byte) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		b, err := host.NewNativeBalancer(policy.Parse, "prequal seed=7 min_pool=1", host.WithRecorder(&host.Recorder{}))
		require.NoError(t, err)
		require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "fast"}, {Name: "slow"}}))
		for range 100 {
			require.NoError(t, b.Record("fast", engine.Reading{RIF: 1, Latency: 1000}))
			require.NoError(t, b.Record("slow", engine.Reading{RIF: 1, Latency: 9000}))
			p, err := b.Decide(ctx, host.Query{})
			require.NoError(t, err)
			time.Sleep(50 * time.Millisecond)
			p.Done(engine.OutcomeSuccess)
		}
		require.NoError(t, b.Close(ctx))
		var out bytes.Buffer
		require.NoError(t, b.Dump(&out, 0))
		data = out.Bytes()
	})
	return data
}

func run(t *testing.T, data []byte, o Options) (string, error) {
	t.Helper()
	if o.Engine == "" {
		o.Engine = "native"
	}
	o.File, o.Fuel = "a.rec", host.DefaultFuel
	var out strings.Builder
	err := Run(context.Background(), bytes.NewReader(data), &out, o)
	return out.String(), err
}

func TestARecordingIsPlayedAndChecked(t *testing.T) {
	data := recorded(t)
	for _, eng := range []string{"native", "wasm", "both"} {
		out, err := run(t, data, Options{Engine: eng, Segment: -1, Explain: -1})
		require.NoError(t, err)
		assert.Contains(t, out, "all 100 answers are as recorded", eng)
		assert.Contains(t, out, ": 100 decisions")
		assert.NotContains(t, out, "do not start")
	}
	out, err := run(t, data, Options{Segment: -1, Explain: 41})
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(out, "placement 41 at "), out)
	out, err = run(t, data, Options{Segment: -1, Explain: -1, Lines: true})
	require.NoError(t, err)
	assert.Contains(t, out, `{"placement":99,`)
	_, err = run(t, data, Options{Segment: -1, Explain: 100})
	assert.ErrorIs(t, err, ErrNoPlacement)
}

func TestACounterfactualSaysWhereItDiverges(t *testing.T) {
	out, err := run(t, recorded(t), Options{Segment: -1, Explain: -1, Spec: "round_robin seed=1"})
	require.NoError(t, err, "another spec differs on purpose")
	assert.Regexp(t, `counterfactual: under round_robin seed=1, 50 of 100 decisions differ`, out)
	assert.Contains(t, out, "it diverges at a.rec: shard 0, segment 0, line ")
}

func TestAnswersThatAreNotThoseRecordedAreFound(t *testing.T) {
	segments, err := trace.ReadRecording("a.rec", bytes.NewReader(recorded(t)))
	require.NoError(t, err)
	lines, err := run(t, recorded(t), Options{Segment: 2, Explain: -1})
	require.NoError(t, err)
	require.Equal(t, len(segments[2].Ops), strings.Count(lines, "\n"))
	out, err := run(t, []byte(lines), Options{Segment: -1, Explain: -1})
	require.NoError(t, err, "a segment printed is a trace")
	assert.Contains(t, out, `"endpoint":"fast"`)

	_, err = run(t, []byte(strings.Replace(lines, `"endpoint":"fast","index":0`, `"endpoint":"slow","index":1`, 1)), Options{Segment: -1, Explain: -1})
	var differ *DifferError
	require.ErrorAs(t, err, &differ)
	assert.Contains(t, err.Error(), `recorded {"at":`)
	assert.Contains(t, err.Error(), `"endpoint":"slow"`)
	_, err = run(t, recorded(t), Options{Segment: 99, Explain: -1})
	assert.ErrorIs(t, err, ErrNoSegment)
}

func TestACutRecordingIsPlayedAsFarAsItGoes(t *testing.T) {
	data := recorded(t)
	out, err := run(t, data[:len(data)-7], Options{Segment: -1, Explain: -1})
	require.NoError(t, err)
	assert.Contains(t, out, "a.rec: its last segment is not whole and was left out")
	assert.Contains(t, out, "answers are as recorded")
	data[len(data)/2] ^= 1
	_, err = run(t, data, Options{Segment: -1, Explain: -1})
	var damaged *trace.RecordingError
	assert.ErrorAs(t, err, &damaged)
}
