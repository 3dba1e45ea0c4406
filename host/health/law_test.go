package health

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// TestLaws walks a monitor at random, by its own clock, and holds what it tells to the laws after every step. Each was
// seen to fail: with the cap rounded up, with ejections kept while the fleet shrinks, with a panic for a
// fleet that operators drained, with an operator overruled by panic, with verdicts told again when only their reason changed.
func TestLaws(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		at := engine.Instant(0)
		cfg := Config{
			Active:    &Active{Check: (&switchboard{}).check, Unproven: rapid.IntRange(0, 3).Draw(t, "unproven") == 0},
			Circuit:   &Circuit{Consecutive: 2, Open: time.Second},
			Outlier:   &Outlier{Requests: 4, MinHosts: 3, Interval: time.Second, MaxEjected: rapid.IntRange(1, 100).Draw(t, "max ejected")},
			SlowStart: &SlowStart{Enough: 10},
			WarmUp:    time.Duration(rapid.IntRange(0, 1).Draw(t, "warm-up")) * time.Second,
			Panic:     rapid.SampledFrom([]int{-1, 1, 50, 100}).Draw(t, "panic"),
		}
		if rapid.Bool().Draw(t, "no circuits") { // else few fail for long enough to be outliers
			cfg.Circuit = nil
		}
		f := newFleet(t, cfg)
		f.m.clock = func() engine.Instant { return at }
		all := names(8)
		set := all[:rapid.IntRange(3, 8).Draw(t, "n")]
		f.set(set...)
		admitted := map[string][]uint64{}
		down := set[0] // mostly the same one: it takes several failures in a row to be out
		some := func() string { return rapid.SampledFrom(set).Draw(t, "name") }
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			at += engine.Instant(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "gap"))
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				set = slices.DeleteFunc(slices.Clone(all), func(string) bool { return rapid.Bool().Draw(t, "out") })
				if len(set) == 0 {
					set = all[:1]
				}
				f.set(set...)
			case 1:
				require.NoError(t, f.m.SetAdmin(some(), engine.Status(rapid.IntRange(0, 2).Draw(t, "status"))))
			case 2, 6: // all are checked
				if rapid.IntRange(0, 4).Draw(t, "another is down") == 0 {
					down = some()
				}
				f.m.mu.Lock()
				for _, e := range f.m.order {
					var err error
					if e.name == down {
						err = errDown
					}
					f.m.record(e, at, err)
					f.m.judge(e, at)
				}
				f.m.settle(at)
				f.m.mu.Unlock()
			case 3, 7, 8: // a burst of queries, two of three failing somewhere
				bad := rapid.SliceOfN(rapid.SampledFrom(set), 0, 3).Draw(t, "bad")
				for i := range 6 {
					for _, n := range set {
						o := engine.OutcomeSuccess
						if i%3 > 0 && slices.Contains(bad, n) {
							o = engine.OutcomeFailure
						}
						f.query(n, o)
					}
				}
			case 9: // an interval with few bad endpoints ends
				f.m.mu.Lock()
				for _, e := range f.m.order {
					e.tally = tally{ok: 10}
				}
				(*f.m.byName.Load())[some()].tally = tally{ok: 1, failed: 9}
				f.m.sweep = at
				f.m.mu.Unlock()
			case 4:
				n := some()
				if p, ok := f.m.Admit(n); ok {
					admitted[n] = append(admitted[n], p)
				}
			case 5:
				n := some()
				for _, p := range admitted[n] {
					f.m.Report(n, p, engine.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome")))
				}
				delete(admitted, n)
			}
			f.m.mu.Lock()
			f.m.advance(at)
			f.m.mu.Unlock()
			laws(t, f, set, met)
		}
	})
	if testing.Short() {
		return // 20 walks are too few to be sure that they meet everything
	}
	for _, what := range []string{"panic", "ejected", "ramp", "trial", "new", "circuit", "check", "operator"} {
		require.Positive(t, met[what], "the walk never meets %s: %v", what, met)
	}
}

func laws(t *rapid.T, f *fleet, set []string, met map[string]int) {
	c := f.m.Counts()
	vs := f.m.Verdicts()
	require.Len(t, vs, len(set))
	usable, fit, ejected, members := 0, 0, 0, 0
	for i, v := range vs {
		require.Equal(t, set[i], v.Name)
		held := f.held(v.Name)
		require.Equal(t, held.Status, v.Status, "what was told is what is")
		require.Equal(t, held.Share, v.Share)
		require.Equal(t, v.Cause == CauseNone, v.Reason == "")
		met[v.Cause.String()]++
		e := (*f.m.byName.Load())[v.Name]
		if v.Cause == CauseOperator {
			require.False(t, v.Status.Eligible(), "an operator is never overruled")
			continue
		}
		usable++
		if e.adds.total > 0 {
			members++
			if e.ejection.out {
				ejected++
				met["ejected"]++
			}
		}
		switch {
		case v.Cause == CauseNone:
			fit++
			require.True(t, v.Status.Eligible())
			require.GreaterOrEqual(t, v.Share, uint32(Full/10))
			if v.Share < Full {
				met["ramp"]++
			}
		case c.Panic:
			require.True(t, v.Status.Eligible(), "panic uses all: %+v", v)
			met["panic"]++
		case v.Cause != CauseTrial:
			require.False(t, v.Status.Eligible(), "%+v", v)
		}
	}
	require.Equal(t, []int{members, fit}, []int{c.Fleet, c.Fit})
	panics := f.m.cfg.Panic > 0 && (fit*100 < f.m.cfg.Panic*members || members == 0 && usable > 0)
	require.Equal(t, panics, c.Panic, "%d of %d fit", fit, members)
	require.LessOrEqual(t, ejected*100, members*f.m.cfg.Outlier.MaxEjected, "the cap, rounded down")
	if members > 0 {
		require.Less(t, ejected, members, "never the last")
	}
}

// TestManyCallers lets 64 goroutines report for one monitor while the set, the operators and the clock go on.
func TestManyCallers(t *testing.T) {
	s := &switchboard{}
	f := newFleet(t, Config{
		Active:  &Active{Check: s.check, Interval: 10 * time.Millisecond},
		Circuit: &Circuit{Open: 10 * time.Millisecond}, Outlier: &Outlier{Interval: 100 * time.Millisecond, Requests: 1, Time: 100 * time.Millisecond}, SlowStart: &SlowStart{Window: 100 * time.Millisecond},
	})
	all := names(8)
	f.set(all...)
	ended := make(chan error)
	go func() { ended <- f.m.Run(t.Context()) }()
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for i := range 2000 {
				o := engine.OutcomeSuccess
				if (i/50)%4 == 0 {
					o = engine.OutcomeFailure
				}
				f.query(all[(g+i)%8], o)
			}
		})
	}
	for i := range 50 {
		s.down(all[i%8])
		f.set(all[:1+i%8]...)
		require.NoError(t, f.m.SetAdmin(all[0], engine.Status(i%3)))
		f.m.Suspect(all[i%8])
		require.NotEmpty(t, f.m.Verdicts())
	}
	wg.Wait()
	s.down()
	require.NoError(t, f.m.SetAdmin(all[0], engine.StatusReady))
	f.set(all...)
	require.Eventually(t, func() bool {
		for _, n := range all {
			f.query(n, engine.OutcomeSuccess)
		}
		c := f.m.Counts()
		return c.Fit == c.Fleet && c.Fleet == 8
	}, time.Minute, 5*time.Millisecond, "all recover: %v", f.m.Verdicts())
	for _, v := range f.m.Verdicts() {
		require.Equal(t, f.held(v.Name).Status, v.Status, fmt.Sprint(v))
	}
}

// TestReportDoesNotAllocate holds the way of a query: an admission and a report cost no memory.
func TestReportDoesNotAllocate(t *testing.T) {
	f := newFleet(t, Config{Circuit: &Circuit{}, Outlier: &Outlier{}, SlowStart: &SlowStart{}})
	f.set(names(100)...)
	for _, o := range []engine.Outcome{engine.OutcomeSuccess, engine.OutcomeFailure, engine.OutcomeOverloaded, engine.OutcomeCancelled} {
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			f.query("r00001", o)
			f.query("r00001", engine.OutcomeSuccess)
		}), o)
	}
}
