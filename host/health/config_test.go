package health

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigRefuses(t *testing.T) {
	check := func(context.Context, string) error { return nil }
	for want, c := range map[string]Config{
		"Panic is 101: give 1 to 100":                       {Panic: 101},
		"WarmUp is -1ns: give 0s to 1h0m0s":                 {WarmUp: -1},
		"Active without Check":                              {Active: &Active{}},
		"Active.Interval is 1ms: give 10ms to 1h0m0s":       {Active: &Active{Check: check, Interval: time.Millisecond}},
		"Active.Confirm is 2s: give 10ms to 1s":             {Active: &Active{Check: check, Interval: time.Second, Confirm: 2 * time.Second}},
		"Active.Timeout is -1s: give 1ms to 1m0s":           {Active: &Active{Check: check, Timeout: -time.Second}},
		"Active.Jitter is 51: give 1 to 50":                 {Active: &Active{Check: check, Jitter: 51}},
		"Active.Healthy is -1: give 1 to 100":               {Active: &Active{Check: check, Healthy: -1}},
		"Active.Unhealthy is 101: give 1 to 100":            {Active: &Active{Check: check, Unhealthy: 101}},
		"Active.Concurrency is 10001: give 1 to 10000":      {Active: &Active{Check: check, Concurrency: 10_001}},
		"Circuit.Consecutive is 1000001: give 1 to 1000000": {Circuit: &Circuit{Consecutive: 1_000_001}},
		"Circuit.Ratio is 101: give 1 to 100":               {Circuit: &Circuit{Ratio: 101}},
		"Circuit.MaxOpen is 1s: give 5s to 24h0m0s":         {Circuit: &Circuit{MaxOpen: time.Second}},
		"Circuit.Trials is -1: give 1 to 1000":              {Circuit: &Circuit{Trials: -1}},
		"Outlier.MinHosts is 2: give 3 to 1000000":          {Outlier: &Outlier{MinHosts: 2}},
		"Outlier.MaxEjected is 101: give 1 to 100":          {Outlier: &Outlier{MaxEjected: 101}},
		"Outlier.MaxTime is 1s: give 30s to 24h0m0s":        {Outlier: &Outlier{MaxTime: time.Second}},
		"SlowStart.Aggression is 5: give 1 to 4":            {SlowStart: &SlowStart{Aggression: 5}},
		"SlowStart.Window is 10ms: give 100ms to 1h0m0s":    {SlowStart: &SlowStart{Window: 10 * time.Millisecond}},
	} {
		_, err := New(c, func([]Verdict) {})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
	}
}

// TestDefaultsHoldTogether fills in everything, leaves the caller's own settings alone, and finds nothing to say
// about the result.
func TestDefaultsHoldTogether(t *testing.T) {
	given := Config{
		Active:  &Active{Check: func(context.Context, string) error { return nil }, Interval: 100 * time.Millisecond},
		Circuit: &Circuit{Consecutive: -1, Open: time.Hour}, Outlier: &Outlier{Time: time.Hour}, SlowStart: &SlowStart{Enough: -1}, Panic: -1,
	}
	c, err := given.filled()
	require.NoError(t, err)
	require.Zero(t, given.Active.Timeout)
	require.Equal(t, 100*time.Millisecond, c.Active.Confirm, "never longer than the interval")
	require.Equal(t, time.Hour, c.Circuit.MaxOpen)
	require.Equal(t, time.Hour, c.Outlier.MaxTime)
	require.Equal(t, []int{0, 0, 0}, []int{c.Panic, c.Circuit.Consecutive, c.SlowStart.Enough}, "negative is off")
}

var settingRow = regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z.]+)` \\| ([^|]+) \\| ([^|]+) \\|")

// TestDocsListTheSettings compares the tables of docs/health.md with the settings: names, defaults and ranges.
func TestDocsListTheSettings(t *testing.T) {
	text, err := os.ReadFile("../../docs/health.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, m := range settingRow.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = m[2] + " | " + m[3]
	}
	c, err := Config{Active: &Active{Check: (&switchboard{}).check}, Circuit: &Circuit{}, Outlier: &Outlier{}, SlowStart: &SlowStart{}}.filled()
	require.NoError(t, err)
	want := map[string]string{}
	for _, f := range append(c.fields(), c.bounded()...) {
		show := func(n int64) string {
			if _, ok := f.value.(*time.Duration); ok {
				return time.Duration(n).String()
			}
			return fmt.Sprint(n)
		}
		want[f.name] = fmt.Sprintf("%s | %s to %s", show(f.unset), show(f.least), show(f.most))
		if f.negative {
			want[f.name] += ", or negative for never"
		}
	}
	require.Equal(t, want, documented)
}
