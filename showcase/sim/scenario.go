package sim

import (
	"errors"
	"strconv"
)

// Spans of simulated time, in nanoseconds.
const (
	Microsecond int64 = 1000
	Millisecond       = 1000 * Microsecond
	Second            = 1000 * Millisecond
)

// Demand says how much work queries bring.
type Demand uint8

const (
	DemandNormal      Demand = iota // max(0, Normal(60 ms, 60 ms)), the paper's testbed
	DemandExponential               // exponential, mean [MeanWork]: queueing theory's own case
)

const (
	workMean  = 60 * Millisecond
	workSD    = 60 * Millisecond
	whole     = 10_000 // one, in parts per 10,000
	wholeRate = 1 << rateBits
)

// MeanWork is the mean demand of a query: the clamped normal's, and the exponential's.
const MeanWork = 65 * Millisecond

// Scenario is a situation to put balancers in. It holds nothing about policies.
type Scenario struct {
	Name     string
	Seed     uint64
	Replicas int
	Clients  int
	// Load is the offered work over the fleet's allocation, in parts per 10,000: at 10,000
	// every replica of a perfectly balanced fleet works exactly at its allocation.
	Load int
	// Noisy replicas, the first ones, share their machine with a neighbour that never rests.
	Noisy int
	// Spare is what the other replicas may use beyond their allocation, in parts per 10,000
	// of it, while their machine is quiet.
	Spare int
	// Weather lets neighbours come and go on every other machine: busy half of the time, in
	// exponential phases of this mean; 0 keeps them away.
	Weather int64
	// OldShare of the replicas, in percent, run on machines where work costs OldCost parts
	// per 10,000.
	OldShare, OldCost int
	// Cores is the allocation of a replica, in thousandths of a core.
	Cores  int
	Demand Demand
	// Deadline of a query from its arrival; a replica drops a query at its deadline.
	Deadline int64
	// Network is the one-way delay; each leg of a probe adds an exponential ProbeJitter.
	Network, ProbeJitter int64
	// ProbeTimeout is when a probe that has no answer counts as lost.
	ProbeTimeout int64
	// Detect is how long the clients take to notice that a replica died or came back.
	Detect int64
}

// Bounds of a scenario.
const (
	MaxReplicas = 200
	MaxClients  = 200
	MaxLoad     = 30_000
)

// Validate says which field of a scenario is out of its range.
func (s *Scenario) Validate() error {
	check := func(name string, v, low, high int64) error {
		if v < low || v > high {
			return errors.New("scenario: " + name + "=" + strconv.FormatInt(v, 10) + ": must be " +
				strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10))
		}
		return nil
	}
	return errors.Join(
		check("replicas", int64(s.Replicas), 1, MaxReplicas),
		check("clients", int64(s.Clients), 1, MaxClients),
		check("load", int64(s.Load), 1, MaxLoad),
		check("noisy", int64(s.Noisy), 0, int64(s.Replicas)),
		check("spare", int64(s.Spare), 0, 100*whole),
		check("weather", s.Weather, 0, 1000*Second),
		check("old_share", int64(s.OldShare), 0, 100),
		check("old_cost", int64(s.OldCost), whole, 10*whole),
		check("cores", int64(s.Cores), 100, 64_000),
		check("deadline", s.Deadline, Millisecond, 1000*Second),
		check("network", s.Network, 0, Second),
		check("probe_jitter", s.ProbeJitter, 0, Second),
		check("probe_timeout", s.ProbeTimeout, Microsecond, Second),
		check("detect", s.Detect, 0, 60*Second),
	)
}

// base is the testbed that the named scenarios share.
func base(name string) Scenario {
	return Scenario{
		Name: name, Seed: 7, Replicas: 100, Clients: 100, Load: 8000,
		Spare: 15_000, OldCost: whole, Cores: 8000, Deadline: 5 * Second,
		Network: 100 * Microsecond, ProbeJitter: 50 * Microsecond,
		ProbeTimeout: 3 * Millisecond, Detect: 150 * Millisecond,
	}
}

// Neighbours: a few machines have a noisy neighbour for ever, and the fleet runs a little
// above its allocation.
func Neighbours() Scenario {
	s := base("neighbours")
	s.Load, s.Noisy = 11_000, 4
	return s
}

// Weather: neighbours come and go everywhere, and three machines in ten are old.
func Weather() Scenario {
	s := base("weather")
	s.Load, s.Weather, s.OldShare, s.OldCost = 9000, 10*Second, 30, 18_000
	return s
}

// Calm: identical machines with room to spare.
func Calm() Scenario { return base("calm") }

// Named finds a scenario; the second result is false for an unknown name.
func Named(name string) (Scenario, bool) {
	for _, s := range []Scenario{Neighbours(), Weather(), Calm()} {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
