package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host/trace"
)

// replayAll plays every segment natively and says how many answers were as recorded.
func replayAll(t *testing.T, recording []byte) (segments []trace.Segment, met int) {
	t.Helper()
	segments, err := trace.ReadRecording("r", bytes.NewReader(recording))
	require.NoError(t, err)
	type key struct{ machine, number uint64 }
	machines := map[key]*engine.Engine{}
	for _, s := range segments {
		p, err := policy.Parse(s.Spec)
		require.NoError(t, err)
		e := engine.New(p, engine.Config{Salt: s.Salt})
		before := machines[key{s.Machine, s.Number - 1}]
		player := trace.NewPlayer("r", e)
		for i := range s.Ops[1:] {
			op := &s.Ops[i+1]
			if op.Op == trace.OpState && before != nil && i == 1 {
				left, err := before.Snapshot(nil)
				require.NoError(t, err)
				require.True(t, bytes.Equal(op.Block, left), "a segment starts where the last one of its machine ended")
			}
			r, err := player.Play(op)
			require.NoError(t, err)
			if r != nil {
				got, _ := r.Want()
				require.True(t, op.Meets(r), "segment %d of shard %d, op %d: recorded %s, replayed %s", s.Number, s.Shard, i, op.Want, got)
				met++
			}
		}
		machines[key{s.Machine, s.Number}] = e
	}
	return segments, met
}

// traffic lets a balancer live: changes of the fleet, readings, retries, failures, swaps and traps.
func traffic(t *testing.T, b *Balancer, steps int, change func(i int)) (decided int) {
	r := rand.New(rand.NewPCG(5, 6))
	name := func() string { return fmt.Sprint("replica-", r.IntN(30)) }
	var open []*Placement
	for i := range steps {
		switch r.IntN(12) {
		case 0:
			var eps []Endpoint
			for k := range 30 {
				if r.IntN(5) > 0 {
					eps = append(eps, Endpoint{Name: fmt.Sprint("replica-", k), Weight: uint32(r.IntN(4)), Locality: fmt.Sprint("z", k%3), Priority: uint8(k % 2)})
				}
			}
			require.NoError(t, b.SetEndpoints(eps))
		case 1:
			_ = b.SetStatus(name(), engine.Status(r.IntN(3)))
		case 2:
			_ = b.RecordLoad(name(), engine.LoadReport{QPS: r.Uint32N(1000), Utilization: r.Uint32N(10000)})
			b.Forget(name())
		case 3, 4:
			_ = b.Record(name(), engine.Reading{RIF: r.Uint32N(20), Latency: engine.Duration(r.IntN(1e7)) - 1})
		case 5, 6, 7:
			if len(open) > 0 {
				k := r.IntN(len(open))
				open[k].Done(engine.Outcome(r.IntN(4)))
				open = append(open[:k], open[k+1:]...)
			}
		default:
			q := Query{Key: fmt.Sprint(r.IntN(9))}
			if r.IntN(4) == 0 {
				q.Key, q.Tried = "", []string{name(), "a stranger"}
			}
			if p, err := b.Decide(ctx, q); err == nil {
				open = append(open, p)
				decided++
			}
		}
		time.Sleep(time.Duration(r.IntN(int(20 * time.Millisecond))))
		if i%100 == 99 {
			change(i / 100)
		}
	}
	for _, p := range open {
		p.Done(engine.OutcomeSuccess)
	}
	return decided
}

func TestARecordingReplaysBitForBit(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec, fail := &Recorder{Keep: time.Hour}, false
				src := func(spec string) Source {
					return made(spec, func(e *engine.Engine, _ uint64) engine.Machine { return trapping{e, &fail} })
				}
				b := balancerOf(t, src(name+" seed=3"), WithRecorder(rec), WithShards(2), WithTwin(policy.Parse))
				decided := traffic(t, b, 1200, func(i int) {
					switch i % 3 {
					case 0:
						fail = true
					case 1:
						require.NoError(t, b.Swap(ctx, src([]string{"prequal seed=9", name + " seed=4"}[i/3%2])))
					case 2:
						require.NoError(t, b.Canary(ctx, src("least_loaded"), 3000))
					}
				})
				assert.NoError(t, b.Close(ctx))
				var out bytes.Buffer
				require.NoError(t, b.Dump(&out, 0))
				segments, met := replayAll(t, out.Bytes())
				assert.Greater(t, len(segments), 10)
				assert.GreaterOrEqual(t, met, decided)
			})
		})
	}
}

func TestARecorderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &Recorder{Keep: 10 * time.Second, MaxBytes: 40_000}
		b := nativeOf(t, "prequal seed=3", WithRecorder(rec))
		_, err := NewNativeBalancer(policy.Parse, "random", WithRecorder(rec))
		assert.ErrorIs(t, err, ErrRecorderTaken)
		traffic(t, b, 3000, func(int) {
			st := rec.Stats()
			assert.LessOrEqual(t, st.KeptBytes, 40_000)
			assert.LessOrEqual(t, st.Kept, 11)
		})
		require.Greater(t, rec.Stats().Segments, uint64(20))
		var all, last bytes.Buffer
		require.NoError(t, b.Dump(&all, 0))
		require.NoError(t, b.Dump(&last, 2*time.Second))
		replayAll(t, all.Bytes())
		some, _ := replayAll(t, last.Bytes())
		assert.LessOrEqual(t, len(some), 3)
		assert.Less(t, last.Len(), all.Len())
		assert.ErrorIs(t, nativeOf(t, "random").Dump(&all, 0), ErrNoRecorder)
	})
}

func TestAnAnomalyIsToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 10)
		rec := &Recorder{OnAnomaly: func(reason string) { told <- reason }}
		b := nativeOf(t, "prequal seed=3", WithRecorder(rec)) // nobody answers probes: every decision falls back
		busy := func(d time.Duration) {
			for range int(d / (10 * time.Millisecond)) {
				decide(t, b, Query{}).Done(engine.OutcomeSuccess)
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
		}
		busy(30 * time.Second)
		assert.Equal(t, "100 of 100 decisions of shard 0 fell back", <-told)
		assert.Empty(t, told)
		busy(time.Minute)
		assert.Len(t, told, 1)
	})
}

func TestAGuestsRecordingReplaysNatively(t *testing.T) {
	rec := &Recorder{}
	rt, err := NewRuntime(ctx)
	require.NoError(t, err)
	m, err := rt.LoadEngine(ctx)
	require.NoError(t, err)
	b, err := NewBalancer(context.Background(), m, "prequal seed=3", WithRecorder(rec))
	require.NoError(t, err)
	prober := &Prober{Probe: func(context.Context, Endpoint) (engine.Reading, error) {
		return engine.Reading{RIF: rand.Uint32N(9), Latency: engine.Duration(rand.IntN(1e6))}, nil
	}}
	running, stop := context.WithCancel(ctx)
	go func() { _ = prober.Run(running, b) }()
	var eps []Endpoint
	for i := range 40 {
		eps = append(eps, Endpoint{Name: fmt.Sprint(i)})
	}
	require.NoError(t, b.SetEndpoints(eps))
	for range 3000 {
		decide(t, b, Query{}).Done(engine.OutcomeSuccess)
	}
	stop()
	var out bytes.Buffer
	require.NoError(t, b.Dump(&out, 0))
	_, met := replayAll(t, out.Bytes())
	assert.GreaterOrEqual(t, met, 3000)
	t.Logf("%.1f bytes a decision", float64(out.Len())/3000)
	require.NoError(t, errors.Join(b.Close(ctx), rt.Close(ctx)))
}

// A fleet whose description is larger than what a segment holds of calls is not described at every call.
func TestARecordingOfALargeFleetIsMadeOfCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("the fleet is of 20,000 endpoints; the full run does it")
	}
	synctest.Test(t, func(t *testing.T) {
		rec := &Recorder{Keep: time.Hour, MaxBytes: 1 << 30}
		b := nativeOf(t, "least_loaded seed=3", WithRecorder(rec))
		eps := make([]Endpoint, 20_000)
		for i := range eps {
			eps[i] = Endpoint{Name: fmt.Sprintf("%s-replica-%05d", strings.Repeat("a-long-name-", 8), i)}
		}
		require.NoError(t, b.SetEndpoints(eps))
		for range 2000 {
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		}
		require.NoError(t, b.Dump(io.Discard, 0))
		assert.LessOrEqual(t, rec.Stats().Segments, uint64(2))
		before := rec.Stats()
		for range 100 {
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
			time.Sleep(100 * time.Millisecond)
		}
		var out bytes.Buffer
		require.NoError(t, b.Dump(&out, 0))
		after := rec.Stats()
		assert.Positive(t, after.Segments-before.Segments)
		assert.LessOrEqual(t, after.Bytes-before.Bytes, uint64(10*segmentBytes), "in ten seconds: starts grow rarer with their size")
		_, met := replayAll(t, out.Bytes())
		assert.Equal(t, 2100, met)
		require.NoError(t, b.Close(ctx))
	})
}

// A recorder is free again when its balancer has closed, or never came to be; and not before.
func TestARecorderIsGivenBack(t *testing.T) {
	rec := &Recorder{}
	_, err := NewNativeBalancer(policy.Parse, "no such policy", WithRecorder(rec))
	require.ErrorIs(t, err, engine.ErrConfig)
	one := nativeOf(t, "random seed=1", WithRecorder(rec))
	decide(t, one, Query{}).Done(engine.OutcomeSuccess)
	_, err = NewNativeBalancer(policy.Parse, "random", WithRecorder(rec))
	require.ErrorIs(t, err, ErrRecorderTaken)
	require.NoError(t, one.Close(ctx))
	two := nativeOf(t, "random seed=2", WithRecorder(rec))
	require.NoError(t, one.Close(ctx))
	_, err = NewNativeBalancer(policy.Parse, "random", WithRecorder(rec))
	require.ErrorIs(t, err, ErrRecorderTaken, "closing twice gives back what is one's own only")
	decide(t, two, Query{}).Done(engine.OutcomeSuccess)
	var out bytes.Buffer
	require.NoError(t, two.Dump(&out, 0))
	_, met := replayAll(t, out.Bytes())
	assert.Equal(t, 2, met)
	require.NoError(t, two.Close(ctx))
}

func BenchmarkRecorder(b *testing.B) {
	for name, opts := range map[string][]Option{"off": nil, "on": {WithRecorder(&Recorder{Sink: io.Discard})}} {
		b.Run(name, func(b *testing.B) {
			lb, err := NewNativeBalancer(policy.Parse, "prequal seed=3", opts...)
			require.NoError(b, err)
			require.NoError(b, lb.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}}))
			b.ReportAllocs()
			for b.Loop() {
				p, _ := lb.Decide(ctx, Query{})
				p.Done(engine.OutcomeSuccess)
			}
		})
	}
}
