package sim

import "math/bits"

// stream is one seeded random stream: SplitMix64, one word of state.
type stream uint64

// The streams of a run. A stream that one part consumes is read by no other part.
const (
	streamArrivals = 1 + iota
	streamDemands
	streamNeighbours
	streamNetwork
	streamMachines
	streamFleet
	streamFaults
	streamLosses
	streamSubsets
)

// newStream starts the k-th of n independent streams of one purpose.
func newStream(seed uint64, purpose, k uint64) stream {
	s := stream(mix(seed ^ mix(purpose*0x9e3779b97f4a7c15) ^ mix(k+0x632be59bd9b4e019)))
	return s
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

// below is uniform on [0, n); n is at least 1. The bias is under n/2^64.
func (s *stream) below(n uint64) uint64 {
	hi, _ := bits.Mul64(s.next(), n)
	return hi
}

// exponential has the given mean. It is -ln(u) with u uniform, in 32 fractional bits.
func (s *stream) exponential(mean int64) int64 {
	u := s.next() | 1
	hi, lo := bits.Mul64(uint64(negLn(u)), uint64(mean))
	return int64(hi<<32 | lo>>32)
}

// normal has mean 0 and deviation sd. It is the sum of twelve uniforms less six (Irwin and
// Hall), so its tails end at six deviations; nothing here depends on what lies beyond.
func (s *stream) normal(sd int64) int64 {
	var sum int64
	for range 6 {
		v := s.next()
		sum += int64(v>>32) + int64(v&(1<<32-1))
	}
	sum -= 6 << 32
	neg := sum < 0
	if neg {
		sum = -sum
	}
	hi, lo := bits.Mul64(uint64(sum), uint64(sd))
	out := int64(hi<<32 | lo>>32)
	if neg {
		return -out
	}
	return out
}
