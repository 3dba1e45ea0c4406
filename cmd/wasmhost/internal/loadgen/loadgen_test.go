package loadgen

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPoissonIsAPlan(t *testing.T) {
	work := Work{Mean: 40 * time.Millisecond}
	plan := Poisson(1, 500, 20*time.Second, 20, work)
	require.Equal(t, plan, Poisson(1, 500, 20*time.Second, 20, work), "the same seed gives the same plan")
	require.NotEqual(t, plan, Poisson(2, 500, 20*time.Second, 20, work))

	// A count of 10,000 has a deviation of 100; six of them are a bug, not chance.
	require.InDelta(t, 10_000, len(plan), 600)
	via := map[int]int{}
	var sum, gaps float64
	last := time.Duration(0)
	for _, a := range plan {
		require.GreaterOrEqual(t, a.At, last)
		gap := (a.At - last).Seconds() * 500
		gaps += gap * gap
		last = a.At
		via[a.Via]++
		require.GreaterOrEqual(t, a.Work, 8*time.Millisecond, "a fifth of the mean is fixed")
		sum += a.Work.Seconds()
	}
	require.Len(t, via, 20)
	// The mean work of n draws deviates by 0.8/sqrt(n) of the mean.
	require.InDelta(t, 0.040, sum/float64(len(plan)), 6*0.8*0.040/math.Sqrt(float64(len(plan))))
	// Exponential gaps have a mean square of 2 (uniform ones would have 1): the load is bursty.
	require.InDelta(t, 2, gaps/float64(len(plan)), 0.35)
}

// TestLatencyCountsFromTheIntendedInstant holds up one query and sees the others unharmed, then holds up the
// generator and sees that the delay is charged.
func TestLatencyCountsFromTheIntendedInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := []Arrival{{At: 0}, {At: 10 * time.Millisecond}, {At: 20 * time.Millisecond}}
		var p Progress
		rep := Run(context.Background(), plan, 10, &p, func(_ context.Context, a Arrival) Result {
			if a.At == 0 {
				time.Sleep(time.Second)
			} else {
				time.Sleep(5 * time.Millisecond)
			}
			return OK
		})
		require.EqualValues(t, 3, rep.OK)
		require.EqualValues(t, 3, p.Done.Load())
		require.InDelta(t, 5000, rep.Latency.ValueAtQuantile(50), 10)
		require.InDelta(t, 1e6, rep.Latency.Max(), 1000)
		require.Equal(t, time.Second, rep.Elapsed)
	})
}

func TestEveryQueryIsAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Poisson(3, 100, time.Second, 1, Work{Mean: time.Millisecond})
		var n atomic.Int64
		var p Progress
		rep := Run(context.Background(), plan, 5, &p, func(_ context.Context, _ Arrival) Result {
			res := Result(n.Add(1) % 3)
			time.Sleep(100 * time.Millisecond)
			return res
		})
		require.EqualValues(t, len(plan), rep.Sent)
		require.Equal(t, rep.Sent, rep.OK+rep.Failed+rep.Lost)
		require.Positive(t, rep.Failed)
		require.Greater(t, rep.Lost, rep.Sent/3, "ten are open at this load, five are let")
		require.Equal(t, rep.OK+rep.Failed, rep.Latency.TotalCount(), "a lost query has no latency")

		sum := NewReport()
		sum.Merge(rep)
		sum.Merge(rep)
		require.Equal(t, 2*rep.Latency.TotalCount(), sum.Latency.TotalCount())
		require.Equal(t, 2*rep.Lost, sum.Lost)
	})
}

func TestStopsSendingWhenToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		var p Progress
		rep := Run(ctx, Poisson(4, 100, 10*time.Second, 1, Work{}), 1000, &p, func(context.Context, Arrival) Result { return OK })
		require.InDelta(t, 50, rep.Sent, 45)
		require.Equal(t, rep.Sent, rep.OK)
		require.Equal(t, 500*time.Millisecond, rep.Elapsed)
	})
}
