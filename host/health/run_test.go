package health

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("r%05d", i)
	}
	return out
}

// TestTenThousandReplicas checks a large fleet: all at once at first but within the bound, then evenly, each in its
// time. Found when the first wait was an interval for all.
func TestTenThousandReplicas(t *testing.T) {
	const n, bound = 10_000, 256
	var mu sync.Mutex
	open, most := 0, 0
	last := map[string]time.Time{}
	perSecond := map[int64]int{}
	var gaps []time.Duration
	began := time.Time{}
	check := func(_ context.Context, name string) error {
		mu.Lock()
		now := time.Now()
		if open++; open > most {
			most = open
		}
		if was, ok := last[name]; ok {
			gaps = append(gaps, now.Sub(was))
		}
		last[name] = now
		perSecond[int64(now.Sub(began)/time.Second)]++
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		open--
		mu.Unlock()
		return nil
	}
	running(t, Config{Active: &Active{Check: check}}, func(t *testing.T, f *fleet) {
		began = time.Now()
		f.set(names(n)...)
		pass(40 * time.Millisecond)
		mu.Lock()
		require.Len(t, last, n, "every first check is over at once: 10,000 of 1 ms, 256 at a time")
		mu.Unlock()
		pass(30 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		require.LessOrEqual(t, most, bound)
		for s := int64(1); s < 30; s++ {
			require.InDelta(t, n/5, perSecond[s], n/5*0.25, "second %d", s)
		}
		require.LessOrEqual(t, slices.Max(gaps), 5*time.Second*11/10+10*time.Millisecond)
		require.Zero(t, f.told())
	})
}

// TestSlowChecksKeepTheirPlaces lets every check run into its timeout: there are never more than the bound, and a
// check that waits its turn is not lost.
func TestSlowChecksKeepTheirPlaces(t *testing.T) {
	var mu sync.Mutex
	open, most, done := 0, 0, 0
	check := func(ctx context.Context, _ string) error {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		<-ctx.Done()
		mu.Lock()
		open--
		done++
		mu.Unlock()
		return ctx.Err()
	}
	running(t, Config{Active: &Active{Check: check, Concurrency: 4, Timeout: time.Second}}, func(t *testing.T, f *fleet) {
		f.set(names(20)...)
		pass(3500 * time.Millisecond)
		mu.Lock()
		require.Equal(t, []int{4, 12}, []int{most, done})
		mu.Unlock()
		pass(time.Minute)
		require.EqualValues(t, CauseCheck, f.m.Verdicts()[19].Cause, "all had their turns")
		require.Contains(t, f.m.Verdicts()[0].Reason, "deadline exceeded")
	})
}

// TestRemovalEndsTheCheck takes an endpoint out while its check runs: the check is told, no further one follows, and
// its result is nobody's.
func TestRemovalEndsTheCheck(t *testing.T) {
	var mu sync.Mutex
	began, ended := map[string]int{}, map[string]int{}
	read := func(m map[string]int, name string) int {
		mu.Lock()
		defer mu.Unlock()
		return m[name]
	}
	check := func(ctx context.Context, name string) error {
		mu.Lock()
		began[name]++
		mu.Unlock()
		if name == "b" {
			<-ctx.Done()
		}
		mu.Lock()
		ended[name]++
		mu.Unlock()
		return ctx.Err()
	}
	running(t, Config{Active: &Active{Check: check, Timeout: time.Minute, Unhealthy: 1}}, func(t *testing.T, f *fleet) {
		f.set("a", "b")
		pass(time.Second)
		require.Zero(t, read(ended, "b"))
		f.set("a")
		synctest.Wait()
		require.Equal(t, 1, read(ended, "b"), "at once")
		pass(10 * time.Minute)
		require.Equal(t, 1, read(began, "b"))
		require.Greater(t, read(began, "a"), 100)
		f.set("a", "b")
		synctest.Wait()
		require.Equal(t, 2, read(began, "b"), "a new life begins with a check")
		require.EqualValues(t, 0, f.m.Counts().Failed)
	})
}

// TestStoppingIsNoFailure ends a monitor while checks run and wait, and starts it again.
func TestStoppingIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checked := map[string]int{}
		var mu sync.Mutex
		hang := true
		f := newFleet(t, Config{Active: &Active{Concurrency: 1, Unhealthy: 1, Check: func(ctx context.Context, name string) error {
			mu.Lock()
			checked[name]++
			wait := hang
			mu.Unlock()
			if wait {
				<-ctx.Done()
			}
			return ctx.Err()
		}}})
		f.set("a", "b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.m.Run(ctx) }()
		synctest.Wait()
		cancel()
		<-ended
		require.Equal(t, map[string]int{"a": 1}, checked)
		require.Equal(t, "abc", f.ready("a", "b", "c"))
		mu.Lock()
		hang = false
		mu.Unlock()
		ctx, cancel = context.WithCancel(t.Context())
		go func() { ended <- f.m.Run(ctx) }()
		pass(time.Second)
		require.Equal(t, map[string]int{"a": 2, "b": 1, "c": 1}, checked)
		cancel()
		<-ended
	})
}

// TestStoppingTellsWhatIsKnown opens a circuit and stops the monitor while it is busy telling of another: whichever it
// notices first, the verdict is told before Run returns.
func TestStoppingTellsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			f := &fleet{t: t}
			entered, release := make(chan struct{}), make(chan struct{})
			busy := sync.OnceFunc(func() { close(entered); <-release })
			m, err := New(Config{Circuit: &Circuit{}}, func(vs []Verdict) { busy(); f.apply(vs) })
			require.NoError(t, err)
			f.m = m
			f.set("a", "b", "c", "d")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- f.m.Run(ctx) }()
			synctest.Wait()
			for range 5 {
				f.query("a", engine.OutcomeFailure)
			}
			<-entered
			for range 5 {
				f.query("b", engine.OutcomeFailure)
			}
			cancel()
			close(release)
			<-ended
			require.Equal(t, "cd", f.ready("a", "b", "c", "d"))
		}
	})
}
