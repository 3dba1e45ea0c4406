package sim

import (
	"errors"
	"math/bits"
	"strconv"
)

// Arrival is a query of recorded traffic.
type Arrival struct {
	At     int64 // instant at which it reaches its client, ns
	Client int32 // from 0
	Work   int64 // that it brings, ns of one core of a new machine
}

// Replay puts recorded traffic in the place of a scenario's own. The arrivals' order is that of
// time, and there are as many clients as they name. Replicas get as many cores as makes their
// allocation bear the work at a load, in parts per 10,000, from the first arrival to the last.
func (s *Scenario) Replay(arrivals []Arrival, load int) error {
	if len(arrivals) < 2 {
		return errors.New("recorded traffic: needs two queries or more, and has " + strconv.Itoa(len(arrivals)))
	}
	s.Recorded, s.Load, s.Clients = arrivals, load, 0
	var work, machines uint64
	for _, a := range arrivals {
		work += uint64(max(0, a.Work) / Microsecond)
		s.Clients = max(s.Clients, int(a.Client)+1)
	}
	for i := range s.Replicas - s.Later {
		machines += uint64(whole * whole / cost(s, i))
	}
	span := uint64(max(Microsecond, arrivals[len(arrivals)-1].At-arrivals[0].At) / Microsecond)
	const million, most = 1_000_000, 10_000_000_000_000 // millionths of a core
	hi, lo := bits.Mul64(work, million)
	if hi >= span || load < 1 || load > MaxLoad || machines == 0 {
		return errors.New("recorded traffic: needs replicas, a load from 1 to " + strconv.Itoa(MaxLoad) + " and time for its work")
	}
	busy, _ := bits.Div64(hi, lo, span)
	s.Cores = int(min(busy, most) * (whole * whole / 1000) / (uint64(load) * machines))
	if err := s.Validate(); err != nil {
		return errors.New("recorded traffic on " + strconv.Itoa(s.Replicas) + " replicas at load " + strconv.Itoa(load) +
			" parts per 10,000: " + err.Error() + "; give another number of replicas or another load")
	}
	return nil
}

// checkRecorded says which query cannot be.
func (s *Scenario) checkRecorded() error {
	last := int64(0)
	for i, a := range s.Recorded {
		what := ""
		switch {
		case a.At < last || a.At >= never/2:
			what = "instants must not be negative, and in order of time"
		case a.Client < 0 || int(a.Client) >= s.Clients:
			what = "client " + strconv.Itoa(int(a.Client)) + ": must be 0 to " + strconv.Itoa(s.Clients-1)
		case a.Work < 0 || a.Work > 1000*Second:
			what = "work must be 0 to 1000 s"
		default:
			last = a.At
			continue
		}
		return errors.New("scenario: recorded query " + strconv.Itoa(i+1) + ": " + what)
	}
	return nil
}
