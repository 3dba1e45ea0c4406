package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host/trace"
)

// frail is a guest that fails at any call, one in so many.
type frail struct {
	engine.Machine
	s *frailSource
}

type frailSource struct {
	at              atomic.Int64 // one call in so many fails; 0 for none
	started, closed atomic.Int64
	spec            string
	old             bool
}

func (f *frailSource) source() Source {
	return Source{spec: f.spec, guest: true, prepare: func(context.Context) (blank, error) {
		if at := f.at.Load(); at > 0 && rand.Int64N(20) == 0 {
			return nil, errBroken
		}
		f.started.Add(1)
		return frailBlank{f}, nil
	}}
}

type frailBlank struct{ s *frailSource }

func (b frailBlank) configured(spec string, salt uint64) (engine.Machine, string, error) {
	m, canonical, err := madeBlank{func(e *engine.Engine, _ uint64) engine.Machine { return &frail{Machine: e, s: b.s} }}.configured(spec, salt)
	return m, canonical, err
}

func (b frailBlank) Close(context.Context) error {
	b.s.closed.Add(1)
	return nil
}

func (m *frail) Close(context.Context) error {
	m.s.closed.Add(1)
	return nil
}

func (m *frail) fails() error {
	if at := m.s.at.Load(); at > 0 && rand.Int64N(at) == 0 {
		return ErrTrap
	}
	return nil
}

func (m *frail) SetCandidates(now engine.Instant, cs []engine.Candidate) error {
	return errors.Join(m.Machine.SetCandidates(now, cs), m.fails())
}

func (m *frail) SetStatus(now engine.Instant, id engine.ID, st engine.Status) error {
	return errors.Join(m.Machine.SetStatus(now, id, st), m.fails())
}

func (m *frail) Decide(q *engine.Query, d *engine.Decision) error {
	if err := m.fails(); err != nil {
		return err
	}
	return m.Machine.Decide(q, d)
}

func (m *frail) Report(now engine.Instant, r engine.Report) error {
	if err := m.fails(); err != nil {
		return err
	}
	return m.Machine.Report(now, r)
}

func (m *frail) Snapshot(dst []byte) ([]byte, error) {
	if err := m.fails(); err != nil {
		return dst, err
	}
	return m.Machine.Snapshot(dst)
}

func (m *frail) Entries(now engine.Instant, dst []engine.Entry) ([]engine.Entry, error) {
	if err := m.fails(); err != nil {
		return dst, err
	}
	return m.Machine.Entries(now, dst)
}

func (m *frail) Inspect(c *engine.Counters, f *engine.Fit) error {
	return errors.Join(m.Machine.Inspect(c, f), m.fails())
}

func (m *frail) SetInFlight(open []engine.InFlight) error {
	if m.s.old {
		return ErrOldGuest
	}
	return errors.Join(m.Machine.SetInFlight(open), m.fails())
}

// Everything that changes a balancer, at once and for a while, with guests that fail at any call: nothing is lost, nothing
// hangs, counts only grow, and in the end nothing is left.
func TestAStorm(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	var sources []*frailSource
	for _, spec := range []string{"prequal seed=1", "prequal seed=1 mode=sync", "least_loaded seed=1", "prequal seed=1 pool=5", "weighted_round_robin seed=1"} {
		sources = append(sources, &frailSource{spec: spec}, &frailSource{spec: spec, old: true})
	}
	some := func() Source { return sources[rand.IntN(len(sources))].source() }
	rec := &Recorder{Keep: time.Minute}
	var told atomic.Int64
	var b *Balancer
	b, err := newBalancer(ctx, some(), []Option{
		WithShards(3), WithRecorder(rec), WithTwin(policy.Parse), WithProbeWait(200 * time.Microsecond),
		WithChangeHandler(func(c Change) {
			told.Add(1)
			_ = b.Stats()
			if c.Kind == ChangeSwap {
				_ = b.SetShare(1000)
			}
		}),
		WithTrapHandler(func(error) { _ = b.Spec() }),
	})
	require.NoError(t, err)
	for _, s := range sources {
		s.at.Store(1000)
	}
	names := make([]string, 12)
	for i := range names {
		names[i] = fmt.Sprint("e", i)
	}
	fleet := func() (eps []Endpoint) {
		eps = append(eps, Endpoint{Name: names[0]})
		for _, name := range names[1:] {
			if rand.IntN(3) > 0 {
				eps = append(eps, Endpoint{Name: name, Status: engine.Status(rand.IntN(2))})
			}
		}
		return eps
	}
	require.NoError(t, b.SetEndpoints(fleet()))
	span := 2 * time.Second
	if testing.Short() {
		span = time.Second / 2
	}
	running, stop := context.WithTimeout(ctx, span)
	defer stop()
	var all sync.WaitGroup
	loop := func(pause time.Duration, f func()) {
		all.Go(func() {
			for running.Err() == nil {
				f()
				if pause > 0 {
					time.Sleep(time.Duration(rand.Int64N(int64(pause))))
				}
			}
		})
	}
	oneOf := func(err error, allowed ...error) {
		for _, a := range append(allowed, ErrTrap, errBroken) {
			if err == nil || errors.Is(err, a) {
				return
			}
		}
		assert.NoError(t, err)
	}
	prober := &Prober{Probe: func(context.Context, Endpoint) (engine.Reading, error) {
		return engine.Reading{RIF: rand.Uint32N(9), Latency: engine.Duration(rand.IntN(1e6))}, nil
	}}
	all.Go(func() { assert.ErrorIs(t, prober.Run(running, b), context.DeadlineExceeded) })
	var decided atomic.Uint64
	for range 8 {
		loop(0, func() {
			p, err := b.Decide(ctx, Query{Key: names[rand.IntN(12)]})
			if err != nil {
				oneOf(err, engine.ErrNoneEligible)
				return
			}
			decided.Add(1)
			if rand.IntN(50) == 0 {
				time.Sleep(time.Millisecond)
			}
			p.Done(engine.Outcome(rand.IntN(4)))
		})
	}
	loop(5*time.Millisecond, func() { oneOf(b.Swap(ctx, some())) })
	loop(5*time.Millisecond, func() { oneOf(b.Canary(ctx, some(), rand.Uint32N(wholeShare))) })
	loop(10*time.Millisecond, func() { oneOf(b.Promote(ctx), ErrNoCanary) })
	loop(10*time.Millisecond, func() { oneOf(b.Rollback(ctx), ErrNothingBefore) })
	loop(time.Millisecond, func() { oneOf(b.SetShare(rand.Uint32N(wholeShare)), ErrNoCanary) })
	loop(5*time.Millisecond, func() {
		c, err := b.Compare(ctx, some())
		if oneOf(err); err == nil && rand.IntN(2) == 0 {
			c.Stop(running)
			_ = c.Report()
		}
	})
	loop(5*time.Millisecond, func() { assert.NoError(t, b.SetEndpoints(fleet())) })
	loop(time.Millisecond, func() { oneOf(b.SetStatus(names[rand.IntN(12)], engine.Status(rand.IntN(3))), engine.ErrUnknownID) })
	loop(time.Millisecond, func() { oneOf(b.Record(names[rand.IntN(12)], engine.Reading{RIF: 3}), engine.ErrUnknownID) })
	loop(time.Millisecond, func() {
		oneOf(b.RecordLoad(names[rand.IntN(12)], engine.LoadReport{QPS: 9}), engine.ErrUnknownID)
		b.Forget(names[rand.IntN(12)])
		_ = b.Entries()
	})
	var last engine.Counters
	loop(time.Millisecond, func() {
		now := b.Stats().Counters
		was := last.Each()
		for i, v := range now.Each() {
			assert.GreaterOrEqual(t, *v, *was[i], "count %d", i)
		}
		last = now
	})
	loop(20*time.Millisecond, func() {
		var out bytes.Buffer
		assert.NoError(t, b.Dump(&out, 0))
		_, err := trace.ReadRecording("dump", &out)
		assert.NoError(t, err)
	})
	all.Wait()
	st := b.Stats()
	t.Logf("%d decisions, %d traps, %d rebuilds, %d swaps, %d changes told", st.Decisions, st.Traps, st.Rebuilds, st.Swaps, told.Load())
	assert.Equal(t, decided.Load(), st.Decisions)
	assert.Zero(t, st.InFlight)
	assert.Positive(t, st.Traps)
	assert.Empty(t, b.leaving.all(), "every ended canary has gone")
	for _, s := range sources {
		s.at.Store(0)
	}
	for _, s := range b.all() {
		s.mu.Lock()
		assert.Empty(t, s.inFlight())
		s.release()
	}
	require.NoError(t, b.Close(ctx))
	require.NoError(t, b.Close(ctx), "twice")
	started, closed := int64(0), int64(0)
	for _, s := range sources {
		started, closed = started+s.started.Load(), closed+s.closed.Load()
	}
	assert.Equal(t, started, closed, "every machine is closed, and none twice")
	for i := 0; i < 500 && runtime.NumGoroutine() > goroutines; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "goroutines are left")
}
