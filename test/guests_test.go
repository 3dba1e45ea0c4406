package test

import (
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/test/guestbuild"
	"github.com/headroom-lb/headroom/wasm/dist"
)

func badModule(t *testing.T, opts ...host.RuntimeOption) *host.Module {
	t.Helper()
	wasm, err := guestbuild.Build("..", "./test/testdata/guests/bad")
	require.NoError(t, err)
	r, err := host.NewRuntime(context.Background(), append([]host.RuntimeOption{host.WithMemoryLimit(256)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close(context.Background())) })
	m, err := r.Load(context.Background(), wasm)
	require.NoError(t, err)
	assert.Equal(t, []string{"bad"}, m.Policies())
	return m
}

func badEndpoints() []host.Endpoint {
	return []host.Endpoint{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "drained", Status: engine.StatusDraining}}
}

// Whatever a guest does, the query is placed on an eligible endpoint, the failure is counted
// and told, and a fresh guest serves soon after.
func TestABadGuestIsContained(t *testing.T) {
	m := badModule(t)
	for _, fault := range []string{"panic", "out of range", "not eligible", "eat memory", "recurse"} {
		t.Run(fault, func(t *testing.T) {
			var told atomic.Value
			b, err := host.NewBalancer(context.Background(), m, "bad", host.WithTrapHandler(func(err error) { told.Store(err) }))
			require.NoError(t, err)
			require.NoError(t, b.SetEndpoints(badEndpoints()))
			for range 5 {
				p, err := b.Decide(context.Background(), host.Query{Key: fault, Tried: []string{"a"}})
				require.NoError(t, err)
				assert.Contains(t, []string{"b", "c"}, p.Endpoint.Name)
				assert.Equal(t, engine.RegimeFallback, p.Decision.Regime)
				assert.Equal(t, engine.CauseTrap, p.Decision.Cause)
				p.Done(engine.OutcomeSuccess)
				require.Eventually(t, func() bool {
					p, err := b.Decide(context.Background(), host.Query{})
					require.NoError(t, err)
					p.Done(engine.OutcomeSuccess)
					return p.Decision.Regime == engine.RegimeDirect
				}, 10*time.Second, time.Millisecond, "a fresh guest serves")
			}
			s := b.Stats()
			assert.Equal(t, uint64(5), s.Traps)
			assert.Equal(t, uint64(5), s.Rebuilds)
			assert.Zero(t, s.InFlight)
			assert.Error(t, told.Load().(error))
			assert.NoError(t, b.Close(context.Background()))
		})
	}
}

// A guest that loops or recurses without end is ended, whatever guards it; the collector, which
// waits for every goroutine, goes on, and the others wait for nothing but their own decision.
func TestALoopingGuestIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		guard host.RuntimeOption
		text  string
	}{
		"deadline": {host.WithCallLimit(200 * time.Millisecond), "guest trapped: a call took longer than 200ms"},
		"fuel":     {host.WithFuel(host.DefaultFuel), "guest trapped: ran out of fuel: 50000000 loop iterations in one call of lb_decide"},
	} {
		m := badModule(t, c.guard)
		for _, fault := range []string{"loop", "recurse"} {
			t.Run(name+"/"+fault, func(t *testing.T) {
				told := make(chan error, 1)
				b, err := host.NewBalancer(context.Background(), m, "bad", host.WithTrapHandler(func(err error) { told <- err }))
				require.NoError(t, err)
				require.NoError(t, b.SetEndpoints(badEndpoints()))
				stop, collected := make(chan struct{}), make(chan int)
				go func() {
					for n := 1; ; n++ { // it must come to an end, however long the guest loops
						runtime.GC()
						select {
						case <-stop:
							collected <- n
							return
						default:
						}
					}
				}()
				began := time.Now()
				p, err := b.Decide(context.Background(), host.Query{Key: fault})
				t.Logf("placed after %v", time.Since(began))
				require.NoError(t, err)
				assert.Equal(t, engine.CauseTrap, p.Decision.Cause)
				p.Done(engine.OutcomeSuccess)
				err = <-told
				assert.ErrorIs(t, err, host.ErrTrap)
				if fault == "loop" || name == "fuel" { // Go's own limit may end a recursion first
					assert.EqualError(t, err, c.text)
				}
				require.Eventually(t, func() bool { return b.Stats().Rebuilds == 1 }, 10*time.Second, time.Millisecond)
				p, err = b.Decide(context.Background(), host.Query{})
				require.NoError(t, err)
				assert.Equal(t, engine.RegimeDirect, p.Decision.Regime)
				p.Done(engine.OutcomeSuccess)
				close(stop)
				assert.Positive(t, <-collected)
				require.NoError(t, b.Close(context.Background()))
			})
		}
	}
}

// What a guest asks of its host is checked before it serves.
func TestAGuestThatWantsTooManyProbesIsRefused(t *testing.T) {
	_, err := host.NewBalancer(context.Background(), badModule(t), "bad probes")
	require.ErrorIs(t, err, host.ErrAnswer)
	assert.ErrorContains(t, err, "99 probes for a query")
}

// A state block that no guest could be given back is no answer.
func TestAGuestWithTooLargeABlockIsRefused(t *testing.T) {
	ctx := context.Background()
	m := badModule(t, host.WithMemoryLimit(2048))
	b, err := host.NewBalancer(ctx, m, "bad")
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints(badEndpoints()))
	err = b.Swap(ctx, host.FromModule(m, "bad block"))
	require.ErrorIs(t, err, host.ErrAnswer)
	assert.ErrorContains(t, err, "a block of 25165")
	p, err := b.Decide(ctx, host.Query{})
	require.NoError(t, err)
	assert.Equal(t, engine.RegimeDirect, p.Decision.Regime)
	p.Done(engine.OutcomeSuccess)
	assert.NoError(t, b.Close(ctx))
}

// A guest that fails on every query is started ever more rarely.
func TestAGuestThatKeepsFailingIsQuarantined(t *testing.T) {
	m := badModule(t)
	b, err := host.NewBalancer(context.Background(), m, "bad")
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints(badEndpoints()))
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		p, err := b.Decide(context.Background(), host.Query{Key: "panic"})
		require.NoError(t, err)
		p.Done(engine.OutcomeSuccess)
	}
	assert.LessOrEqual(t, b.Stats().Traps, uint64(10), "waits of 0, 10, 20, 40 ... ms")
	require.NoError(t, b.Close(context.Background()))
}

func TestFailClosedRefusesInstead(t *testing.T) {
	m := badModule(t)
	b, err := host.NewBalancer(context.Background(), m, "bad", host.WithFailClosed())
	require.NoError(t, err)
	defer b.Close(context.Background())
	require.NoError(t, b.SetEndpoints(badEndpoints()))
	_, err = b.Decide(context.Background(), host.Query{Key: "panic"})
	assert.ErrorIs(t, err, host.ErrTrap)
	require.Eventually(t, func() bool { return b.Stats().Rebuilds == 1 }, 10*time.Second, time.Millisecond)
	_, err = b.Decide(context.Background(), host.Query{Key: "not eligible"})
	assert.ErrorIs(t, err, host.ErrAnswer)
}

func TestTrapsUnderLoadLoseNothing(t *testing.T) {
	m := badModule(t)
	b, err := host.NewBalancer(context.Background(), m, "bad", host.WithShards(3))
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints(badEndpoints()))
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 500 {
				q := host.Query{}
				if (g*500+i)%1000 == 999 {
					q.Key = "panic"
				}
				p, err := b.Decide(context.Background(), q)
				if !assert.NoError(t, err) || !assert.NotEqual(t, "drained", p.Endpoint.Name) {
					return
				}
				p.Done(engine.OutcomeSuccess)
			}
		})
	}
	wg.Wait()
	assert.NoError(t, b.Close(context.Background()))
	s := b.Stats()
	assert.Equal(t, uint64(8000), s.Decisions)
	assert.Zero(t, s.InFlight)
	assert.Positive(t, s.Traps)
}

// rename changes the name of an export or import in place.
func rename(wasm []byte, from, to string) []byte {
	out := slices.Clone(wasm)
	for i := 0; i+len(from) <= len(out); i++ {
		if string(out[i:i+len(from)]) == from {
			copy(out[i:], to)
		}
	}
	return out
}

func TestAWrongModuleIsRefusedByName(t *testing.T) {
	r, err := host.NewRuntime(context.Background())
	require.NoError(t, err)
	defer r.Close(context.Background())
	for name, c := range map[string]struct {
		wasm []byte
		want string
	}{
		"nothing":        {nil, "not a WebAssembly module"},
		"text":           {[]byte("hello, module"), "not a WebAssembly module"},
		"truncated":      {dist.Engine[:len(dist.Engine)/2], "unusable module"},
		"empty module":   {binary.LittleEndian.AppendUint32([]byte("\x00asm"), 1), `exports no memory named "memory"`},
		"export missing": {rename(dist.Engine, "lb_decide", "xx_decide"), "does not export lb_decide(i64 i64 i32) -> (i32)"},
		"wrong signature": {
			rename(rename(rename(dist.Engine, "lb_forget", "lb_xxxxxx"), "lb_probes", "lb_forget"), "lb_xxxxxx", "lb_probes"),
			"exports lb_forget(i64) -> (i32), want (i64 i64 i64) -> (i32)",
		},
		"foreign import": {rename(dist.Engine, "wasi_snapshot_preview1", "wasi_snapshot_preview9"), "imports wasi_snapshot_preview9."},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Load(context.Background(), c.wasm)
			require.ErrorIs(t, err, host.ErrModule)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}
