package health

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

var errDown = errors.New("refused")

func activeConfig(t require.TestingT, change func(*Active)) *Active {
	a := Active{Check: func(context.Context, string) error { return nil }}
	if change != nil {
		change(&a)
	}
	c, err := Config{Active: &a}.filled()
	require.NoError(t, err)
	return c.Active
}

// TestThresholds feeds results, p for passed and f for failed, and reads what is believed after each.
func TestThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		unproven      bool
		results, want string
	}{
		"three in a row take it out":           {false, "pffpfff", "UUUUUUD"},
		"two in a row bring it back":           {false, "pfffpfpp", "UUUDDDDU"},
		"its first pass ever suffices":         {false, "fffp", "UUDU"},
		"unproven until it passes":             {true, "fp", "DU"},
		"unproven and failing":                 {true, "fffffp", "DDDDDU"},
		"proved, the threshold holds again":    {true, "pfffpp", "UUUDDU"},
		"a pass in between begins a new count": {false, "ffpffpfff", "UUUUUUUUD"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := activeConfig(t, func(a *Active) { a.Unproven = c.unproven })
			s, d := newChecks(cfg, 0), newDice(1, "a", 1)
			for i, r := range c.results {
				was := s.up
				turned := s.result(cfg, engine.Instant(i), map[rune]error{'p': nil, 'f': errDown}[r], &d)
				require.Equal(t, map[bool]byte{true: 'U', false: 'D'}[s.up], c.want[i], "after %s", c.results[:i+1])
				require.Equal(t, was != s.up, turned)
			}
		})
	}
}

// TestCheckTimes holds every wait to its bounds: an interval or a confirmation, jitter included, the first one
// anywhere within the interval. Found when the first wait was an interval like others, and when suspicion knew no
// bound.
func TestCheckTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := activeConfig(t, func(a *Active) {
			a.Interval = time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "interval"))
			a.Jitter = rapid.IntRange(1, 50).Draw(t, "jitter")
		})
		s, d := newChecks(cfg, 0), newDice(rapid.Uint64().Draw(t, "seed"), "a", 1)
		require.Zero(t, s.next, "the first check is due at once")
		at := engine.Instant(0)
		for i, ok := range rapid.SliceOfN(rapid.Bool(), 1, 20).Draw(t, "passed") {
			var err error
			if !ok {
				err = errDown
			}
			s.result(cfg, at, err, &d)
			wait, span := engine.Duration(s.next-at), engine.Duration(cfg.Interval)
			if s.streak > 0 {
				span = engine.Duration(cfg.Confirm)
			} else if i == 0 {
				require.LessOrEqual(t, wait, span)
				require.GreaterOrEqual(t, wait, engine.Duration(0))
				at = s.next
				continue
			}
			side := span / 100 * engine.Duration(cfg.Jitter)
			require.LessOrEqual(t, wait, span+side)
			require.GreaterOrEqual(t, wait, span-side)

			hasty := s
			hasty.hasten(at)
			require.Equal(t, min(s.next, after(at, cfg.Confirm)), hasty.next, "not sooner than a confirmation")
			at = s.next
		}
	})
}

// TestJitterUsesItsRange draws often enough to see both ends: a jitter that is always nought is within bounds too.
func TestJitterUsesItsRange(t *testing.T) {
	d := newDice(3, "a", 0)
	low, high := engine.Duration(1<<62), engine.Duration(0)
	for range 1000 {
		v := d.around(1000, 10)
		low, high = min(low, v), max(high, v)
	}
	require.Equal(t, []engine.Duration{900, 1100}, []engine.Duration{low, high})
	require.NotEqual(t, newDice(3, "b", 0), d)
}
