package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/test/guestbuild"
)

// specs are what parity is checked for: every policy, and Prequal in settings that reach all
// of its branches.
func specs() (all []string) {
	for _, name := range policy.Names() {
		all = append(all, name+" seed=7")
	}
	return append(all,
		"power_of_two seed=3 choices=4",
		"prequal seed=1 pool=4 quantile=0.3 max_age=20us window=16",
		"prequal seed=2 pool=40 quantile=0 remove_rate=0.25 probe_rate=1.4142",
		"prequal seed=3 quantile=1 remove_rate=0 reuse=2.5 idle=5us",
		"prequal seed=4 pool=17 min_pool=5 aversion=off window_age=3us",
	)
}

// walker makes the same traffic for two machines from one seed.
type walker struct {
	x     uint64
	now   engine.Instant
	cs    []engine.Candidate
	fleet int
}

func (w *walker) next(n int) int {
	w.x = w.x*6364136223846793005 + 1442695040888963407
	return int((w.x >> 33) % uint64(n))
}

func (w *walker) redraw() {
	w.fleet = 1 + w.next(60)
	w.cs = w.cs[:0]
	for i := range w.fleet {
		if w.next(8) > 0 {
			w.cs = append(w.cs, engine.Candidate{
				ID: engine.IDOf(fmt.Sprint("replica-", i)), Weight: engine.Weight(w.next(4)),
				Status: engine.Status(w.next(12) / 10),
			})
		}
	}
	for i := range w.cs {
		j := w.next(len(w.cs))
		w.cs[i], w.cs[j] = w.cs[j], w.cs[i]
	}
}

func (w *walker) id() engine.ID {
	return engine.IDOf(fmt.Sprint("replica-", w.next(w.fleet+1)))
}

// step makes one call on a machine and says everything that came of it.
func (w *walker) step(m engine.Machine, ids []engine.ID) string {
	w.now += engine.Instant([]int{0, 1, 40, 900, 2500}[w.next(5)])
	switch op := w.next(1000); {
	case op < 450:
		rd := engine.Reading{RIF: uint32(w.next(40)), Latency: engine.Duration(w.next(5000) - 50), Asked: w.now - engine.Instant(w.next(2000))}
		a, err := m.Record(w.now, w.id(), rd)
		return fmt.Sprint("record ", a, err)
	case op < 800:
		q := engine.Query{Now: w.now, Key: engine.Key(w.next(100))}
		for range max(0, w.next(12)-8) {
			q.Tried = append(q.Tried, w.id())
		}
		var d engine.Decision
		err := m.Decide(&q, &d)
		if err != nil {
			return fmt.Sprint("decide ", err)
		}
		return fmt.Sprintf("decide %+v", d)
	case op < 900:
		return fmt.Sprint("report ", m.Report(w.now, engine.Report{
			ID: w.id(), Outcome: engine.Outcome(w.next(4)), Latency: engine.Duration(w.next(9000)),
		}))
	case op < 980:
		due, err := m.Probes(w.now, ids[:0])
		return fmt.Sprint("probes ", due, err)
	case op < 990:
		return fmt.Sprint("status ", m.SetStatus(w.now, w.id(), engine.Status(w.next(4))))
	case op < 994:
		return fmt.Sprint("forget ", m.Forget(w.now, w.id()))
	case op < 998:
		es, err := m.Entries(w.now, nil)
		return fmt.Sprint("entries ", es, err)
	default:
		w.redraw()
		return fmt.Sprint("fleet ", m.SetCandidates(w.now, w.cs))
	}
}

// The module built from the sources at hand and the native engine answer every call alike,
// and their states are the same bytes.
func TestNativeAndGuestAreOne(t *testing.T) {
	ctx := context.Background()
	wasm, err := guestbuild.Build("..", "./wasm")
	require.NoError(t, err)
	r, err := host.NewRuntime(ctx)
	require.NoError(t, err)
	defer r.Close(ctx)
	m, err := r.Load(ctx, wasm)
	require.NoError(t, err)
	calls := 1_000_000
	if testing.Short() {
		calls = 50_000
	}
	all := specs()
	regimes := map[string]int{}
	for _, spec := range all {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		native := engine.New(p, engine.Config{Salt: 5})
		guest, err := m.Instantiate(ctx, spec, 5)
		require.NoError(t, err)
		require.Equal(t, p.Spec(), guest.Spec())
		a, b := &walker{x: 99}, &walker{x: 99}
		a.redraw()
		b.redraw()
		require.NoError(t, native.SetCandidates(0, a.cs))
		require.NoError(t, guest.SetCandidates(0, b.cs))
		var ids [64]engine.ID
		var one, two []byte
		for i := range calls / len(all) {
			want, got := a.step(native, ids[:]), b.step(guest, ids[:])
			if want != got {
				t.Fatalf("%s, call %d:\nnative %s\nguest  %s", spec, i, want, got)
			}
			if i%500 == 0 {
				one, _ = native.Snapshot(one[:0])
				two, err = guest.Snapshot(two[:0])
				require.NoError(t, err)
				require.Equal(t, one, two, "%s, call %d: the blocks differ", spec, i)
				if i%1000 == 0 { // a block goes either way
					require.NoError(t, guest.Restore(one))
					require.NoError(t, native.Restore(two))
				}
			}
		}
		var c engine.Counters
		var f engine.Fit
		require.NoError(t, guest.Inspect(&c, &f))
		regimes["fallback"] += int(c.Fallbacks)
		regimes["decided"] += int(c.Decisions)
		require.NoError(t, guest.Close(ctx))
	}
	t.Logf("%d calls over %d specs; prequal decided %d times, %d of them by fallback", calls, len(all), regimes["decided"], regimes["fallback"])
}
