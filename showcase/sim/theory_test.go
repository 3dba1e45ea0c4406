package sim

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// one is a single replica of one core with Poisson arrivals and exponential demands.
func one(load int) Scenario {
	sc := Calm()
	sc.Replicas, sc.Clients, sc.Cores, sc.Spare = 1, 1, 1000, 0
	sc.Demand, sc.Load, sc.Network, sc.Deadline = DemandExponential, load, 0, 900*Second
	return sc
}

// M/M/1 under processor sharing: the mean stay is E[S]/(1-rho), and L = lambda W. The stays of
// n queries are correlated over busy periods, so the deviation of their mean is about
// E[T] * sqrt((1+rho)/(1-rho) * 2 / n); the test allows four of them, and a tenth beside.
func TestProcessorSharingMatchesTheory(t *testing.T) {
	for _, load := range []int{3000, 6000, 8000} {
		sc := one(load)
		w := world(t, sc, "random seed=1")
		const span = float64(20_000 * Second)
		require.NoError(t, w.Run(int64(span)))
		r := &w.replicas[0]
		rho := float64(load) / whole
		want := float64(MeanWork) / (1 - rho)
		got := float64(r.stay) / float64(r.finished)
		slack := 4*math.Sqrt((1+rho)/(1-rho)*2/float64(r.finished)) + 0.001
		assert.InEpsilon(t, want, got, slack, "mean stay at load %d", load)

		area, used := r.account(w.now)
		length := float64(area) / span
		lambda := float64(w.Totals.Arrivals) / span
		// Queries still present are all that separates the two sides: at most one part in n/L.
		assert.InEpsilon(t, lambda*got, length, 20*length/float64(r.finished)+1e-4, "Little")
		assert.InEpsilon(t, rho, float64(used)/span, 0.02, "utilisation")
	}
}

const workScale = 60 * Millisecond

func TestDraws(t *testing.T) {
	s := newStream(1, streamDemands, 0)
	const n = 400_000
	var exp, clamped, norm, square float64
	for range n {
		exp += float64(s.exponential(Second))
		x := s.normal(workScale)
		norm += float64(x)
		square += float64(x) * float64(x)
		clamped += float64(max(0, workScale+x))
	}
	assert.InEpsilon(t, float64(Second), exp/n, 0.01)     // deviation 1/sqrt(n) = 0.0016
	assert.InDelta(t, 0, norm/n, 0.01*float64(workScale)) // 0.0016 deviations
	assert.InEpsilon(t, float64(workScale), math.Sqrt(square/n), 0.01)
	assert.InEpsilon(t, float64(MeanWork), clamped/n, 0.01)
}

func TestQuantilesBoundTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Int64Range(0, 100*Second), 1, 200).Draw(t, "latencies")
		var l Latencies
		for _, x := range xs {
			l.Add(x)
		}
		slices.Sort(xs)
		ranks := []uint64{1, 5000, 9900, 10_000}
		for i, got := range l.Quantiles(nil, ranks...) {
			k := max(1, (int(ranks[i])*len(xs)+whole-1)/whole)
			truth := xs[k-1]
			if got < truth || float64(got) > float64(truth)*(1+1.0/64)+1<<unit {
				t.Fatalf("rank %d: %d for %d", ranks[i], got, truth)
			}
		}
	})
}

func TestWindowForgets(t *testing.T) {
	var w Window
	w.Add(0, 3*Second)
	for i := range int64(100) {
		w.Add(Second+i, Millisecond)
	}
	assert.Greater(t, w.Quantiles(2*Second, nil, whole)[0], 2*Second)
	assert.Less(t, w.Quantiles(WindowSpan, nil, whole)[0], 2*Millisecond)
	assert.Zero(t, w.Quantiles(50*Second, nil, whole)[0])
}

// Whatever lanes events take, they come out by instant, and by when they were scheduled.
func TestQueueIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		type entry struct {
			at   int64
			kind uint8
			a    int32
		}
		var want []entry
		now, line, arrivals := int64(0), int64(0), 0
		pop := func() {
			lane, at := q.first()
			k := 0
			for i := range want {
				if want[i].at < want[k].at {
					k = i
				}
			}
			if len(want) == 0 {
				if at != never {
					t.Fatal("the queue must be empty")
				}
				return
			}
			kind, a := q.pop(lane)
			if got := (entry{at, kind, a}); got != want[k] {
				t.Fatalf("%+v came, %+v was due", got, want[k])
			}
			if kind == evArrival {
				arrivals--
			}
			now, want = at, slices.Delete(want, k, k+1)
		}
		for i := range int32(rapid.IntRange(1, 200).Draw(t, "steps")) {
			if rapid.IntRange(0, 2).Draw(t, "do") == 0 {
				pop()
				continue
			}
			e := entry{now + rapid.Int64Range(0, 20).Draw(t, "in"), uint8(rapid.IntRange(0, evSample).Draw(t, "kind")), i}
			switch laneOf[e.kind] {
			case laneArrival:
				if arrivals == 1 {
					continue
				}
				arrivals++
			case laneLine:
				line = max(line, e.at)
				e.at = line
			}
			q.push(e.at, e.kind, e.a)
			want = append(want, e)
		}
		for range len(want) + 1 {
			pop()
		}
	})
}

func TestAlarms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		tm, want := newTimers(n), make([]int64, n)
		for i := range want {
			want[i] = never
		}
		for range 40 {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			want[i] = rapid.Int64Range(0, 9).Draw(t, "at")
			tm.set(int32(i), want[i])
			at, who := tm.first()
			if at != slices.Min(want) || int(who) != slices.Index(want, at) {
				t.Fatalf("%v: first is %d of %d", want, at, who)
			}
		}
	})
}
