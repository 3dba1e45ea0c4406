package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// dying is a guest that dies at the calls that are named, from when it is told to.
type dying struct {
	engine.Machine
	at   *atomic.Value // string
	dead *atomic.Int64
}

func (m dying) dies(call string) error {
	if at, _ := m.at.Load().(string); at != call {
		return nil
	}
	m.dead.Add(1)
	return ErrTrap
}

func (m dying) Snapshot(dst []byte) ([]byte, error) {
	if err := m.dies("snapshot"); err != nil {
		return dst, err
	}
	return m.Machine.Snapshot(dst)
}

func (m dying) Entries(now engine.Instant, dst []engine.Entry) ([]engine.Entry, error) {
	if err := m.dies("entries"); err != nil {
		return dst, err
	}
	return m.Machine.Entries(now, dst)
}

func (m dying) Report(now engine.Instant, r engine.Report) error {
	if err := m.dies("report"); err != nil {
		return err
	}
	return m.Machine.Report(now, r)
}

// dyingSource also counts how many machines are begun, and closes.
type dyingSource struct {
	at            atomic.Value
	dead, started atomic.Int64
	closed        atomic.Int64
	broken        atomic.Bool // no machine starts any more
}

var errBroken = errors.New("cannot start")

func (d *dyingSource) source(spec string) Source {
	return Source{spec: spec, guest: true, prepare: func(context.Context) (blank, error) {
		d.started.Add(1)
		if d.broken.Load() {
			return nil, errBroken
		}
		return madeBlank{func(e *engine.Engine, _ uint64) engine.Machine {
			return closable{dying{e, &d.at, &d.dead}, &d.closed}
		}}, nil
	}}
}

// closable counts that it is closed.
type closable struct {
	engine.Machine
	closed *atomic.Int64
}

func (c closable) Close(context.Context) error {
	c.closed.Add(1)
	return nil
}

// A guest that dies while it gives its state is discarded as at any other call, whoever asked for the
// state, and nobody else is to blame.
func TestAGuestThatDiesGivingItsStateIsDiscarded(t *testing.T) {
	const spec = "round_robin seed=1"
	for name, c := range map[string]struct {
		ask  func(t *testing.T, b *Balancer)
		opts []Option
	}{
		"for a swap":       {func(t *testing.T, b *Balancer) { require.NoError(t, b.Swap(ctx, natively("random seed=2"))) }, nil},
		"for a canary":     {func(t *testing.T, b *Balancer) { require.NoError(t, b.Canary(ctx, natively("random seed=2"), 1)) }, nil},
		"for a comparison": {func(t *testing.T, b *Balancer) { _, err := b.Compare(ctx, natively(spec)); require.NoError(t, err) }, nil},
		"for a block to keep": {func(t *testing.T, b *Balancer) {
			time.Sleep(time.Second)
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
		}, nil},
		"for a recorder": {func(t *testing.T, b *Balancer) {
			assert.ErrorIs(t, b.Record("a", engine.Reading{}), ErrTrap) // begins a segment; the guest has been kept just now
		}, []Option{WithRecorder(&Recorder{})}},
	} {
		for _, call := range []string{"snapshot", "entries"} {
			if call == "entries" && (name == "for a recorder" || name == "for a block to keep") {
				continue
			}
			t.Run(name+", at "+call, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var d dyingSource
					b := balancerOf(t, d.source(spec), append(c.opts, WithTwin(policy.Parse), WithoutSpare())...)
					if c.opts != nil {
						time.Sleep(2 * segmentSpan)
					}
					d.at.Store(call)
					c.ask(t, b)
					d.at.Store("")
					assert.EqualValues(t, 1, d.dead.Load())
					assert.EqualValues(t, 1, b.Stats().Traps)
					time.Sleep(time.Second)
					assert.EqualValues(t, 1, d.closed.Load(), "it is not used again")
					decide(t, b, Query{}).Done(engine.OutcomeSuccess)
					assert.NoError(t, b.Close(ctx))
					assert.Equal(t, d.started.Load(), d.closed.Load())
				})
			})
		}
	}
}

// An ended canary whose guest dies before its last placement has ended needs no other guest.
func TestARetiredShardStartsNoMachines(t *testing.T) {
	for name, broken := range map[string]bool{"that would start": false, "that would not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d dyingSource
				b := nativeOf(t, "round_robin seed=1")
				require.NoError(t, b.Canary(ctx, d.source("least_loaded seed=1"), wholeShare))
				ps := on(t, b, 3, "b")
				require.NoError(t, b.Rollback(ctx))
				time.Sleep(time.Second)
				started := d.started.Load()
				d.broken.Store(broken)
				d.at.Store("report")
				ps[0].Done(engine.OutcomeSuccess)
				time.Sleep(time.Hour)
				assert.Equal(t, started, d.started.Load())
				done(ps[1:])
				time.Sleep(time.Second)
				assert.Equal(t, started, d.closed.Load()+1, "but for the spare, which has no machine yet")
				assert.NoError(t, b.Close(ctx))
			})
		})
	}
}

// A shard that retires while another machine is being started for it stops that.
func TestAShardThatRetiresStopsStartingMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d dyingSource
		b := nativeOf(t, "round_robin seed=1", WithoutSpare())
		require.NoError(t, b.Canary(ctx, d.source("least_loaded seed=1"), wholeShare))
		ps := on(t, b, 2, "b")
		d.broken.Store(true)
		d.at.Store("report")
		ps[0].Done(engine.OutcomeSuccess)
		time.Sleep(time.Minute)
		require.Greater(t, d.started.Load(), int64(5), "it goes on trying while the canary runs")
		require.NoError(t, b.Rollback(ctx))
		time.Sleep(mostWait)
		started := d.started.Load()
		time.Sleep(time.Hour)
		assert.Equal(t, started, d.started.Load())
		done(ps[1:])
		assert.NoError(t, b.Close(ctx))
	})
}

// Close frees what an ended canary holds for the sake of its open placements.
func TestCloseFreesEndedCanaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d dyingSource
		b := nativeOf(t, "round_robin seed=1", WithoutSpare(), WithShards(2))
		require.NoError(t, b.Canary(ctx, d.source("least_loaded seed=1"), wholeShare))
		held := decide(t, b, Query{})
		require.NoError(t, b.Rollback(ctx))
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		require.ErrorIs(t, b.Close(short), context.DeadlineExceeded)
		assert.Equal(t, d.started.Load(), d.closed.Load())
		held.Done(engine.OutcomeSuccess)
		assert.Empty(t, b.leaving.all())
		assert.Equal(t, d.started.Load(), d.closed.Load())
	})
}

// SetShare and the end of a canary may come together; a canary that has ended stays ended.
func TestSetShareDoesNotReviveACanary(t *testing.T) {
	b := nativeOf(t, "random seed=1")
	unwilling := made("random", func(e *engine.Engine, _ uint64) engine.Machine { return unwilling{e} })
	var over atomic.Bool
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for i := uint32(0); !over.Load(); i++ {
				if err := b.SetShare(i % wholeShare); err != nil {
					assert.ErrorIs(t, err, ErrNoCanary)
				}
			}
		})
	}
	for range 500 {
		require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}}))
		require.NoError(t, b.Canary(ctx, unwilling, 5000))
		assert.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}}))
		if !assert.Nil(t, b.canary.Load()) {
			break
		}
	}
	over.Store(true)
	all.Wait()
	assert.NoError(t, b.Close(ctx))
}

// The change handler is called under no lock: it may ask, change and even close the balancer, and
// hears of everything in order.
func TestAChangeHandlerMayCallTheBalancer(t *testing.T) {
	var b *Balancer
	var told []ChangeKind
	calls := map[ChangeKind]func(){
		ChangeSwap:     func() { require.NoError(t, b.Canary(ctx, natively("random seed=2"), 10)) },
		ChangeCanary:   func() { require.NoError(t, b.SetShare(20)) },
		ChangeShare:    func() { require.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}})) },
		ChangePromote:  func() { require.NoError(t, b.Rollback(ctx)) },
		ChangeRollback: func() { require.NoError(t, b.SetStatus("a", engine.StatusReady)); _ = b.Stats() },
		ChangeEnd:      func() { require.NoError(t, b.Close(ctx)) },
	}
	b = nativeOf(t, "random seed=1", WithChangeHandler(func(c Change) {
		told = append(told, c.Kind)
		calls[c.Kind]()
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, b.Swap(ctx, natively("random seed=9")))
		assert.Equal(t, []ChangeKind{ChangeSwap, ChangeCanary, ChangeShare}, told)
		assert.NoError(t, b.Promote(ctx))
		assert.Equal(t, []ChangeKind{ChangePromote, ChangeRollback}, told[3:])
		assert.NoError(t, b.Canary(ctx, made("random", func(e *engine.Engine, _ uint64) engine.Machine { return unwilling{e} }), 400))
		assert.NoError(t, b.SetEndpoints([]Endpoint{{Name: "a"}, {Name: "b"}}))
		assert.Equal(t, []ChangeKind{ChangeCanary, ChangeShare, ChangeEnd}, told[5:])
		assert.ErrorIs(t, b.Swap(ctx, natively("random")), ErrClosed)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it hangs")
	}
}

// However many change a balancer at once, the handler hears of one change at a time, in their order.
func TestChangesAreToldOneAtATime(t *testing.T) {
	var busy, heard atomic.Int64
	last := uint64(1)
	b := nativeOf(t, "random seed=1", WithChangeHandler(func(c Change) {
		assert.EqualValues(t, 1, busy.Add(1))
		assert.Greater(t, c.Generation, last)
		last = c.Generation
		heard.Add(1)
		busy.Add(-1)
	}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				assert.NoError(t, b.Swap(ctx, natively("random seed=1")))
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 160, heard.Load())
}
