package sim

// Demand is a distribution of the work of queries, with a mean of [Scenario.MeanWork]. Under
// processor sharing the mean stay depends on that mean alone.
type Demand uint8

const (
	DemandNormal      Demand = iota // max(0, Normal(Work, Work)), with tails that end early: its p99.9 is 2 % low
	DemandExponential               // queueing theory's own case
	DemandFixed                     // every query the same
	DemandTwo                       // nine in ten half of the mean, one in ten five and a half times
	DemandGauss                     // max(0, Normal(Work, Work)), the paper's testbed
	demands
)

func (d Demand) draw(s *stream, scale, mean int64) int64 {
	switch d {
	case DemandExponential:
		return s.exponential(mean)
	case DemandFixed:
		return mean
	case DemandTwo:
		if s.below(10) == 0 {
			return mean / 2 * 11
		}
		return mean / 2
	}
	x := s.normal(scale)
	if d == DemandGauss {
		x = straighten(x, scale)
	}
	return max(0, scale+x)
}

// straighten turns a sum of twelve uniforms, less six, into a normal variate by Teichroew's
// polynomial (Knuth, Seminumerical Algorithms, 3.4.1), which is right to a few parts in 10,000 as
// far out as three deviations. sd is the deviation of both.
func straighten(x, sd int64) int64 {
	const one = 1 << 20
	r := x * (one / 4) / sd
	r2 := r * r / one
	y := int64(31352)                                            // 0.029899776
	for _, a := range [...]int64{8762, 80261, 264670, 4141714} { // 0.008355968, 0.076542912, 0.252408784, 3.949846138
		y = y*r2/one + a
	}
	return y * r / one * (sd >> 4) / (one >> 4)
}
