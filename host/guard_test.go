package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/abi"
	"github.com/headroom-lb/headroom/wasm/dist"
)

// foreign is the built-in module with another digest: a custom section at its end.
func foreign() []byte { return append(slices.Clone(dist.Engine), 0, 3, 1, 'x', 0) }

// tiny is the least guest: it decides for the first candidate and knows nothing else. A body
// given for an export takes the place of its own.
func tiny(bodies map[string][]byte) []byte {
	vec := func(elements [][]byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(len(elements))), bytes.Join(elements, nil)...)
	}
	sized := func(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
	kinds := strings.NewReplacer("i", "\x7f", "l", "\x7e")
	var types, functions, exports, code [][]byte
	for i, e := range abi.Exports() {
		types = append(types, slices.Concat([]byte{0x60}, sized([]byte(kinds.Replace(e.Params))), sized([]byte(kinds.Replace(e.Results)))))
		functions = append(functions, []byte{byte(i)})
		exports = append(exports, slices.Concat(sized([]byte(e.Name)), []byte{0, byte(i)}))
		body := map[string][]byte{
			abi.FuncVersion: {0x41, 0x81, 0x80, 4}, abi.FuncArena: {0x41, 0x80, 8}, abi.FuncDecision: {0x41, 16}, abi.FuncBlock: {0x42, 0},
		}[e.Name]
		if given := bodies[e.Name]; given != nil {
			body = given
		} else if body == nil {
			body = []byte{0x41, 0}
		}
		code = append(code, sized(slices.Concat([]byte{0}, body, []byte{0x0b})))
	}
	exports = append(exports, slices.Concat(sized([]byte(abi.Memory)), []byte{2, 0}))
	wasm := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id       byte
		elements [][]byte
	}{{1, types}, {3, functions}, {5, [][]byte{{0, 1}}}, {7, exports}, {10, code}} {
		wasm = append(append(wasm, s.id), sized(vec(s.elements))...)
	}
	return wasm
}

// unknowable is a tiny guest in a form that means the same and that the fuel pass does not know:
// its first type stands in a group of its own.
func unknowable(tb testing.TB, wasm []byte) []byte {
	require.Equal(tb, byte(1), wasm[8], "the section of types comes first")
	size, n := binary.Uvarint(wasm[9:])
	count, m := binary.Uvarint(wasm[9+n:])
	body := binary.AppendUvarint(nil, count)
	body = append(append(body, 0x4e, 1), wasm[9+n+m:9+n+int(size)]...)
	out := append(binary.AppendUvarint(slices.Clone(wasm[:9]), uint64(len(body))), body...)
	return append(out, wasm[9+n+int(size):]...)
}

// endless is a loop that leaves an i32 behind, if ever.
var endless = []byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x41, 0}

func runtime(tb testing.TB, opts ...host.RuntimeOption) *host.Runtime {
	r, err := host.NewRuntime(context.Background(), opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, r.Close(context.Background())) })
	return r
}

func decides(t *testing.T, m *host.Module, spec string) {
	t.Helper()
	in, err := m.Instantiate(context.Background(), spec, 0)
	require.NoError(t, err)
	defer in.Close(context.Background())
	require.NoError(t, in.SetCandidates(0, replicas(10)))
	require.NoError(t, in.Decide(&engine.Query{Now: 1}, &engine.Decision{}))
}

func TestHowModulesAreGuarded(t *testing.T) {
	refused := func(err error) { t.Errorf("no warning was due: %v", err) }
	fuel, limit := host.WithFuel(20_000), host.WithCallLimit(time.Second)
	for name, c := range map[string]struct {
		opts []host.RuntimeOption
		want host.Guard
		text string
	}{
		"by default":    {nil, host.Guard{Fuel: host.DefaultFuel}, "fuel, 50000000 loop iterations a call"},
		"not at all":    {[]host.RuntimeOption{host.WithoutGuard()}, host.Guard{}, "none"},
		"by a deadline": {[]host.RuntimeOption{limit}, host.Guard{Limit: time.Second}, "deadline, 1s a call"},
		"by fuel":       {[]host.RuntimeOption{fuel}, host.Guard{Fuel: 20_000}, "fuel, 20000 loop iterations a call"},
		"by fuel first": {[]host.RuntimeOption{limit, fuel}, host.Guard{Fuel: 20_000}, "fuel, 20000 loop iterations a call"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := runtime(t, append(c.opts, host.WithWarningHandler(refused))...).Load(context.Background(), tiny(nil))
			require.NoError(t, err)
			assert.Equal(t, c.want, m.Guard())
			assert.Equal(t, c.text, m.Guard().String())
			decides(t, m, "")
		})
	}
	t.Run("the built-in needs none", func(t *testing.T) {
		m, err := runtime(t, limit, fuel, host.WithWarningHandler(refused)).Load(context.Background(), dist.Engine)
		require.NoError(t, err)
		assert.Equal(t, host.Guard{}, m.Guard())
		decides(t, m, "prequal seed=7")
	})
}

// Who asks for no guard by mistake gets an error, and who asks for nothing at all has one.
func TestAGuestThatLoopsTrapsByDefault(t *testing.T) {
	for _, opt := range []host.RuntimeOption{host.WithFuel(20_000), host.WithCallLimit(time.Second)} {
		_, err := host.NewRuntime(context.Background(), opt, host.WithoutGuard())
		assert.ErrorContains(t, err, "leave one out")
	}
	m, err := runtime(t).Load(context.Background(), tiny(map[string][]byte{abi.FuncDecide: endless}))
	require.NoError(t, err)
	in, err := m.Instantiate(context.Background(), "", 0)
	require.NoError(t, err)
	require.NoError(t, in.SetCandidates(0, replicas(3)))
	err = in.Decide(&engine.Query{Now: 1}, &engine.Decision{})
	require.ErrorIs(t, err, host.ErrTrap)
	assert.ErrorContains(t, err, "ran out of fuel")
}

// A module that the pass does not know runs under a deadline and never without a guard.
func TestWithoutFuelThereIsADeadline(t *testing.T) {
	for name, c := range map[string]struct {
		opts []host.RuntimeOption
		want time.Duration
	}{
		"of its own": {nil, time.Second},
		"as given":   {[]host.RuntimeOption{host.WithCallLimit(700 * time.Millisecond)}, 700 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			warn := host.WithWarningHandler(func(err error) { told = append(told, err) })
			r := runtime(t, append(c.opts, host.WithFuel(host.DefaultFuel), warn)...)
			for range 2 { // the second on the runtime made for the first
				m, err := r.Load(context.Background(), unknowable(t, tiny(nil)))
				require.NoError(t, err)
				assert.Equal(t, host.Guard{Limit: c.want}, m.Guard())
				decides(t, m, "")
			}
			require.Len(t, told, 2)
			assert.ErrorContains(t, told[0], "a deadline of "+c.want.String()+" for each call")
			assert.ErrorContains(t, told[0], "not understood: type 0x4e at offset 0x")

			m, err := r.Load(context.Background(), unknowable(t, tiny(map[string][]byte{abi.FuncDecide: endless})))
			require.NoError(t, err)
			in, err := m.Instantiate(context.Background(), "", 0)
			require.NoError(t, err)
			require.NoError(t, in.SetCandidates(0, replicas(3)))
			err = in.Decide(&engine.Query{Now: 1}, &engine.Decision{})
			assert.EqualError(t, err, "guest trapped: a call took longer than "+c.want.String())
		})
	}
	t.Run("said in the log", func(t *testing.T) {
		var log bytes.Buffer
		old := slog.Default()
		defer slog.SetDefault(old)
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		_, err := runtime(t, host.WithFuel(host.DefaultFuel)).Load(context.Background(), unknowable(t, tiny(nil)))
		require.NoError(t, err)
		assert.Contains(t, log.String(), "a module is guarded worse than asked for")
	})
}

func TestFuelIsChecked(t *testing.T) {
	for _, n := range []int64{-1, 0, 9_999, 1_000_000_000_001} {
		_, err := host.NewRuntime(context.Background(), host.WithFuel(n))
		assert.ErrorContains(t, err, "want 10000 to 1000000000000", "%d", n)
	}
	_, err := runtime(t, host.WithFuel(host.DefaultFuel)).Load(context.Background(), append(tiny(nil), 0, 99, 1))
	require.ErrorIs(t, err, host.ErrModule)
	assert.ErrorContains(t, err, "malformed module: it ends too soon at offset 0x")
}

// Fuel that is gone is an error that says so, and how much it was.
func TestRunningOutSaysSo(t *testing.T) {
	r := runtime(t, host.WithFuel(20_000))
	instance := func(export string) *host.Instance {
		m, err := r.Load(context.Background(), tiny(map[string][]byte{export: endless}))
		require.NoError(t, err)
		in, err := m.Instantiate(context.Background(), "", 0)
		require.NoError(t, err)
		return in
	}
	err := instance(abi.FuncCandidates).SetCandidates(0, replicas(3))
	require.ErrorIs(t, err, host.ErrTrap)
	assert.EqualError(t, err, "guest trapped: ran out of fuel: 400000 loop iterations in one call of lb_candidates")
	in := instance(abi.FuncDecide)
	require.NoError(t, in.SetCandidates(0, replicas(3)))
	err = in.Decide(&engine.Query{Now: 1}, &engine.Decision{})
	assert.EqualError(t, err, "guest trapped: ran out of fuel: 20000 loop iterations in one call of lb_decide")
	_, err = r.Load(context.Background(), tiny(map[string][]byte{abi.FuncVersion: endless}))
	require.ErrorIs(t, err, host.ErrModule, "a module that does not start is none")
	assert.ErrorContains(t, err, "ran out of fuel: 20000 loop iterations in one call of lb_abi_version")
	_, err = r.Load(context.Background(), tiny(map[string][]byte{abi.FuncVersion: {0x00}}))
	require.ErrorIs(t, err, host.ErrTrap)
	assert.NotContains(t, err.Error(), "fuel", "another trap is not taken for it")
}

// BenchmarkGuards times decisions and readings of one policy, plain and on fuel, in short runs
// in turn, and reports the tenth percentiles and their ratio.
func BenchmarkGuards(b *testing.B) {
	m, err := runtime(b, host.WithFuel(host.DefaultFuel)).Load(context.Background(), foreign())
	require.NoError(b, err)
	const calls = 7
	for _, spec := range []string{"prequal seed=7", "least_loaded seed=7", "c3 seed=7", "rendezvous seed=7"} {
		b.Run(spec, func(b *testing.B) {
			fuelled, err := m.Instantiate(context.Background(), spec, 0)
			require.NoError(b, err)
			defer fuelled.Close(context.Background())
			cs := replicas(100)
			machines := []*host.Instance{guest(b, spec), fuelled}
			for _, in := range machines {
				require.NoError(b, in.SetCandidates(0, cs))
			}
			now, d := engine.Instant(0), engine.Decision{}
			var record, decide, empty [2][]float64
			for round := 0; b.Loop(); round++ {
				now += engine.Instant(engine.Millisecond)
				for k, in := range machines {
					began := time.Now()
					for i := range 3 * calls {
						_, _ = in.Record(now+engine.Instant(i), cs[(round*7+i*13)%100].ID, engine.Reading{
							RIF: uint32(i % 5), Latency: engine.Duration(i*77777%1000000) + engine.Millisecond, Asked: now,
						})
					}
					record[k] = append(record[k], float64(time.Since(began))/(3*calls))
					q := engine.Query{Now: now + 100}
					began = time.Now()
					for i := range calls {
						q.Key = engine.Key(i)
						_ = in.Decide(&q, &d)
					}
					decide[k] = append(decide[k], float64(time.Since(began))/calls)
					began = time.Now()
					for range 2 * calls {
						_ = in.Nothing()
					}
					empty[k] = append(empty[k], float64(time.Since(began))/(2*calls))
				}
			}
			low := func(v []float64) float64 { slices.Sort(v); return v[len(v)/10] }
			for name, v := range map[string][2][]float64{"record": record, "decide": decide, "empty": empty} {
				plain, with := low(v[0]), low(v[1])
				b.ReportMetric(plain, name+"-plain-ns")
				b.ReportMetric(with/plain, name+"-ratio")
			}
		})
	}
}
