package sim

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// law is a figure of queueing theory that a world must come to, and a fault that would spoil it.
type law struct {
	name     string
	scenario func() Scenario
	spec     string
	want     float64
	of       func(w *World, m *Measure) float64
	slack    float64 // what theory leaves open, as a part of want
	batches  int
	batch    int64 // long enough that one batch hardly knows of the last
	plant    func(w *World)
}

// batchMeans measures a law in consecutive spans after a tenth of warm-up. Their means are nearly
// independent, so their spread tells the error of the mean of all.
func (l *law) batchMeans(t *testing.T, plant bool) (mean, deviation float64) {
	n, batch := l.batches, l.batch
	if testing.Short() {
		batch /= 5
	}
	w := world(t, l.scenario(), l.spec)
	if plant {
		l.plant(w)
	}
	warm := batch * int64(n) / 10
	var sum, square float64
	for i := range int64(n) {
		m, err := w.Measure(warm+i*batch, warm+(i+1)*batch)
		require.NoError(t, err)
		require.NoError(t, w.Run(m.To))
		x := l.of(w, m)
		sum, square = sum+x, square+x*x
		w.measures = w.measures[:len(w.measures)-1] // it is read; do not hold all of them
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(max(0, square/float64(n)-mean*mean) / float64(n-1))
}

// TestLaws allows four deviations of the mean, which chance exceeds once in ten thousand, and the
// law's own slack; the deviation must be small enough for that to mean something. And the planted
// fault must not pass.
func TestLaws(t *testing.T) {
	for _, l := range laws() {
		if testing.Short() && l.want < 0.5 {
			continue // these need many replicas, or many queries
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			holds := func(plant bool) (bool, string) {
				mean, dev := l.batchMeans(t, plant)
				if !testing.Short() && !plant {
					assert.Less(t, dev, 0.02*l.want, "too rough to say anything")
				}
				return math.Abs(mean-l.want) <= 4*dev+l.slack*math.Abs(l.want), fmt.Sprintf("%.5g ± %.2g, want %.5g", mean, dev, l.want)
			}
			ok, got := holds(false)
			t.Log(got)
			assert.True(t, ok, got)
			if testing.Short() {
				return
			}
			if ok, got := holds(true); ok {
				t.Errorf("a planted fault passes: %s", got)
			}
		})
	}
}

// oneCore is n replicas of one core each and no network: with all demand at one client, queueing
// theory's own.
func oneCore(n, load int, d Demand) func() Scenario {
	return func() Scenario {
		sc := one(load)
		sc.Replicas, sc.Demand, sc.ReportEvery = n, d, 0
		return sc
	}
}

func stay(_ *World, m *Measure) float64 { return float64(m.Latency.Mean()) / float64(MeanWork) }

func slower(w *World) {
	for i := range w.replicas {
		w.replicas[i].cost += 500 // a twentieth
	}
}

// erlangC is the chance to wait in M/M/c with a busy servers on average.
func erlangC(c int, a float64) float64 {
	b := 1.0 // Erlang B, by its recursion
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b / (1 - a/float64(c)*(1-b))
}

// pooled is the mean stay in M/M/c, in mean demands.
func pooled(c int, rho float64) float64 {
	a := rho * float64(c)
	return 1 + erlangC(c, a)/(float64(c)-a)
}

func laws() []law {
	var out []law
	for _, d := range []struct {
		name string
		d    Demand
		mean float64 // in mean demands
	}{
		// The clamped normal's mean is Work times Phi(1) + phi(1) = 1.08332, against 13/12.
		{"M", DemandExponential, 1}, {"D", DemandFixed, 1}, {"two points", DemandTwo, 1}, {"normal", DemandGauss, 1.08332 / (13.0 / 12)},
	} {
		// Under processor sharing the mean stay is E[S]/(1-rho), whatever the distribution. With
		// at most one core to a query and c of them it is that of M/M/c, for the same reason:
		// both are symmetric queues, whose states depend on the mean demand alone.
		out = append(out, law{
			name: d.name + "/G/1-PS", scenario: oneCore(1, 7000, d.d), spec: "random seed=1",
			want: 1 / (1 - 0.7), of: stay, slack: 0.005, batches: 40, batch: 500 * Second, plant: slower,
		}, law{
			name: d.name + "/G/8-PS", spec: "random seed=1", want: pooled(8, 0.85), of: stay, slack: 0.005, batches: 40, batch: 100 * Second,
			scenario: func() Scenario { sc := one(8500); sc.Cores, sc.Demand = 8000, d.d; return sc }, plant: slower,
		})
	}
	// The power of two choices, with n servers: a part rho^(2^k-1) of them has k queries or more,
	// but for terms in 1/n (Mitzenmacher 1996, Vvedenskaya et al. 1996).
	for k := 1; k <= 3; k++ {
		out = append(out, law{
			name: fmt.Sprintf("power of two, %d or more", k), scenario: oneCore(500, 9000, DemandExponential), spec: "power_of_two seed=1",
			want: math.Pow(0.9, math.Exp2(float64(k))-1),
			of: func(_ *World, m *Measure) float64 {
				return 1 - float64(m.RIF.AtMost(int64(k-1)))/float64(m.RIF.Count())
			},
			slack: 0.01, batches: 10, batch: 12 * Second, plant: slower,
		})
	}
	// Little: the mean number in the fleet is the rate of ends times the mean stay. The plant has
	// queries linger in a network that the law knows to be shorter.
	out = append(out, law{
		name: "Little", scenario: func() Scenario { return small(T1()) }, spec: "least_loaded", want: 1, slack: 0.01, batches: 10, batch: 10 * Second,
		of: func(w *World, m *Measure) float64 {
			in := float64(m.RIF.Sum()) / float64(m.RIF.Count()) * float64(len(w.replicas)) // in the fleet, without the network
			stay := float64(m.Latency.Mean() - 2*100*Microsecond)
			return in / (float64(m.Latency.Count()) / float64(m.To-m.From) * stay)
		},
		plant: func(w *World) { w.sc.Network = 3 * Millisecond },
	})
	// Overload as a fluid: of n queries, each at a rate r, those done have S <= rD, and the fleet
	// does E[min(S, rD)] for each that arrives. For exponential demands that is E[S](1 - e), where
	// e is the share of errors, so that e = 1 - capacity/load.
	for _, load := range []int{12_000, 17_400} {
		out = append(out, law{
			name: fmt.Sprintf("fluid overload at %d", load), spec: "round_robin seed=1", want: 1 - float64(whole)/float64(load), batches: 10, batch: 20 * Second,
			scenario: func() Scenario {
				sc := Calm()
				sc.Replicas, sc.Clients, sc.Spare, sc.Load, sc.Demand = 20, 1, 0, load, DemandExponential
				return sc
			},
			of: func(_ *World, m *Measure) float64 {
				all, bad := m.Ended()
				return float64(bad) / float64(all)
			},
			slack: 0.03, plant: slower,
		})
	}
	return out
}

// Join-the-shortest-queue lies between the pooled queue, which no rule beats, and two choices;
// and these below no choice at all.
func TestShortestQueueIsWithinItsBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an hour of simulated time")
	}
	mean := func(spec string, plant bool) float64 {
		l := law{scenario: oneCore(10, 9000, DemandExponential), spec: spec, of: stay, batches: 10, batch: 400 * Second,
			plant: func(w *World) {
				for i := range w.replicas {
					w.replicas[i].cost = 8000
				}
			}}
		m, _ := l.batchMeans(t, plant)
		return m
	}
	jsq, two, blind := mean("least_loaded", false), mean("power_of_two seed=1", false), mean("random seed=1", false)
	t.Logf("pooled %.3f, shortest %.3f, two choices %.3f, blind %.3f", pooled(10, 0.9), jsq, two, blind)
	assert.Greater(t, jsq, pooled(10, 0.9))
	assert.Less(t, jsq, 0.9*two)
	assert.Less(t, two, 0.6*blind)
	assert.InEpsilon(t, 1/(1-0.9), blind, 0.15)
	assert.Less(t, mean("least_loaded", true), pooled(10, 0.9), "a planted fault must show")
}

// All the work that came was done, is left in queries present, or is on its way: to a nanosecond
// for each step of the clock.
func TestWorkIsConserved(t *testing.T) {
	lost := func(plant bool) float64 {
		sc := small(T1())
		w := world(t, sc, "prequal")
		tape := &Tape{}
		w.Record(tape)
		require.NoError(t, w.Run(5*Second))
		var came, left, done float64
		for _, d := range tape.Dots {
			if d.Kind < KindError {
				came += float64(d.Work * w.replicas[d.Replica].cost / whole)
			}
		}
		for i := range w.replicas {
			r := &w.replicas[i]
			r.advance(w.now)
			done += float64(r.used)
			for _, j := range r.jobs {
				left += float64(j.tag-min(j.tag, r.virtual)) / wholeRate
			}
		}
		for i := range w.queries {
			if q := &w.queries[i]; q.serial != 0 && q.met.At == 0 { // on its way
				left += float64(q.work * w.replicas[q.replica].cost / whole)
			}
		}
		if plant {
			done += 5e7 // one query's work, of ten thousand
		}
		return math.Abs(came-done-left) / came
	}
	assert.Less(t, lost(false), 2e-6)
	assert.Greater(t, lost(true), 2e-6)
}
