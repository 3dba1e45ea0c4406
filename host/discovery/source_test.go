package discovery_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

// anEndpoint draws from few names and settings, so that equal ones are frequent.
func anEndpoint(t *rapid.T) host.Endpoint {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "name")
	return host.Endpoint{
		Name: name, Addr: name + rapid.SampledFrom([]string{":1", ":2"}).Draw(t, "port"),
		Weight: rapid.Uint32Range(0, 1).Draw(t, "weight"), Priority: rapid.Uint8Range(0, 1).Draw(t, "priority"),
		Status: engine.Status(rapid.IntRange(0, 2).Draw(t, "status")),
	}
}

// TestEqualAnswersAreSilent tells the same endpoints in every order: only what differs from the last is passed on, in
// order and numbered without gaps.
func TestEqualAnswersAreSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sink := &ear{}
		changes := discovery.NewChanges(sink, "here")
		var last []host.Endpoint
		told := 0
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			next := last
			if rapid.Bool().Draw(t, "new") {
				next = rapid.SliceOfN(rapid.Custom(anEndpoint), 0, 4).Draw(t, "endpoints")
			}
			shuffled := rapid.Permutation(next).Draw(t, "order")
			if told == 0 || !assert.ObjectsAreEqual(counted(last), counted(next)) {
				told++
			}
			last = next
			changes.Tell(shuffled, nil)
			require.Len(t, sink.snapshots, told)
			s := sink.snapshots[told-1]
			require.EqualValues(t, told, s.Revision)
			require.ElementsMatch(t, next, s.Endpoints)
			require.IsNonDecreasing(t, names(s.Endpoints))
		}
	})
}

// counted is a multiset.
func counted(eps []host.Endpoint) map[host.Endpoint]int {
	out := map[host.Endpoint]int{}
	for _, ep := range eps {
		out[ep]++
	}
	return out
}

func TestChangesReport(t *testing.T) {
	sink := &ear{}
	changes := discovery.NewChanges(sink, "here")
	odd, bad := errors.New("odd"), errors.New("bad")
	report := func() error { return sink.reports[len(sink.reports)-1] }

	changes.Tell(fleet("a"), nil)
	require.NoError(t, report())
	changes.Fail(bad)
	require.EqualError(t, report(), "here: bad")
	changes.Tell(fleet("a"), odd)
	require.EqualError(t, report(), "here: odd")

	// A refusal is reported until something else is told.
	sink.refuse = bad
	changes.Tell(fleet("b"), nil)
	require.ErrorIs(t, report(), bad)
	changes.Tell(fleet("b"), nil)
	require.ErrorIs(t, report(), bad)
	changes.Fail(nil)
	require.ErrorIs(t, report(), bad)
	sink.refuse = nil
	changes.Tell(fleet("a"), nil)
	require.NoError(t, report())
	require.Len(t, sink.snapshots, 3)
}

// TestASinkMayKeepASnapshot changes what was told, on both sides.
func TestASinkMayKeepASnapshot(t *testing.T) {
	sink := &ear{}
	changes := discovery.NewChanges(sink, "here")
	eps := fleet("b", "a")
	changes.Tell(eps, nil)
	require.Equal(t, "b", eps[0].Name, "the source's own order is left alone")
	eps[0].Name = "x"
	sink.snapshots[0].Endpoints[0].Name = "y"
	require.Equal(t, "b", sink.snapshots[0].Endpoints[1].Name)
	changes.Tell(fleet("a", "b"), nil)
	require.Len(t, sink.snapshots, 1)
}

func TestStatic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &ear{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- discovery.Static(fleet("b", "a")).Watch(ctx, sink) }()
		synctest.Wait()
		n, got, err := sink.heard()
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"a", "b"}, got)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
