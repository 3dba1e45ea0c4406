package showcase

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

func openStage(t *testing.T, query string) *stage {
	t.Helper()
	st, err := newStage(parse(t, query), NativeEngine().Maker)
	require.NoError(t, err)
	t.Cleanup(st.close)
	return st
}

// try carries out a command as a room does, policies included.
func try(st *stage, c Command) (string, error) {
	next, text, ok, err := st.setup.with(c)
	if !ok {
		return st.apply(c)
	}
	if err != nil {
		return "", err
	}
	made, err := st.prepare(next, st.specs())
	if err != nil {
		return "", err
	}
	return text, st.adopt(next, made)
}

func do(t *testing.T, st *stage, c Command) string {
	t.Helper()
	text, err := try(st, c)
	require.NoError(t, err)
	return text
}

// A run is decided by its setup and the changes made, not by how it is cut into ticks or by
// what watches it: the guest's run is the native one, decision for decision.
func TestGuestRunsAsNative(t *testing.T) {
	wasm, err := WasmEngine(context.Background())
	require.NoError(t, err)
	defer func() { assert.NoError(t, wasm.Close()) }()
	s := parse(t, "clients=6&replicas=30")
	a, err := newStage(s, NativeEngine().Maker)
	require.NoError(t, err)
	b, err := newStage(s, wasm.Maker)
	require.NoError(t, err)
	defer b.close()
	require.NoError(t, a.run(6*sim.Second))
	for b.now < 6*sim.Second {
		require.NoError(t, b.run(min(int64(frameSpan), 6*sim.Second-b.now)))
		b.frame()
	}
	for i := range a.worlds {
		assert.Equal(t, a.worlds[i].Hash(), b.worlds[i].Hash())
		assert.Equal(t, a.worlds[0].TrafficHash(), b.worlds[i].TrafficHash())
	}
}

func TestStepEndsWithADecision(t *testing.T) {
	st := openStage(t, "")
	for range 5 {
		was := st.worlds[0].Explained.Serial
		require.NoError(t, st.decide())
		assert.Greater(t, st.worlds[0].Explained.Serial, was)
	}
	st = openStage(t, "load=0.3&replicas=4&clients=32") // arrivals too rare for a second
	require.NoError(t, st.decide())
	assert.LessOrEqual(t, st.now, sim.Second)
}

func TestCommandsAreClampedAndSaid(t *testing.T) {
	st := openStage(t, "")
	assert.Equal(t, "load 2", do(t, st, Command{Cmd: "load", Value: 50}))
	assert.Equal(t, 20_000, st.worlds[1].Scenario().Load)
	assert.Equal(t, "12 noisy machines", do(t, st, Command{Cmd: "noisy", Value: 1e300}))
	assert.Equal(t, "speed 0.05", do(t, st, Command{Cmd: "speed", Value: -1}))
	assert.Equal(t, "hot above the 0.25 quantile", do(t, st, Command{Cmd: "quantile", Value: 0.25}))
	assert.Contains(t, st.worlds[0].Spec(), "quantile=0.25")
	assert.Equal(t, "B is random", do(t, st, Command{Cmd: "policy", World: "b", Spec: "random"}))
	assert.Equal(t, "r3 is dead", do(t, st, Command{Cmd: "kill", Replica: 3}))
	assert.Equal(t, "uuux", st.state(false, 1).States[:4])
	assert.Equal(t, "b=random&load=2&noisy=12&q=0.25&speed=0.05", st.setup.Query())

	for _, c := range []Command{
		{Cmd: "kill", Replica: 48}, {Cmd: "drain", Replica: -1}, {Cmd: "policy", World: "c"}, {Cmd: "dance"},
		{Cmd: "policy", World: "a", Spec: "prequal pool=99"}, {Cmd: "hold", Regime: "lukewarm"},
	} {
		before := st.state(false, 1)
		_, err := try(st, c)
		assert.Error(t, err, c)
		assert.Equal(t, before, st.state(false, 1), "a refused command changes nothing")
	}
}

func TestHoldWaitsForItsRegime(t *testing.T) {
	st := openStage(t, "q=0.1")
	do(t, st, Command{Cmd: "hold", Regime: "hot"})
	for st.held == nil && st.now < 5*sim.Second {
		require.NoError(t, st.run(int64(frameSpan)))
	}
	require.NotNil(t, st.held)
	serial := st.held.Serial
	require.NoError(t, st.run(sim.Second))
	f := st.frame()
	assert.Equal(t, serial, f.Decision.Serial)
	assert.Equal(t, engine.RegimeHot, f.Decision.Decision.Regime)
	assert.True(t, f.Decision.Held)
	assert.Contains(t, f.Why, "are hot")
	do(t, st, Command{Cmd: "hold"})
	require.NoError(t, st.run(sim.Second))
	assert.Greater(t, st.frame().Decision.Serial, serial)
}

func TestFrameSaysWhatTheWorldsSay(t *testing.T) {
	st := openStage(t, "a=random&b=prequal&t=0")
	require.NoError(t, st.run(2*sim.Second))
	f := st.frame()
	for i, w := range st.worlds {
		s, wf := w.Summary(), f.Worlds[i]
		assert.Equal(t, s.Totals, wf.Totals)
		sum := 0
		for r, v := range s.Replicas {
			assert.Equal(t, v.RIF, wf.Replicas[r].RIF)
			sum += v.RIF
		}
		assert.Positive(t, sum)
		assert.LessOrEqual(t, sum, wf.InFlight)
		dots := map[bool]int{}
		for _, d := range wf.Dots {
			dots[d.Kind < sim.KindError]++
		}
		assert.LessOrEqual(t, dots[true], maxDots)
		assert.GreaterOrEqual(t, wf.Queries, dots[true])
	}
	assert.Equal(t, 1, f.Decision.World, "B keeps the pool, so B is explained")
	assert.Contains(t, f.Why, sim.Name(st.worlds[1].Replica(f.Decision.Decision.ID)))
	assert.Len(t, st.columns, 9)
}

func TestSampleIsEven(t *testing.T) {
	all := make([]sim.Dot, 0, 1000)
	for i := range 1000 {
		k := sim.KindCold
		if i%10 == 0 {
			k = sim.KindError
		}
		all = append(all, sim.Dot{At: int64(i), Kind: k})
	}
	dots, queries, failures := sample(all)
	assert.Equal(t, []int{900, 100}, []int{queries, failures})
	assert.Len(t, dots, maxDots+maxErrors)
	assert.Greater(t, dots[len(dots)-1].At, int64(900), "the end of the tick is seen too")
	few, _, _ := sample(all[:5])
	assert.Len(t, few, 5)
}

// The budget of the default room: a step of one frame in wasm, both worlds, the frame included.
func BenchmarkStep(b *testing.B) {
	wasm, err := WasmEngine(context.Background())
	require.NoError(b, err)
	defer wasm.Close()
	for _, e := range []*Engine{NativeEngine(), wasm} {
		b.Run(e.Kind, func(b *testing.B) {
			began := time.Now()
			st, err := newStage(DefaultSetup(), e.Maker)
			require.NoError(b, err)
			defer st.close()
			opened := time.Since(began)
			require.NoError(b, st.run(3*sim.Second))
			b.ResetTimer()
			size := 0
			for range b.N {
				if err := st.run(int64(frameSpan)); err != nil {
					b.Fatal(err)
				}
				size = len(st.frame().Append(nil))
			}
			b.ReportMetric(float64(size), "B/frame")
			b.ReportMetric(float64(opened.Milliseconds()), "ms/open")
		})
	}
}
