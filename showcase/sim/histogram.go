package sim

import "math/bits"

// logBucket numbers v among log-linear buckets: values below 2^(sub+1) are told apart, and each
// power of two above is cut into 2^sub.
func logBucket(v uint64, sub int) int {
	if v < 2<<sub {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - sub
	return shift<<sub + int(v>>shift)
}

// logTop is the largest value in a bucket.
func logTop(b, sub int) uint64 {
	if b < 2<<sub {
		return uint64(b)
	}
	shift := b>>sub - 1
	return (uint64(b-shift<<sub)+1)<<shift - 1
}

const (
	fineBits    = 7
	fineBuckets = (40 - fineBits + 1) << fineBits
)

// Histogram counts whole numbers, such as nanoseconds or queries in flight, in fixed memory:
// exactly up to 255, to within 1/128 up to 2^40, and as 2^40 beyond.
type Histogram struct {
	counts [fineBuckets]uint64
	total  uint64
	sum    int64
}

// Add counts a value; one below zero counts as zero.
func (h *Histogram) Add(v int64) {
	v = max(v, 0)
	h.counts[min(logBucket(uint64(v), fineBits), fineBuckets-1)]++
	h.total++
	h.sum += v
}

// Count is the number of values.
func (h *Histogram) Count() uint64 { return h.total }

// Sum is the exact sum of the values, or what is left of it beyond 2^63.
func (h *Histogram) Sum() int64 { return h.sum }

// Mean is the mean, rounded down; 0 with nothing counted.
func (h *Histogram) Mean() int64 { return h.sum / int64(max(1, h.total)) }

// Quantile is the value of the nearest rank, in parts per 10,000: the largest that its bucket
// holds, hence at least the true one and at most 1/128 above it. With nothing counted it is 0.
func (h *Histogram) Quantile(rank uint64) int64 {
	want := max(1, (rank*h.total+whole-1)/whole)
	var seen uint64
	for b := range h.counts {
		if seen += h.counts[b]; seen >= want {
			return int64(logTop(b, fineBits))
		}
	}
	return 0
}

// AtMost counts the values up to v: exactly below 256, else with those that share its bucket.
func (h *Histogram) AtMost(v int64) (n uint64) {
	if v < 0 {
		return 0
	}
	for _, c := range h.counts[:min(logBucket(uint64(v), fineBits), fineBuckets-1)+1] {
		n += c
	}
	return n
}

// Merge adds another's values.
func (h *Histogram) Merge(o *Histogram) {
	for b, n := range o.counts {
		h.counts[b] += n
	}
	h.total += o.total
	h.sum += o.sum
}
