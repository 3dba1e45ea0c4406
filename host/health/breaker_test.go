package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

const second = engine.Instant(time.Second)

func circuitConfig(t require.TestingT, c Circuit) *Circuit {
	filled, err := Config{Circuit: &c}.filled()
	require.NoError(t, err)
	return filled.Circuit
}

// query admits a query and reports its outcome at once.
func query(t *testing.T, b *breaker, cfg *Circuit, at engine.Instant, o engine.Outcome, d *dice) {
	t.Helper()
	require.True(t, b.admit(cfg, at))
	b.report(cfg, at, b.epoch, o, d)
}

func TestConsecutiveFailuresOpen(t *testing.T) {
	cfg, d := circuitConfig(t, Circuit{Ratio: -1}), newDice(1, "a", 0)
	b := breaker{epoch: 1}
	for range 100 {
		for range 4 {
			query(t, &b, cfg, 0, engine.OutcomeFailure, &d)
			query(t, &b, cfg, 0, engine.OutcomeCancelled, &d)
			query(t, &b, cfg, 0, engine.OutcomeOverloaded, &d)
		}
		query(t, &b, cfg, 0, engine.OutcomeSuccess, &d)
	}
	require.Equal(t, closed, b.phase, "never five in a row")
	for range 5 {
		query(t, &b, cfg, 0, engine.OutcomeFailure, &d)
	}
	require.Equal(t, open, b.phase)
	require.Equal(t, reason{row: 5}, b.why)
	require.False(t, b.admit(cfg, b.until-1))
	require.True(t, b.admit(cfg, b.until), "its time is over")
	require.Equal(t, halfOpen, b.phase)
	require.False(t, b.admit(cfg, b.until), "one trial at a time")
	b.report(cfg, b.until, b.epoch, engine.OutcomeOverloaded, &d)
	require.Zero(t, b.passed, "a refusal for load decides nothing")
	for range 2 {
		query(t, &b, cfg, b.until, engine.OutcomeSuccess, &d)
	}
	require.Equal(t, closed, b.phase)
}

// TestRatioOpens compares the sliding window with a list of all queries. Found when a span was not cleared on its
// second turn, and when the volume was compared with failures.
func TestRatioOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := circuitConfig(t, Circuit{Consecutive: -1, Window: time.Second, Volume: rapid.IntRange(1, 30).Draw(t, "volume")})
		d, b := newDice(1, "a", 0), breaker{epoch: 1}
		const span = 100 * time.Millisecond
		type seen struct {
			span   int64
			failed bool
		}
		var list []seen
		at := engine.Instant(0)
		for range rapid.IntRange(1, 200).Draw(t, "queries") {
			at += engine.Instant(rapid.OneOf(rapid.Int64Range(0, int64(50*time.Millisecond)), rapid.Int64Range(0, int64(3*time.Second))).Draw(t, "gap"))
			failed := rapid.Bool().Draw(t, "failed")
			list = append(list, seen{int64(at) / int64(span), failed})
			o := engine.OutcomeSuccess
			if failed {
				o = engine.OutcomeFailure
			}
			b.report(cfg, at, b.epoch, o, &d)
			all, bad := 0, 0
			for _, s := range list {
				if s.span > int64(at)/int64(span)-spans {
					all++
					if s.failed {
						bad++
					}
				}
			}
			want := failed && all >= cfg.Volume && 2*bad >= all
			require.Equal(t, want, b.phase == open, "%d of %d failed", bad, all)
			if want {
				require.Equal(t, reason{failed: bad, all: all}, b.why)
				return
			}
		}
	})
}

// TestStalePermitsChangeNothing walks a circuit at random, keeps every permit, and reports old ones in between.
// The periods are counted here, by phase. Found when closing began no epoch.
func TestStalePermitsChangeNothing(t *testing.T) {
	reached := map[phase]int{}
	rapid.Check(t, func(t *rapid.T) {
		cfg := circuitConfig(t, Circuit{
			Consecutive: 2, Volume: 4, Trials: rapid.IntRange(1, 3).Draw(t, "trials"), Successes: rapid.IntRange(1, 3).Draw(t, "successes"),
		})
		d, b := newDice(1, "a", 0), breaker{epoch: 1}
		at := engine.Instant(0)
		type permit struct {
			epoch  uint32
			period int
		}
		var permits []permit
		period := 0
		moved := func(was breaker) {
			if b.phase != was.phase || b.phase == halfOpen && b.epoch != was.epoch {
				period++
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			at += engine.Instant(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "gap"))
			if rapid.Bool().Draw(t, "admit") {
				was := b
				ok := b.admit(cfg, at)
				if moved(was); ok {
					permits = append(permits, permit{b.epoch, period})
				}
			} else if len(permits) > 0 {
				i := rapid.IntRange(0, len(permits)-1).Draw(t, "which")
				o := engine.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome"))
				was, wasDice := b, d
				changed := b.report(cfg, at, permits[i].epoch, o, &d)
				if permits[i].period != period {
					require.Equal(t, was, b)
					require.Equal(t, wasDice, d)
					require.False(t, changed)
				}
				moved(was)
				permits = append(permits[:i], permits[i+1:]...)
			}
			open := 0
			for _, p := range permits {
				if p.period == period {
					open++
				}
			}
			if b.phase == halfOpen {
				require.Equal(t, open, b.trials)
				require.LessOrEqual(t, b.trials, cfg.Trials)
			}
			reached[b.phase]++
		}
	})
	require.Len(t, reached, 3, "the walk meets every phase: %v", reached)
}

// TestBackOff opens a circuit again and again: twice as long each time up to the most, less by jitter only, and back
// by one doubling for each while of good behaviour.
func TestBackOff(t *testing.T) {
	cfg := circuitConfig(t, Circuit{Consecutive: 1, Successes: 1, Open: time.Second, MaxOpen: 10 * time.Second, Forgive: time.Minute})
	for seed := range uint64(50) {
		d, b := newDice(seed, "a", 0), breaker{epoch: 1}
		at := engine.Instant(0)
		fails := func(want time.Duration) {
			query(t, &b, cfg, at, engine.OutcomeFailure, &d)
			require.Equal(t, open, b.phase)
			require.LessOrEqual(t, time.Duration(b.until-at), want)
			require.GreaterOrEqual(t, time.Duration(b.until-at), want*9/10)
			at = b.until
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
			fails(want * time.Second)
		}
		query(t, &b, cfg, at, engine.OutcomeSuccess, &d)
		require.Equal(t, closed, b.phase)
		at += 30 * second
		fails(10 * time.Second) // half a minute undoes nothing
		query(t, &b, cfg, at, engine.OutcomeSuccess, &d)
		at += 120 * second
		fails(4 * time.Second) // two of the four doublings are undone
		query(t, &b, cfg, at, engine.OutcomeSuccess, &d)
		at += 3600 * second
		fails(time.Second)
	}
}

// TestTrialsThatNeverEnd leaves a trial query open for ever: the circuit does not wait for it.
func TestTrialsThatNeverEnd(t *testing.T) {
	cfg, d := circuitConfig(t, Circuit{Consecutive: 1, Successes: 1}), newDice(1, "a", 0)
	b := breaker{epoch: 1}
	query(t, &b, cfg, 0, engine.OutcomeFailure, &d)
	at := b.until
	require.True(t, b.admit(cfg, at))
	stream := b.epoch
	require.Equal(t, at+5*second, b.due(cfg))
	require.False(t, b.admit(cfg, at+5*second-1))
	require.True(t, b.admit(cfg, at+5*second))
	b.report(cfg, at+6*second, stream, engine.OutcomeFailure, &d)
	require.Equal(t, halfOpen, b.phase, "the stream's end comes too late to count")
	b.report(cfg, at+6*second, b.epoch, engine.OutcomeSuccess, &d)
	require.Equal(t, closed, b.phase)
}
