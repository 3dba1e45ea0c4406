package showcase

import (
	"fmt"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/pages"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// unknown stands for a latency that no one has measured.
const unknown = "–"

// fillNumbers prints two runs of one scenario as tables.
func fillNumbers(v *pages.View, a, b sim.Summary) {
	limit := func(ns int64) string {
		if ns == 0 { // no query has ended
			return unknown
		}
		if ns >= sim.Calm().Deadline {
			return "timeout"
		}
		return millis(ns)
	}
	row := func(name string, f func(s sim.Summary) string) {
		v.Metrics = append(v.Metrics, pages.Metric{Name: name, A: f(a), B: f(b)})
	}
	number := func(name string, f func(s sim.Summary) uint64) {
		row(name, func(s sim.Summary) string { return grouped(f(s)) })
	}
	number("queries", func(s sim.Summary) uint64 { return s.Totals.Arrivals })
	number("answered", func(s sim.Summary) uint64 { return s.Totals.Completed })
	number("lost", func(s sim.Summary) uint64 { return s.Totals.Errors })
	number("in flight at the end", func(s sim.Summary) uint64 { return uint64(s.InFlight) })
	row("median latency", func(s sim.Summary) string { return limit(s.P50) })
	row("90th percentile", func(s sim.Summary) string { return limit(s.P90) })
	row("99th percentile", func(s sim.Summary) string { return limit(s.P99) })
	row("99.9th percentile", func(s sim.Summary) string { return limit(s.P999) })
	for _, r := range []engine.Regime{engine.RegimeDirect, engine.RegimeCold, engine.RegimeHot, engine.RegimeFallback} {
		name := word(r)
		if r == engine.RegimeFallback {
			name += " (fallback)"
		}
		number("decisions, "+name, func(s sim.Summary) uint64 { return s.Totals.ByRegime[r] })
	}
	number("probes sent", func(s sim.Summary) uint64 { return s.Totals.ProbesSent })
	row("traffic sum", func(s sim.Summary) string { return fmt.Sprintf("%08x", uint32(s.Traffic)) })

	wa, wb := worldOf(a), worldOf(b)
	v.Verdict = Compare(&wa, &wb, a.Spec, b.Spec)
	cores := func(r sim.ReplicaView, at int64) string {
		if at == 0 {
			return "0"
		}
		return strconv.FormatFloat(float64(r.Used*100/at)/100, 'f', 1, 64)
	}
	for i, ra := range a.Replicas {
		rb := b.Replicas[i]
		machine := "quiet"
		if ra.Busy {
			machine = "noisy neighbour"
		}
		if ra.Old {
			machine += ", old"
		}
		// Over twice the mean is worth a mark, whatever the policy knows of thresholds.
		over := func(s sim.Summary, r sim.ReplicaView) bool { return r.RIF*len(s.Replicas) > 2*s.InFlight }
		v.Fleet = append(v.Fleet, pages.FleetRow{
			Name: sim.Name(i), Machine: machine,
			RIFA: strconv.Itoa(ra.RIF), LatencyA: estimate(ra), ServedA: cores(ra, a.At), OverA: over(a, ra),
			RIFB: strconv.Itoa(rb.RIF), LatencyB: estimate(rb), ServedB: cores(rb, b.At), OverB: over(b, rb),
		})
	}
}

func estimate(r sim.ReplicaView) string {
	if r.Latency < 0 {
		return unknown
	}
	return millis(r.Latency)
}

// worldOf puts a summary into the form that the live comparison is made from.
func worldOf(s sim.Summary) WorldFrame {
	w := WorldFrame{Totals: s.Totals, InFlight: s.InFlight, Quantiles: [4]int64{s.P50, s.P90, s.P99, s.P999}}
	for i := range w.Quantiles {
		if w.Quantiles[i] >= sim.Calm().Deadline {
			w.Quantiles[i] = -1
		}
	}
	return w
}
