package sim

import (
	"errors"
	"strconv"

	"github.com/headroom-lb/headroom/engine/probe"
)

// Spans of simulated time, in nanoseconds.
const (
	Microsecond int64 = 1000
	Millisecond       = 1000 * Microsecond
	Second            = 1000 * Millisecond
)

const (
	whole     = 10_000 // one, in parts per 10,000
	wholeRate = 1 << rateBits
)

// MeanWork is the mean demand of a query in the named scenarios.
const MeanWork = 65 * Millisecond

// Scenario is a situation to put balancers in. It holds nothing about policies, unless its script
// changes them. Start from a named one: zero means zero.
type Scenario struct {
	Name     string
	Seed     uint64
	Replicas int
	Clients  int
	// Subset is how many of the replicas each client knows; 0 is all of them.
	Subset int
	// Load is the offered work over the fleet's allocation, in parts per 10,000: at 10,000
	// every replica of a perfectly balanced fleet works exactly at its allocation.
	Load int
	// Noisy replicas, the first ones, share their machine with a neighbour that never rests.
	Noisy int
	// Spare is what the other replicas may use beyond their allocation, in parts per 10,000
	// of it, while their machine is quiet. Where SpareMost is more, each phase of the weather
	// draws its own between the two.
	Spare, SpareMost int
	// Weather lets neighbours come and go on every other machine, in exponential phases of this mean; 0 keeps them away. WeatherBusy is the share of
	// phases that are busy, in parts per 10,000.
	Weather     int64
	WeatherBusy int
	// Hobble is what isolation leaves of the allocation on a busy machine, in parts per 10,000,
	// once more queries are in flight than Pressure times the cores of the allocation, in parts
	// per 10,000 too.
	Hobble, Pressure int
	// OldShare of the replicas, in percent, run on machines where work costs OldCost parts
	// per 10,000.
	OldShare, OldCost int
	// Cores is the allocation of a replica, in thousandths of a core.
	Cores int
	// Demand is the distribution of the work that queries bring, and Work its scale: the mean
	// is 13/12 of it.
	Demand Demand
	Work   int64
	// WorkOnly keeps queries that need no work out of the replicas' estimates of latency. One in
	// six of the paper's demands is such: they finish at once however many others wait, and where
	// all others do, nothing else finishes, and a replica that is far behind seems the fastest.
	WorkOnly bool
	// Deadline of a query from its arrival; a replica drops a query at its deadline.
	Deadline int64
	// Network is the one-way delay; each leg of a probe adds an exponential ProbeJitter.
	Network, ProbeJitter int64
	// ProbeTimeout is when a probe that has no answer counts as lost. ProbeLoss of them never
	// arrive, in parts per 10,000.
	ProbeTimeout int64
	ProbeLoss    int
	// ReportEvery is how often each replica tells its load to those clients whose policy weighs
	// it, as the mean of its last ReportMean such spans; 0 is never.
	ReportEvery int64
	ReportMean  int
	// Estimator is what replicas remember of their latencies; zero takes its defaults. RIFBlind
	// replicas estimate from all their queries alike, whatever RIF these met.
	Estimator probe.EstimatorConfig
	RIFBlind  bool
	// Tick is how often each client sends what probes are due without a query; 0 is never.
	Tick int64
	// Detect is how long the clients take to notice that a replica died or came back.
	Detect int64
	// Later replicas, the last ones, join by the script only. Load counts the others.
	Later int
	// Script is what changes in the course of a run, in order.
	Script []Change
	// Recorded, if any, is the traffic in the place of random one, see [Scenario.Replay]. Load then
	// changes nothing.
	Recorded []Arrival
}

// MeanWork is the mean demand of a query, ns of one core.
func (s *Scenario) MeanWork() int64 { return s.Work + s.Work/12 }

// Bounds of a scenario.
const (
	MaxReplicas = 20_000
	MaxClients  = 5000
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
		check("subset", int64(s.Subset), 0, int64(s.Replicas)),
		check("load", int64(s.Load), 1, MaxLoad),
		check("noisy", int64(s.Noisy), 0, int64(s.Replicas)),
		check("spare", int64(s.Spare), 0, 100*whole),
		check("spare_most", int64(s.SpareMost), 0, 100*whole),
		check("weather", s.Weather, 0, 1000*Second),
		check("weather_busy", int64(s.WeatherBusy), 0, whole),
		check("hobble", int64(s.Hobble), 1, whole),
		check("pressure", int64(s.Pressure), 0, 100*whole),
		check("old_share", int64(s.OldShare), 0, 100),
		check("old_cost", int64(s.OldCost), whole, 10*whole),
		check("cores", int64(s.Cores), 100, 64_000),
		check("demand", int64(s.Demand), 0, int64(demands)-1),
		check("work", s.Work, Microsecond, 100*Second),
		check("deadline", s.Deadline, Millisecond, 1000*Second),
		check("network", s.Network, 0, Second),
		check("probe_jitter", s.ProbeJitter, 0, Second),
		check("probe_timeout", s.ProbeTimeout, Microsecond, Second),
		check("probe_loss", int64(s.ProbeLoss), 0, whole),
		check("report_every", s.ReportEvery, 0, 1000*Second),
		check("report_mean", int64(s.ReportMean), 1, maxReportMean),
		check("tick", s.Tick, 0, 1000*Second),
		check("detect", s.Detect, 0, 60*Second),
		check("later", int64(s.Later), 0, int64(s.Replicas)-1),
		s.Estimator.Validate(),
		s.checkScript(),
		s.checkRecorded(),
	)
}

// base is the testbed that the named scenarios share.
func base(name string) Scenario {
	return Scenario{
		Name: name, Seed: 7, Replicas: 100, Clients: 100, Load: 8000,
		Spare: 15_000, OldCost: whole, Cores: 8000, Deadline: 5 * Second,
		Network: 100 * Microsecond, ProbeJitter: 50 * Microsecond,
		ProbeTimeout: 3 * Millisecond, Detect: 150 * Millisecond, Work: 60 * Millisecond,
		WeatherBusy: whole / 2, Hobble: 8800, Pressure: 15_000,
		ReportEvery: Second, ReportMean: 10,
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
