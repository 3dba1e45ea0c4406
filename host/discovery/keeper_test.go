package discovery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

const (
	ready       = engine.StatusReady
	draining    = engine.StatusDraining
	unavailable = engine.StatusUnavailable
)

type statuses = map[string]engine.Status

var quiet = slog.New(slog.DiscardHandler)

func update(t *testing.T, k *discovery.Keeper, names ...string) {
	t.Helper()
	require.NoError(t, k.Update(discovery.Snapshot{Endpoints: fleet(names...)}))
}

func TestDrainBeforeRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &double{t: t}
		k := discovery.NewKeeper(b, discovery.Config{Log: quiet})
		update(t, k, "a", "b", "c")
		require.Equal(t, statuses{"a": ready, "b": ready, "c": ready}, b.has())
		update(t, k, "a")
		require.Equal(t, statuses{"a": ready, "b": draining, "c": draining}, b.has())
		time.Sleep(20 * time.Second)
		update(t, k, "a", "b")
		require.Equal(t, statuses{"a": ready, "b": ready, "c": draining}, b.has(), "b came back")
		update(t, k, "a")
		time.Sleep(10*time.Second - 1)
		synctest.Wait()
		require.Equal(t, statuses{"a": ready, "b": draining, "c": draining}, b.has())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, statuses{"a": ready, "b": draining}, b.has(), "b drains anew")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, statuses{"a": ready}, b.has())
		calls := b.told()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, calls, b.told())
		s := k.Stats()
		require.EqualValues(t, []uint64{3, 3, 1, 2}, []uint64{s.Added, s.Vanished, s.Returned, s.Removed})
	})
}

// TestTheFirstSnapshotIsAChangeOfWhatServes: what the balancer had before is not news.
func TestTheFirstSnapshotIsAChangeOfWhatServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		b := &double{t: t}
		k := discovery.NewKeeper(b, discovery.Config{Log: slog.New(slog.NewTextHandler(&text, nil)), Serving: fleet("a", "b")})
		update(t, k, "a")
		require.Equal(t, statuses{"a": ready, "b": draining}, b.has())
		require.Equal(t, 1, strings.Count(text.String(), "endpoints changed"))
		require.Contains(t, text.String(), "vanished_names=[b]")
		require.Zero(t, k.Stats().Added)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, statuses{"a": ready}, b.has())
	})
}

// TestDrainEndsWhenIdle removes an endpoint when its last query has ended, at the second look, and not before.
func TestDrainEndsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &double{t: t}
		var ofA, ofB atomic.Int64
		ofB.Store(1)
		k := discovery.NewKeeper(b, discovery.Config{Log: quiet, InFlight: func(name string) int64 {
			switch name {
			case "a":
				return ofA.Load()
			case "b":
				return ofB.Load()
			}
			return 0
		}})
		update(t, k, "a", "b", "c")
		update(t, k, "a")
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		require.Contains(t, b.has(), "c", "a query may have been placed and not be counted yet")
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, statuses{"a": ready, "b": draining}, b.has())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Contains(t, b.has(), "b")
		ofB.Store(0)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, statuses{"a": ready}, b.has())

		ofA.Store(1)
		update(t, k, "d")
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		require.Contains(t, b.has(), "a")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.NotContains(t, b.has(), "a", "the grace is the most")
	})
}

// said is a log that may be read while a keeper writes on.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestEmptyIsNotBelievedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log said
		b := &double{t: t}
		k := discovery.NewKeeper(b, discovery.Config{HoldEmpty: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
		update(t, k)
		require.Equal(t, 1, b.told(), "there was nothing to protect")
		update(t, k, "a", "b")
		update(t, k)
		require.Equal(t, statuses{"a": ready, "b": ready}, b.has())
		require.True(t, k.Stats().Holding)
		require.Contains(t, log.String(), "the source has no endpoints; the last ones go on serving")
		time.Sleep(59 * time.Second)
		update(t, k, "b")
		require.False(t, k.Stats().Holding)
		time.Sleep(50 * time.Second)
		synctest.Wait()
		require.Equal(t, statuses{"b": ready}, b.has())

		update(t, k)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, statuses{"b": draining}, b.has(), "it is believed in the end")
		require.Contains(t, log.String(), "its word is taken")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Empty(t, b.has())
		require.EqualValues(t, 2, k.Stats().HeldEmpty)

		// With permission it is believed at once, and removal may be at once too.
		k = discovery.NewKeeper(b, discovery.Config{HoldEmpty: -1, Drain: -1, Log: quiet})
		update(t, k, "a")
		update(t, k)
		require.Empty(t, b.has())
	})
}

func TestRefusedSnapshots(t *testing.T) {
	b := &double{t: t}
	k := discovery.NewKeeper(b, discovery.Config{Most: 3, Log: quiet})
	update(t, k, "a", "b")
	for _, c := range []struct {
		eps  []host.Endpoint
		is   error
		says string
	}{
		{append(fleet("a"), host.Endpoint{Name: "a", Addr: "x"}), engine.ErrDuplicateID, `duplicate endpoint: "a" stands twice, with addresses "http://a" and "x"`},
		{append(fleet("a"), host.Endpoint{Addr: "x"}), host.ErrEndpoint, `endpoint 1, with address "x", has no name`},
		{fleet("a", "b", "c", "d"), engine.ErrCapacity, "capacity exceeded: 4 endpoints, at most 3"},
	} {
		err := k.Update(discovery.Snapshot{Revision: 9, Endpoints: c.eps})
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, statuses{"a": ready, "b": ready}, b.has())
	}
	no := errors.New("the policy will not have it")
	b.refuses(func([]host.Endpoint) error { return no })
	require.ErrorIs(t, k.Update(discovery.Snapshot{Revision: 9, Endpoints: fleet("c")}), no)
	require.ErrorIs(t, k.SetStatus("a", unavailable), no)
	b.refuses(nil)
	require.Equal(t, uint64(4), k.Stats().Refused)
	require.Zero(t, k.Stats().Revision)
	update(t, k, "b")
	require.Equal(t, statuses{"a": draining, "b": ready}, b.has(), "nothing of what was refused is left")
}

// TestDrainingGivesWay bounds what drains, by the cap and by what the policy takes.
func TestDrainingGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &double{t: t}
		k := discovery.NewKeeper(b, discovery.Config{Most: 3, Log: quiet})
		update(t, k, "a", "b")
		time.Sleep(time.Second)
		update(t, k, "b", "c")
		time.Sleep(time.Second)
		update(t, k, "c", "d")
		require.Equal(t, statuses{"b": draining, "c": ready, "d": ready}, b.has(), "a vanished first")
		b.refuses(func(eps []host.Endpoint) error {
			if len(eps) > 2 {
				return errors.New("too many")
			}
			return nil
		})
		update(t, k, "e", "f")
		require.Equal(t, statuses{"e": ready, "f": ready}, b.has())
	})
}

// TestRemovalIsTriedAgain lets a balancer refuse to lose an endpoint.
func TestRemovalIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &double{t: t}
		k := discovery.NewKeeper(b, discovery.Config{Log: quiet})
		update(t, k, "a", "b")
		update(t, k, "a")
		b.refuses(func([]host.Endpoint) error { return errors.New("no") })
		time.Sleep(31 * time.Second)
		synctest.Wait()
		require.Contains(t, b.has(), "b")
		b.refuses(nil)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, statuses{"a": ready}, b.has())
	})
}

// TestStatusSurvivesSnapshots drains by hand, as an operator or a health checker does.
func TestStatusSurvivesSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &double{t: t}
		k := discovery.NewKeeper(b, discovery.Config{Log: quiet})
		update(t, k, "a", "b")
		require.NoError(t, k.SetStatus("a", unavailable))
		update(t, k, "a", "b", "c")
		require.Equal(t, statuses{"a": unavailable, "b": ready, "c": ready}, b.has())
		update(t, k, "c")
		require.NoError(t, k.SetStatus("b", ready))
		require.Equal(t, statuses{"a": unavailable, "b": draining, "c": ready}, b.has(), "what vanished gets no queries")
		update(t, k, "a", "c")
		require.Equal(t, unavailable, b.has()["a"])
		require.NoError(t, k.SetStatus("a", ready))
		require.Equal(t, ready, b.has()["a"])
		require.NoError(t, k.SetStatus("a", draining))
		require.ErrorIs(t, k.SetStatus("a", 3), engine.ErrConfig)
		require.ErrorIs(t, k.SetStatus("x", ready), engine.ErrUnknownID)
		update(t, k, "c")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		update(t, k, "a", "c")
		require.Equal(t, ready, b.has()["a"], "it was removed: this is another")
	})
}

func TestFollowLogsChangesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := &double{t: t}
		k := discovery.NewKeeper(b, discovery.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var many []string
		for i := range 20 {
			many = append(many, fmt.Sprintf("r%02d", i))
		}
		looks := make(chan func(*discovery.Changes))
		go func() { ended <- k.Follow(ctx, script(looks)) }()
		looks <- func(c *discovery.Changes) { c.Tell(fleet(many...), nil) }
		for range 5 {
			looks <- func(c *discovery.Changes) { c.Fail(errors.New("no answer")) }
		}
		looks <- func(c *discovery.Changes) { c.Fail(errors.New("refused")) }
		looks <- func(c *discovery.Changes) { c.Tell(fleet(many...), nil) }
		looks <- func(c *discovery.Changes) { c.Tell(fleet(many[:19]...), nil) }
		synctest.Wait()
		said := func(what string) int { return strings.Count(log.String(), what) }
		require.Equal(t, 2, said("endpoints changed"))
		require.Equal(t, 1, said("added=20"))
		require.Equal(t, 1, said("r07 …]"))
		require.Equal(t, 1, said("vanished=1 vanished_names=[r19]"))
		require.Equal(t, 2, said("in trouble"))
		require.Equal(t, 1, said("can be read again"))
		s := k.Stats()
		require.EqualValues(t, 6, s.Failures)
		require.NoError(t, s.Failing)
		require.Equal(t, time.Now(), s.Looked)
		require.EqualValues(t, 2, s.Revision)
		require.Equal(t, []int{19, 1}, []int{s.Endpoints, s.Draining})
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Contains(t, b.has(), "r19", "nothing is changed after the end")
	})
}

// script is a source that does what it is told.
type script chan func(*discovery.Changes)

func (s script) Watch(ctx context.Context, sink discovery.Sink) error {
	changes := discovery.NewChanges(sink, "script")
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case look := <-s:
			look(changes)
		}
	}
}

// TestStateOutlivesChurn is over a real balancer: what it knows of an endpoint stays when the list is put in another
// order, and when the endpoint vanishes and comes back. S13.
func TestStateOutlivesChurn(t *testing.T) {
	b, err := host.NewNativeBalancer(policy.Parse, "prequal seed=7 max_age=1m")
	require.NoError(t, err)
	k := discovery.NewKeeper(b, discovery.Config{Log: quiet})
	update(t, k, "a", "b", "c")
	require.NoError(t, b.Record("b", engine.Reading{RIF: 3, Latency: 5}))
	held := func() bool {
		for _, e := range b.Entries() {
			if e.Endpoint == "b" && e.RIF == 3 {
				return true
			}
		}
		return false
	}
	require.True(t, held())
	update(t, k, "c", "b", "0", "a")
	require.True(t, held())
	update(t, k, "c", "a")
	for range 50 {
		p, err := b.Decide(t.Context(), host.Query{})
		require.NoError(t, err)
		require.NotEqual(t, "b", p.Endpoint.Name)
		p.Done(engine.OutcomeSuccess)
	}
	require.NoError(t, b.Record("b", engine.Reading{RIF: 3, Latency: 5}))
	update(t, k, "c", "a", "b")
	require.True(t, held())
}
