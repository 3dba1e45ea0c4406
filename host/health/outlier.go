package health

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headroom-lb/headroom/engine"
)

// tally counts the queries of one interval.
type tally struct{ ok, failed uint64 }

// rate is an endpoint's success rate in parts per million.
type rate struct {
	endpoint *endpoint
	success  int64
}

// robust turns a median absolute deviation into the standard deviation of a normal spread, in parts
// per 10,000.
const robust = 14_826

// outliers returns those below a limit, worst first, with the median and the limit. Median and MAD are
// measures that bad endpoints cannot pull towards themselves as long as they are no more than half:
// by mean and standard deviation, two that fail alike hide each other.
func (o *Outlier) outliers(rates []rate) (found []rate, median, limit int64) {
	if len(rates) < o.MinHosts {
		return nil, 0, math.MaxInt64
	}
	sorted := make([]int64, len(rates))
	for i, r := range rates {
		sorted[i] = r.success
	}
	slices.Sort(sorted)
	// Of an even number the upper one counts: where half are bad, the good half is the measure.
	median = sorted[len(sorted)/2]
	for i, r := range rates {
		sorted[i] = max(median-r.success, r.success-median)
	}
	slices.Sort(sorted)
	mad := sorted[(len(sorted)-1)/2]
	limit = median - max(int64(o.Gap)*10_000, int64(o.Deviations)*mad*robust/10_000)
	for _, r := range rates {
		if r.success < limit {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b rate) int { return cmp.Compare(a.success, b.success) })
	return found, median, limit
}

// room is how many of n endpoints may be out: the configured share rounded down, never all.
func (o *Outlier) room(n int) int { return max(0, min(n*o.MaxEjected/100, n-1)) }

// ejection keeps one endpoint out for a time that grows with the number of times.
type ejection struct {
	out            bool
	times          int
	until          engine.Instant
	success, fleet int64 // what it was ejected for, in parts per million
}

func (e *ejection) eject(cfg *Outlier, at engine.Instant, success, fleet int64) {
	// Counted only as far as it matters, so that it is forgiven from there.
	if time.Duration(e.times)*cfg.Time < cfg.MaxTime {
		e.times++
	}
	wait := min(cfg.MaxTime, time.Duration(e.times)*cfg.Time)
	e.out, e.until, e.success, e.fleet = true, after(at, wait), success, fleet
}

// forgive takes one time back.
func (e *ejection) forgive() { e.times = max(0, e.times-1) }
