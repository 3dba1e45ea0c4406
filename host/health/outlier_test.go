package health

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

func outlierConfig(t require.TestingT, o Outlier) *Outlier {
	filled, err := Config{Outlier: &o}.filled()
	require.NoError(t, err)
	return filled.Outlier
}

// found lists the positions of outliers among success rates in percent.
func found(o *Outlier, percents ...int64) []int {
	rates := make([]rate, len(percents))
	at := map[*endpoint]int{}
	for i, p := range percents {
		rates[i] = rate{&endpoint{}, p * 10_000}
		at[rates[i].endpoint] = i
	}
	out := []int{}
	list, _, _ := o.outliers(rates)
	for _, r := range list {
		out = append(out, at[r.endpoint])
	}
	return out
}

// byDeviation is the usual rule, with the usual factor: success strictly under mean - 1.9 standard deviations.
func byDeviation(percents ...int64) []int {
	mean, sd := 0.0, 0.0
	for _, p := range percents {
		mean += float64(p) / float64(len(percents))
	}
	for _, p := range percents {
		sd += (float64(p) - mean) * (float64(p) - mean) / float64(len(percents))
	}
	out := []int{}
	for i, p := range percents {
		if float64(p) < mean-1.9*math.Sqrt(sd) {
			out = append(out, i)
		}
	}
	return out
}

func TestOutliers(t *testing.T) {
	o := outlierConfig(t, Outlier{})
	for name, c := range map[string]struct{ rates, want []int64 }{
		"none":                             {[]int64{100, 99, 100, 98, 97}, nil},
		"one":                              {[]int64{100, 100, 20, 100, 100}, []int64{2}},
		"two alike do not hide":            {[]int64{100, 50, 100, 50, 100}, []int64{1, 3}},
		"half of an even number":           {[]int64{100, 50, 100, 50, 100, 50}, []int64{1, 3, 5}},
		"the worst first":                  {[]int64{100, 60, 100, 30, 100}, []int64{3, 1}},
		"within the gap":                   {[]int64{100, 100, 90, 100, 100}, nil},
		"a fleet that varies by itself":    {[]int64{95, 80, 65, 90, 75, 55, 85}, nil},
		"and one that is beyond even that": {[]int64{95, 80, 65, 90, 75, 5, 85}, []int64{5}},
		"all fail alike":                   {[]int64{0, 0, 0, 0, 0}, nil},
		"better is no outlier":             {[]int64{50, 50, 50, 50, 100}, nil},
		"too few to compare":               {[]int64{100, 0, 100, 100}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := []int{}
			for _, i := range c.want {
				want = append(want, int(i))
			}
			require.Equal(t, want, found(o, c.rates...))
		})
	}
	require.Empty(t, byDeviation(100, 50, 100, 50, 100), "the usual rule misses both")
}

// TestEqualOutliersAreFound plants up to half of the fleet with one low rate among rates that vary a little.
func TestEqualOutliersAreFound(t *testing.T) {
	o := outlierConfig(t, Outlier{})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(5, 200).Draw(t, "n")
		bad := rapid.IntRange(1, (n-1)/2).Draw(t, "bad")
		low := rapid.Int64Range(0, 50).Draw(t, "low")
		rates := make([]int64, n)
		for i := range rates {
			if rates[i] = low; i >= bad {
				rates[i] = rapid.Int64Range(97, 100).Draw(t, "rate")
			}
		}
		got := found(o, rates...)
		require.Len(t, got, bad)
		for i := range got {
			require.Equal(t, i, got[i])
		}
	})
}

func TestRoom(t *testing.T) {
	o := outlierConfig(t, Outlier{MaxEjected: 30})
	for n, want := range map[int]int{0: 0, 1: 0, 3: 0, 4: 1, 10: 3, 13: 3, 10_000: 3000} {
		require.Equal(t, want, o.room(n), n)
	}
	o.MaxEjected = 100
	for n, want := range map[int]int{0: 0, 1: 0, 2: 1, 10: 9} {
		require.Equal(t, want, o.room(n), "never the last")
	}
}

func TestEjectionTime(t *testing.T) {
	o := outlierConfig(t, Outlier{Time: 30 * time.Second, MaxTime: 100 * time.Second})
	var e ejection
	out := func() time.Duration {
		e.eject(o, 7, 1, 2)
		return time.Duration(e.until - engine.Instant(7))
	}
	for _, want := range []time.Duration{30, 60, 90, 100, 100, 100} {
		require.Equal(t, want*time.Second, out())
	}
	for range 2 {
		e.forgive()
	}
	require.Equal(t, 90*time.Second, out())
	for range 20 {
		e.forgive()
	}
	require.Equal(t, 30*time.Second, out())
}
