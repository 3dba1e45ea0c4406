package health

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// fleet is what a balancer would hold: the verdicts installed and applied.
type fleet struct {
	t  require.TestingT
	m  *Monitor
	mu sync.Mutex
	// What is held, and how many verdicts were applied.
	verdicts map[string]Verdict
	applied  int
}

func (f *fleet) held(name string) Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.verdicts[name]
}

func (f *fleet) told() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied
}

// install puts a set in place of the present one.
func (f *fleet) install(vs []Verdict) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verdicts = map[string]Verdict{}
	for _, v := range vs {
		f.verdicts[v.Name] = v
	}
	return nil
}

// apply takes changes, and holds the monitor to telling of changes only. It runs under the monitor's lock, so that it
// must not end the goroutine.
func (f *fleet) apply(vs []Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range vs {
		was, ok := f.verdicts[v.Name]
		assert.True(f.t, ok, "%s is not in the set", v.Name)
		assert.False(f.t, was.Status == v.Status && was.Share == v.Share, "%s: nothing changed", v.Name)
		f.verdicts[v.Name] = v
		f.applied++
	}
}

func (f *fleet) set(names ...string) { require.NoError(f.t, f.m.SetEndpoints(names, f.install)) }

// ready lists the endpoints that may have queries, of those named.
func (f *fleet) ready(names ...string) string {
	out := ""
	for _, n := range names {
		if f.held(n).Status.Eligible() {
			out += n
		}
	}
	return out
}

func (f *fleet) query(name string, o engine.Outcome) bool {
	p, ok := f.m.Admit(name)
	if ok {
		f.m.Report(name, p, o)
	}
	return ok
}

func newFleet(t require.TestingT, cfg Config) *fleet {
	f := &fleet{t: t}
	m, err := New(cfg, f.apply)
	require.NoError(t, err)
	f.m = m
	return f
}

// running runs a monitor in a bubble of virtual time, which also finds goroutines that are left.
func running(t *testing.T, cfg Config, test func(t *testing.T, f *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.m.Run(ctx) }()
		synctest.Wait()
		require.ErrorIs(t, f.m.Run(ctx), ErrRuns)
		test(t, f)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// switchboard answers checks by name.
type switchboard struct {
	mu   sync.Mutex
	dead map[string]bool
}

// down says which do not work; all others do.
func (s *switchboard) down(names ...string) *switchboard {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = map[string]bool{}
	for _, n := range names {
		s.dead[n] = true
	}
	return s
}

func (s *switchboard) check(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead[name] {
		return errDown
	}
	return nil
}

func TestChecksTakeOutAndBringBack(t *testing.T) {
	s := &switchboard{}
	running(t, Config{Active: &Active{Check: s.check}}, func(t *testing.T, f *fleet) {
		f.set("a", "b", "c")
		pass(time.Minute)
		require.Zero(t, f.told(), "all is well: nothing is said")
		s.down("b")
		pass(5*time.Second*11/10 + 2*time.Second*11/10)
		require.Equal(t, "ac", f.ready("a", "b", "c"))
		require.Equal(t, CauseCheck, f.held("b").Cause)
		require.Equal(t, "3 checks failed: refused", f.held("b").Reason)
		pass(time.Hour)
		require.Equal(t, 1, f.told())
		s.down()
		pass(5*time.Second*11/10 + time.Second*11/10)
		require.Equal(t, "abc", f.ready("a", "b", "c"))
		require.Equal(t, Verdict{Name: "b"}, f.held("b"))
		require.Equal(t, 2, f.told())
	})
}

// TestSuspicionHastensTheCheck lets a probe fail: the check that finds out comes at once, and the next ones no sooner
// than a confirmation later, however often it is said.
func TestSuspicionHastensTheCheck(t *testing.T) {
	s := &switchboard{}
	running(t, Config{Active: &Active{Check: s.check, Interval: time.Minute, Confirm: time.Second}}, func(t *testing.T, f *fleet) {
		f.set("a", "b")
		pass(10 * time.Minute)
		was := f.m.Counts()
		s.down("b")
		for range 300 {
			f.m.Suspect("b")
			f.m.Suspect("nobody")
			pass(10 * time.Millisecond)
		}
		got := f.m.Counts()
		require.LessOrEqual(t, got.Failed-was.Failed, uint64(4))
		require.Equal(t, "a", f.ready("a", "b"))
	})
}

func TestCircuitOverTime(t *testing.T) {
	running(t, Config{Circuit: &Circuit{Successes: 2}}, func(t *testing.T, f *fleet) {
		f.set("a", "b", "c")
		for range 5 {
			require.True(t, f.query("b", engine.OutcomeFailure))
		}
		synctest.Wait()
		require.Equal(t, "ac", f.ready("a", "b", "c"))
		require.Contains(t, f.held("b").Reason, "5 queries in a row failed")
		require.False(t, f.query("b", engine.OutcomeSuccess))
		pass(5 * time.Second)
		require.Equal(t, "abc", f.ready("a", "b", "c"), "half-open: a trial is free")
		p, ok := f.m.Admit("b")
		require.True(t, ok)
		_, ok = f.m.Admit("b")
		require.False(t, ok)
		synctest.Wait()
		require.Equal(t, "ac", f.ready("a", "b", "c"), "no trial is free")
		f.m.Report("b", p, engine.OutcomeSuccess)
		synctest.Wait()
		require.Equal(t, "abc", f.ready("a", "b", "c"))
		require.Equal(t, "circuit half-open: 1 of 2 trial queries succeeded", f.held("b").Reason)
		require.True(t, f.query("b", engine.OutcomeSuccess))
		synctest.Wait()
		require.Equal(t, CauseNone, f.m.Verdicts()[1].Cause)
		require.EqualValues(t, 1, f.m.Counts().Opened)
	})
}

// TestPassedChecksBringTheTrial opens a circuit for long; the replica comes back and passes its checks: no need to wait.
func TestPassedChecksBringTheTrial(t *testing.T) {
	s := (&switchboard{}).down("b")
	cfg := Config{Active: &Active{Check: s.check}, Circuit: &Circuit{Open: time.Hour}}
	running(t, cfg, func(t *testing.T, f *fleet) {
		f.set("a", "b", "c")
		for range 5 {
			f.query("b", engine.OutcomeFailure)
		}
		pass(10 * time.Second)
		require.Equal(t, CauseCheck, f.m.Verdicts()[1].Cause, "checks are named before the circuit")
		s.down()
		pass(10 * time.Second)
		require.Equal(t, CauseTrial, f.m.Verdicts()[1].Cause)
		require.Equal(t, "abc", f.ready("a", "b", "c"))
	})
}

// TestPrecedence lays one cause over another, the weakest first.
func TestPrecedence(t *testing.T) {
	s := &switchboard{}
	cfg := Config{Panic: -1, Active: &Active{Check: s.check}, Circuit: &Circuit{Open: time.Hour, Ratio: -1}, Outlier: &Outlier{}, WarmUp: time.Hour}
	running(t, cfg, func(t *testing.T, f *fleet) {
		names := []string{"a", "b", "c", "d", "e", "f"}
		f.set(names...)
		cause := func() Cause { return f.m.Verdicts()[1].Cause }
		for _, n := range names {
			for i := range 300 {
				o := engine.OutcomeSuccess
				if n == "b" && i%2 == 0 {
					o = engine.OutcomeFailure
				}
				f.query(n, o)
			}
		}
		pass(10 * time.Second)
		require.Equal(t, CauseOutlier, cause())
		require.Equal(t, "ejected for another 30s: 50.0 % of its queries succeed, of the fleet's 100.0 %", f.held("b").Reason)
		for range 5 {
			f.query("b", engine.OutcomeFailure)
		}
		synctest.Wait()
		require.Equal(t, CauseCircuit, cause())
		s.down("b")
		pass(10 * time.Second)
		require.Equal(t, CauseCheck, cause())
		require.NoError(t, f.m.SetAdmin("b", engine.StatusDraining))
		require.Equal(t, CauseOperator, cause())
		require.Equal(t, engine.StatusDraining, f.held("b").Status)
		require.Equal(t, map[Cause]int{CauseOperator: 1}, f.m.Counts().Out)
		f.set("a", "c", "b", "new")
		require.Equal(t, CauseNew, f.m.Verdicts()[3].Cause)
		require.Contains(t, f.held("new").Reason, "warms up for another 1h")
		require.ErrorIs(t, f.m.SetAdmin("nobody", engine.StatusReady), ErrUnknown)
		require.ErrorIs(t, f.m.SetAdmin("a", engine.StatusUnavailable+1), engine.ErrConfig)
	})
}

// TestPanicRoutes takes down more than half: all are used again but the one that an operator drains, and it ends when
// half are fit. Single endpoints and whole fleets that fail stay in use.
func TestPanicRoutes(t *testing.T) {
	s := &switchboard{}
	running(t, Config{Active: &Active{Check: s.check}, Circuit: &Circuit{}}, func(t *testing.T, f *fleet) {
		names := []string{"a", "b", "c", "d", "e"}
		f.set(names...)
		require.NoError(t, f.m.SetAdmin("e", engine.StatusDraining))
		pass(time.Minute)
		s.down("a", "b")
		pass(10 * time.Second)
		require.Equal(t, "cd", f.ready(names...), "half of four: no panic")
		s.down("a", "b", "c")
		pass(10 * time.Second)
		require.Equal(t, "abcd", f.ready(names...))
		require.True(t, f.held("a").Panic)
		require.Contains(t, f.held("a").Reason, "checks failed")
		require.False(t, f.held("d").Panic, "it is fit")
		require.True(t, f.m.Counts().Panic)
		for range 20 {
			require.True(t, f.query("a", engine.OutcomeFailure), "an open circuit lets everything pass in panic")
		}
		s.down("a", "c")
		pass(10 * time.Second)
		require.Equal(t, "bd", f.ready(names...))
		f.set("a")
		require.Equal(t, "a", f.ready("a"), "one endpoint that fails is better than none")
	})
}

// TestSetKeepsWhatItKnows changes the set around an endpoint whose circuit is open, fails to install one, and takes it
// out and in again. Found when a failed set left its verdicts behind.
func TestSetKeepsWhatItKnows(t *testing.T) {
	running(t, Config{Circuit: &Circuit{Open: time.Hour}}, func(t *testing.T, f *fleet) {
		f.set("a", "b", "c")
		old, _ := f.m.Admit("b")
		for range 5 {
			f.query("b", engine.OutcomeFailure)
		}
		synctest.Wait()
		f.set("x", "b", "a", "y")
		require.Equal(t, "axy", f.ready("a", "b", "x", "y"), "what is known goes along, in the set itself")
		refused := errors.New("refused")
		require.ErrorIs(t, f.m.SetEndpoints([]string{"b", "z"}, func([]Verdict) error { return refused }), refused)
		require.Equal(t, "axy", f.ready("a", "b", "x", "y"))
		require.Len(t, f.m.Verdicts(), 4)
		require.ErrorIs(t, f.m.SetEndpoints([]string{"a", "a"}, f.install), ErrEndpoints)
		require.ErrorIs(t, f.m.SetEndpoints([]string{""}, f.install), ErrEndpoints)
		f.set("a", "x")
		f.set("a", "b", "x")
		require.Equal(t, "abx", f.ready("a", "b", "x"), "forgotten")
		for range 10 {
			f.m.Report("b", old, engine.OutcomeFailure) // of an earlier life
			f.m.Report("nobody", 0, engine.OutcomeFailure)
		}
		synctest.Wait()
		require.Equal(t, "abx", f.ready("a", "b", "x"))
	})
}
