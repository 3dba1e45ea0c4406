package health

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func TestSlowStart(t *testing.T) {
	running(t, Config{SlowStart: &SlowStart{Window: 20 * time.Second, Enough: 100}, WarmUp: 5 * time.Second}, func(t *testing.T, f *fleet) {
		f.set("a", "b")
		pass(time.Second)
		require.EqualValues(t, Full, f.held("a").Share, "the first set starts as a whole")
		f.set("a", "b", "c", "d")
		require.Equal(t, "ab", f.ready("a", "b", "c", "d"), "they warm up")
		pass(5 * time.Second)
		require.Equal(t, "abcd", f.ready("a", "b", "c", "d"))
		require.EqualValues(t, Full/10, f.held("c").Share)
		was := f.told()
		pass(10 * time.Second)
		require.EqualValues(t, 5500, f.held("c").Share)
		require.Equal(t, was+20, f.told(), "ten steps for each of the two")
		for range 100 {
			f.query("c", engine.OutcomeSuccess)
		}
		synctest.Wait()
		require.EqualValues(t, Full, f.held("c").Share, "it has shown enough")
		require.EqualValues(t, 5500, f.held("d").Share)
		pass(time.Minute)
		require.EqualValues(t, Full, f.held("d").Share)
		require.NoError(t, f.m.SetAdmin("d", engine.StatusDraining))
		require.NoError(t, f.m.SetAdmin("d", engine.StatusReady))
		require.EqualValues(t, Full/10, f.held("d").Share, "back from maintenance")
	})
}

// TestWhoStartsSlowly ramps what comes after the first set, without warming up too, and not the first set when it has
// passed its first checks.
func TestWhoStartsSlowly(t *testing.T) {
	s := &switchboard{}
	running(t, Config{SlowStart: &SlowStart{}, Active: &Active{Check: s.check, Unproven: true}}, func(t *testing.T, f *fleet) {
		f.set("a", "b")
		pass(time.Second)
		require.EqualValues(t, Full, f.held("a").Share)
		f.set("a", "b", "c")
		pass(time.Second)
		require.EqualValues(t, Full/10, f.held("c").Share)
	})
	running(t, Config{SlowStart: &SlowStart{}}, func(t *testing.T, f *fleet) {
		f.set("a")
		f.set("a", "b")
		require.EqualValues(t, Full/10, f.held("b").Share)
		require.EqualValues(t, Full, f.held("a").Share)
	})
}

// TestEjectionsTakeWhatRoomThereIs finds two outliers where one may be out, and one where half are out already.
func TestEjectionsTakeWhatRoomThereIs(t *testing.T) {
	s := &switchboard{}
	traffic := func(f *fleet, names []string, percent map[string]int) {
		for _, n := range names {
			for i := range 200 {
				o := engine.OutcomeSuccess
				if i%100 < percent[n] {
					o = engine.OutcomeFailure
				}
				f.query(n, o)
			}
		}
	}
	all := names(10)
	running(t, Config{Active: &Active{Check: s.check}, Outlier: &Outlier{MaxEjected: 10, MinHosts: 3}}, func(t *testing.T, f *fleet) {
		f.set(all...)
		traffic(f, all, map[string]int{all[3]: 50, all[7]: 70})
		pass(10 * time.Second)
		require.Equal(t, map[Cause]int{CauseOutlier: 1}, f.m.Counts().Out)
		require.Equal(t, CauseOutlier, f.m.Verdicts()[7].Cause, "the worse one")
	})
	running(t, Config{Active: &Active{Check: s.check}, Outlier: &Outlier{MinHosts: 3, Interval: time.Minute}}, func(t *testing.T, f *fleet) {
		f.set(all...)
		s.down(all[:5]...)
		pass(50 * time.Second)
		traffic(f, all, map[string]int{all[7]: 70})
		pass(10 * time.Second)
		require.Equal(t, map[Cause]int{CauseCheck: 5}, f.m.Counts().Out)
		require.False(t, f.m.Counts().Panic)
	})
}

// TestEjectionsGrowAndAreForgiven ejects the same endpoint again and again, and then sees it do well.
func TestEjectionsGrowAndAreForgiven(t *testing.T) {
	all := names(5)
	running(t, Config{Outlier: &Outlier{}}, func(t *testing.T, f *fleet) {
		f.set(all...)
		interval := func(fails bool) time.Duration { // and for how long the first is out then
			for _, n := range all {
				for i := range 100 {
					o := engine.OutcomeSuccess
					if fails && n == all[0] && i%2 == 0 {
						o = engine.OutcomeFailure
					}
					f.query(n, o)
				}
			}
			pass(10 * time.Second)
			began := time.Now()
			for f.ready(all[0]) == "" {
				pass(10 * time.Second)
			}
			return time.Since(began)
		}
		for _, want := range []time.Duration{30, 60, 90, 120} {
			require.Equal(t, want*time.Second, interval(true))
		}
		for range 2 {
			require.Zero(t, interval(false))
		}
		require.Equal(t, 90*time.Second, interval(true), "two good intervals undo two of four")
	})
}

// TestNewcomersAreNoEmergency adds many that never come up to a few that work: there is no panic for them.
func TestNewcomersAreNoEmergency(t *testing.T) {
	s := (&switchboard{}).down("x", "y", "z")
	check := func(ctx context.Context, name string) error {
		time.Sleep(time.Millisecond) // so that none has ended when the set is there
		return s.check(ctx, name)
	}
	running(t, Config{Active: &Active{Check: check, Unproven: true}}, func(t *testing.T, f *fleet) {
		f.set("a", "x")
		require.Equal(t, "ax", f.ready("a", "x"), "nothing is known of any: use all")
		pass(time.Second)
		require.Equal(t, "a", f.ready("a", "x"))
		f.set("a", "b", "y", "z")
		require.Equal(t, "a", f.ready("a", "b", "y", "z"))
		pass(time.Minute)
		require.Equal(t, "ab", f.ready("a", "b", "y", "z"))
		require.Equal(t, CauseCheck, f.m.Verdicts()[2].Cause)
		require.Equal(t, 2, f.m.Counts().Fleet)
	})
}
