package discovery_test

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

// model is a keeper by its law: the balancer has the last good snapshot, and what vanished from it less than a drain
// ago; an empty snapshot is good once it has lasted.
type model struct {
	drain, hold time.Duration
	good        map[string]host.Endpoint
	vanished    map[string]time.Time
	was         map[string]host.Endpoint // what vanished
	empty       time.Time
	held        statuses
}

func (m *model) take(eps map[string]host.Endpoint, at time.Time) {
	for name, ep := range m.good {
		if _, stays := eps[name]; !stays {
			m.vanished[name], m.was[name] = at, ep
		}
	}
	for name := range eps {
		delete(m.vanished, name)
	}
	m.good, m.empty = eps, time.Time{}
}

// pass brings the model to the present.
func (m *model) pass() {
	if at := m.empty.Add(m.hold); !m.empty.IsZero() && !time.Now().Before(at) {
		m.take(map[string]host.Endpoint{}, at)
	}
	for name, at := range m.vanished {
		if time.Since(at) >= m.drain {
			delete(m.vanished, name)
			delete(m.held, name)
		}
	}
}

func (m *model) set() map[string]host.Endpoint {
	out := map[string]host.Endpoint{}
	for name, ep := range m.good {
		ep.Status = max(ep.Status, m.held[name])
		out[name] = ep
	}
	for name := range m.vanished {
		ep := m.was[name]
		ep.Status = max(ep.Status, m.held[name], draining)
		out[name] = ep
	}
	return out
}

// TestKeeperAgainstItsLaw plays snapshots, refusals, statuses and time, and compares after each step.
func TestKeeperAgainstItsLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := map[string]int{}
		// A bubble has no deadline, and rapid asks whatever can have one.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) { playKeeper(t, reached) })
		if testing.Short() {
			t.Log("short: a fifth of the plays, which need not reach everything; the full run does")
			return
		}
		for _, what := range []string{"taken", "empty held", "empty believed", "removed", "returned", "duplicate", "refused", "status held"} {
			require.Positive(t, reached[what], "generated input never reached: %s", what)
		}
	})
}

func playKeeper(t *rapid.T, reached map[string]int) {
	b := &double{t: t}
	m := &model{
		drain: 30 * time.Second, hold: time.Minute,
		good: map[string]host.Endpoint{}, vanished: map[string]time.Time{}, was: map[string]host.Endpoint{}, held: statuses{},
	}
	k := discovery.NewKeeper(b, discovery.Config{Drain: m.drain, HoldEmpty: m.hold, Log: quiet})
	steps := map[string]func(*rapid.T){
		"snapshot": func(t *rapid.T) {
			eps := rapid.SliceOfNDistinct(rapid.Custom(anEndpoint), 0, 4, func(ep host.Endpoint) string { return ep.Name }).Draw(t, "endpoints")
			before := k.Stats().Returned
			require.NoError(t, k.Update(discovery.Snapshot{Endpoints: eps}))
			if len(eps) == 0 && len(m.good) > 0 {
				m.empty = time.Now()
				reached["empty held"]++
				return
			}
			next := map[string]host.Endpoint{}
			for _, ep := range eps {
				next[ep.Name] = ep
			}
			m.take(next, time.Now())
			reached["taken"]++
			reached["returned"] += int(k.Stats().Returned - before)
		},
		"duplicate": func(t *rapid.T) {
			eps := rapid.SliceOfN(rapid.Custom(anEndpoint), 1, 3).Draw(t, "endpoints")
			require.ErrorIs(t, k.Update(discovery.Snapshot{Endpoints: append(eps, eps[0])}), engine.ErrDuplicateID)
			m.empty = time.Time{} // the source has spoken of endpoints again
			reached["duplicate"]++
		},
		"refused": func(t *rapid.T) {
			b.refuses(func([]host.Endpoint) error { return errors.New("no") })
			eps := append(fleet("z"), host.Endpoint{Name: "zz", Weight: rapid.Uint32().Draw(t, "weight")})
			require.Error(t, k.Update(discovery.Snapshot{Endpoints: eps}))
			b.refuses(nil)
			m.empty = time.Time{}
			reached["refused"]++
		},
		"status": func(t *rapid.T) {
			name := anEndpoint(t).Name
			st := engine.Status(rapid.IntRange(0, 2).Draw(t, "held at"))
			_, here := m.set()[name]
			err := k.SetStatus(name, st)
			if !here {
				require.ErrorIs(t, err, engine.ErrUnknownID)
				return
			}
			require.NoError(t, err)
			m.held[name] = st
			reached["status held"]++
		},
		"time": func(t *rapid.T) {
			was, before := m.empty, len(b.has())
			time.Sleep(time.Duration(rapid.SampledFrom([]int{1, 7, 29, 30, 31, 59, 60, 61, 90}).Draw(t, "seconds")) * time.Second)
			synctest.Wait()
			m.pass()
			if !was.IsZero() && m.empty.IsZero() {
				reached["empty believed"]++
			}
			reached["removed"] += before - len(m.set())
		},
		"": func(t *rapid.T) {
			want := m.set()
			have := map[string]host.Endpoint{}
			for _, ep := range b.fleet() {
				have[ep.Name] = ep
			}
			require.True(t, maps.Equal(want, have), "want %v\nhave %v", want, have)
			s := k.Stats()
			require.Equal(t, []int{len(m.good), len(m.vanished)}, []int{s.Endpoints, s.Draining})
			require.Equal(t, !m.empty.IsZero(), s.Holding)
		},
	}
	t.Repeat(steps)
}
