package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

var soak = flag.Duration("soak", 2*time.Second, "how long the soak test lasts; make soak gives it a minute")

// failing is a guest that dies, for good, at every so many decisions of all that share the count.
type failing struct {
	*Instance
	count *atomic.Uint64
	every uint64
}

func (f failing) Decide(q *engine.Query, d *engine.Decision) error {
	if f.count.Add(1)%f.every == 0 {
		_ = f.Instance.Close(context.Background())
	}
	return f.Instance.Decide(q, d)
}

type failingBlank struct {
	blank
	count *atomic.Uint64
	every uint64
}

func (f failingBlank) configured(spec string, salt uint64) (engine.Machine, string, error) {
	m, canonical, err := f.blank.configured(spec, salt)
	if err != nil {
		return nil, "", err
	}
	return failing{m.(*Instance), f.count, f.every}, canonical, nil
}

// failingSource is the built-in module whose guests die at every so many decisions.
func failingSource(m *Module, spec string, every uint64) Source {
	src := FromModule(m, spec)
	prepare, count := src.prepare, &atomic.Uint64{}
	src.prepare = func(ctx context.Context) (blank, error) {
		bl, err := prepare(ctx)
		return failingBlank{bl, count, every}, err
	}
	return src
}

// churn is a fleet that changes, and what may be decided for.
type churn struct {
	steps   atomic.Int64
	removed [48]atomic.Int64 // at which step an endpoint's removal was complete; 0 while it may serve
}

const steady = 24 // endpoints that never leave

func (c *churn) run(ctx context.Context, t *testing.T, b *Balancer) {
	r := rand.New(rand.NewPCG(1, 2))
	for ctx.Err() == nil {
		var eps []Endpoint
		var gone []int
		for i := range c.removed {
			if i >= steady && r.IntN(2) == 0 {
				gone = append(gone, i)
				continue
			}
			c.removed[i].Store(0)
			eps = append(eps, Endpoint{Name: fmt.Sprint(i)})
		}
		r.Shuffle(len(eps), func(i, j int) { eps[i], eps[j] = eps[j], eps[i] })
		assert.NoError(t, b.SetEndpoints(eps))
		step := c.steps.Add(1)
		for _, i := range gone {
			if c.removed[i].Load() == 0 {
				c.removed[i].Store(step)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// wrong says whether an endpoint had left before a decision for it began.
func (c *churn) wrong(name string, began int64) bool {
	var i int
	_, _ = fmt.Sscan(name, &i)
	at := c.removed[i].Load()
	return at != 0 && at < began
}

// Sixty-four callers, a swap every second, a guest that dies at every 20,000 decisions, and a
// fleet that changes 200 times a second: no decision is lost or wrong, and nothing is left behind.
func TestSoak(t *testing.T) {
	ctx := context.Background()
	rt, err := NewRuntime(ctx)
	require.NoError(t, err)
	m, err := rt.LoadEngine(ctx)
	require.NoError(t, err)
	goroutines := runtime.NumGoroutine()

	specs := []string{"prequal seed=1", "prequal seed=1 pool=12 quantile=0.9", "least_loaded seed=1"}
	every := uint64(20_000)
	if racing {
		every = 2_000
		t.Logf("under the race detector: a guest dies at every %d decisions, since there are fewer", every)
	}
	b, err := newBalancer(ctx, failingSource(m, specs[0], every), []Option{WithShards(4), WithSeed(1), WithTwin(policy.Parse)})
	require.NoError(t, err)
	var c churn
	running, stop := context.WithTimeout(ctx, *soak)
	defer stop()
	var eps []Endpoint
	for i := range c.removed {
		eps = append(eps, Endpoint{Name: fmt.Sprint(i)})
	}
	require.NoError(t, b.SetEndpoints(eps))

	var around sync.WaitGroup
	around.Go(func() { c.run(running, t, b) })
	prober := &Prober{Probe: func(_ context.Context, ep Endpoint) (engine.Reading, error) {
		return engine.Reading{RIF: rand.Uint32N(20), Latency: engine.Duration(1 + rand.IntN(1e6))}, nil
	}}
	around.Go(func() { assert.ErrorIs(t, prober.Run(running, b), context.DeadlineExceeded) })
	pause := min(time.Second, *soak/8)
	around.Go(func() {
		for i := 1; running.Err() == nil; i++ {
			assert.NoError(t, b.Swap(ctx, failingSource(m, specs[i%len(specs)], every)))
			select {
			case <-running.Done():
			case <-time.After(pause):
			}
		}
	})
	var decided, wrong, lost atomic.Uint64
	took := make([]*hdrhistogram.Histogram, 64)
	for i := range took {
		took[i] = hdrhistogram.New(1, int64(time.Second), 3)
		around.Go(func() {
			for running.Err() == nil {
				began, at := c.steps.Load(), time.Now()
				p, err := b.Decide(ctx, Query{})
				_ = took[i].RecordValue(min(int64(time.Since(at)), int64(time.Second)))
				if err != nil {
					lost.Add(1)
					continue
				}
				decided.Add(1)
				if c.wrong(p.Endpoint.Name, began) {
					wrong.Add(1)
				}
				p.Done(engine.OutcomeSuccess)
			}
		})
	}
	around.Wait()
	all := hdrhistogram.New(1, int64(time.Second), 3)
	for _, h := range took {
		all.Merge(h)
	}
	st := b.Stats()
	t.Logf("%d decisions, %d swaps, %d traps, %d of them decided by a stand-in or uniformly (%.3f%%); p50 %v, p99 %v, p99.9 %v",
		decided.Load(), st.Swaps, st.Traps, st.ByCause[engine.CauseTrap], 100*float64(st.ByCause[engine.CauseTrap])/float64(decided.Load()),
		time.Duration(all.ValueAtQuantile(50)), time.Duration(all.ValueAtQuantile(99)), time.Duration(all.ValueAtQuantile(99.9)))
	assert.Zero(t, lost.Load(), "lost")
	assert.Zero(t, wrong.Load(), "decided for a replica that had left")
	assert.Equal(t, decided.Load(), st.Decisions)
	assert.Equal(t, decided.Load(), st.Outcomes[engine.OutcomeSuccess])
	assert.Zero(t, st.InFlight)
	assert.Positive(t, st.Traps)
	assert.Positive(t, st.Swaps)
	for i, s := range b.live.Load().shards {
		s.mu.Lock()
		assert.Nil(t, s.open, "shard %d", i)
		assert.Empty(t, s.inFlight())
		s.release()
	}
	require.NoError(t, b.Close(ctx))
	require.NoError(t, rt.Close(ctx))
	for i := 0; i < 500 && runtime.NumGoroutine() > goroutines; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "goroutines are left")
}

// guestMemory is what a guest takes, about.
const guestMemory = 3 << 20

// The memory of what was replaced is given back.
func TestSwapsLeaveNoMemoryBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("120 guests are started; the full run does it")
	}
	ctx := context.Background()
	rt, err := NewRuntime(ctx)
	require.NoError(t, err)
	m, err := rt.LoadEngine(ctx)
	require.NoError(t, err)
	b, err := NewBalancer(ctx, m, "prequal seed=1", WithoutSpare())
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}}))
	inUse := func() uint64 {
		var ms runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&ms)
		return ms.HeapInuse
	}
	swap := func(n int) uint64 {
		for i := range n {
			p, err := b.Decide(ctx, Query{})
			require.NoError(t, err)
			require.NoError(t, b.Swap(ctx, FromModule(m, []string{"random seed=2", "prequal seed=1"}[i%2])))
			p.Done(engine.OutcomeSuccess)
		}
		return inUse()
	}
	first := swap(20)
	after := swap(100)
	t.Logf("heap in use: %d KiB after 20 swaps, %d KiB after 120", first>>10, after>>10)
	assert.Less(t, after, first+4*guestMemory, "more than a few guests are left of a hundred")
	assert.Zero(t, b.InFlight())
	require.NoError(t, errors.Join(b.Close(ctx), rt.Close(ctx)))
}
