package sim

// Latencies counts latencies in log-linear buckets: each power of two is cut into 64, so that
// a percentile is at most 1/64 above the true value, whatever the range. Counting is O(1),
// memory fixed; no sample is kept.
type Latencies struct {
	counts [buckets]uint32
	total  uint64
}

const (
	subBits = 6
	unit    = 10 // bits of a nanosecond latency below the finest bucket: about 1 us
	buckets = (40 - subBits) << subBits
)

func bucketOf(ns int64) int {
	return min(logBucket(uint64(max(ns, 0))>>unit, subBits), buckets-1)
}

// upper is the largest latency that a bucket holds.
func upper(b int) int64 { return int64(logTop(b, subBits)+1)<<unit - 1 }

// Add counts one latency.
func (l *Latencies) Add(ns int64) {
	l.counts[bucketOf(ns)]++
	l.total++
}

// Count is the number of latencies counted.
func (l *Latencies) Count() uint64 { return l.total }

// Quantiles appends, for each rank in parts per 10,000 in ascending order, the upper end of
// the bucket that holds the nearest rank: at least the true value, at most 1/64 above it. With
// nothing counted it appends zeros.
func (l *Latencies) Quantiles(dst []int64, ranks ...uint64) []int64 {
	var seen uint64
	b := -1
	for _, q := range ranks {
		if l.total == 0 {
			dst = append(dst, 0)
			continue
		}
		want := max(1, (q*l.total+whole-1)/whole)
		for seen < want {
			b++
			seen += uint64(l.counts[b])
		}
		dst = append(dst, upper(b))
	}
	return dst
}

// drop takes another's counts away.
func (l *Latencies) drop(o *Latencies) {
	for i := range o.counts {
		l.counts[i] -= o.counts[i]
	}
	l.total -= o.total
}

// Window is the latencies of the last few slices of time, as one distribution.
type Window struct {
	sum    Latencies
	slices [windowSlices]Latencies
	at     int64 // number of the current slice
}

// A window covers the last WindowSpan, in steps of a slice.
const (
	windowSlices = 8
	sliceSpan    = 500 * Millisecond
	WindowSpan   = windowSlices * sliceSpan
)

func (w *Window) turn(now int64) {
	for at := now / sliceSpan; w.at < at; {
		w.at++
		if at-w.at >= windowSlices {
			w.at = at - windowSlices + 1
		}
		old := &w.slices[w.at%windowSlices]
		if old.total > 0 {
			w.sum.drop(old)
			*old = Latencies{}
		}
	}
}

// Add counts a latency at an instant that is not before the last one.
func (w *Window) Add(now, ns int64) {
	w.turn(now)
	w.slices[w.at%windowSlices].Add(ns)
	w.sum.Add(ns)
}

// Quantiles is that of [Latencies] over the window that ends now.
func (w *Window) Quantiles(now int64, dst []int64, ranks ...uint64) []int64 {
	w.turn(now)
	return w.sum.Quantiles(dst, ranks...)
}
