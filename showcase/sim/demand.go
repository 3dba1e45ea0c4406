package sim

// Demand is a distribution of the work of queries, with a mean of [Scenario.MeanWork]. Under
// processor sharing the mean stay depends on that mean alone.
type Demand uint8

const (
	DemandNormal      Demand = iota // max(0, Normal(Work, Work)), the paper's testbed
	DemandExponential               // queueing theory's own case
	DemandFixed                     // every query the same
	DemandTwo                       // nine in ten half of the mean, one in ten five and a half times
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
	return max(0, scale+s.normal(scale))
}
