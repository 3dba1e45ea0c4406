// Package demo compares policies on real HTTP replicas: many independent balancers, each with its own instance of
// the module, place the same open-loop arrivals, policy by policy in interleaved rounds.
package demo

import (
	"fmt"
	"strings"
	"time"
)

// Scenario is what is compared, and on what.
type Scenario struct {
	Policies   []string      // spec lines
	Replicas   int           // all alike, but for their neighbours
	Noisy      int           // of them, how many have a noisy neighbour all the time
	SlowFactor float64       // how much longer service takes beside one
	Slots      int           // queries a replica serves at a time; the others queue
	Service    time.Duration // mean service time, a fifth of it fixed and the rest exponential
	Balancers  int           // independent proxies, each with its own instance and its own probes
	Rate       float64       // queries per second, over all balancers
	Duration   time.Duration // time under load, shared by all rounds of all policies
	Rounds     int           // per policy
	Seed       uint64
}

// Defaults is ten replicas, two with a noisy neighbour, behind twenty balancers, at about 70 % of the capacity.
func Defaults() Scenario {
	return Scenario{
		Policies: []string{"round_robin", "random", "least_loaded", "power_of_two", "prequal"},
		Replicas: 10, Noisy: 2, SlowFactor: 3, Slots: 4, Service: 40 * time.Millisecond,
		Balancers: 20, Rate: 600, Duration: 12 * time.Second, Rounds: 2, Seed: 1,
	}
}

// Capacity is the rate in queries per second at which every slot of every replica is busy.
func (s Scenario) Capacity() float64 {
	each := float64(s.Slots) / s.Service.Seconds()
	return each * (float64(s.Replicas-s.Noisy) + float64(s.Noisy)/s.SlowFactor)
}

// Round is how long each policy is under load in each round.
func (s Scenario) Round() time.Duration {
	return s.Duration / time.Duration(max(1, len(s.Policies)*s.Rounds))
}

// maxArrivals bounds a round's plan, which is kept in memory.
const maxArrivals = 2_000_000

// Noisy is how many of the replicas have a noisy neighbour unless it is said: a fifth, and at least one of several.
func Noisy(replicas int) int {
	if replicas < 2 {
		return 0
	}
	return max(1, replicas/5)
}

// Validate names the first setting that cannot be run, and what would be right.
func (s Scenario) Validate() error {
	switch {
	case len(s.Policies) == 0:
		return fmt.Errorf("--policies is empty: give some, such as round_robin,prequal")
	case s.Replicas < 1 || s.Replicas > 200:
		return fmt.Errorf("--replicas is %d: give 1 to 200", s.Replicas)
	case s.Noisy < 0 || s.Noisy > s.Replicas:
		return fmt.Errorf("--noisy is %d: give 0 to the number of replicas, %d", s.Noisy, s.Replicas)
	case !(s.SlowFactor >= 1 && s.SlowFactor <= 100):
		return fmt.Errorf("--slow-factor is %g: give 1 to 100", s.SlowFactor)
	case s.Balancers < 1 || s.Balancers > 200:
		return fmt.Errorf("--balancers is %d: give 1 to 200", s.Balancers)
	case !(s.Rate >= 1 && s.Rate <= 100_000):
		return fmt.Errorf("--rate is %g: give 1 to 100000 queries per second", s.Rate)
	case s.Rate >= s.Capacity():
		return fmt.Errorf("--rate is %g and the replicas can serve %.0f per second: no policy helps there, give less", s.Rate, s.Capacity())
	case s.Rounds < 1 || s.Rounds > 100:
		return fmt.Errorf("--rounds is %d: give 1 to 100", s.Rounds)
	case s.Round() < 200*time.Millisecond:
		return fmt.Errorf("--duration %s leaves %s per policy and round: give at least 200ms each", s.Duration, s.Round())
	case s.Duration > 24*time.Hour:
		return fmt.Errorf("--duration is %s: give at most 24h", s.Duration)
	case s.Rate*s.Round().Seconds() > maxArrivals:
		return fmt.Errorf("--rate %g over rounds of %s is more than %d queries a round: give less, or more --rounds", s.Rate, s.Round(), maxArrivals)
	}
	seen := map[string]bool{}
	for _, p := range s.Policies {
		if seen[p] {
			return fmt.Errorf("--policies names %q twice: give each once", p)
		}
		seen[p] = true
	}
	return nil
}

// Describe tells in a few lines what is run, for people.
func (s Scenario) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on loopback, each with %d slots and a queue, mean service %s (a fifth fixed, the rest exponential).\n",
		counted(s.Replicas, "HTTP replica"), s.Slots, s.Service)
	switch {
	case s.Noisy == 1:
		fmt.Fprintf(&b, "1 of them has a noisy neighbour: it takes %g times as long, all the time.\n", s.SlowFactor)
	case s.Noisy > 1:
		fmt.Fprintf(&b, "%d of them have a noisy neighbour: they take %g times as long, all the time.\n", s.Noisy, s.SlowFactor)
	}
	alone := "each with its own WebAssembly instance; none sees the others' queries"
	if s.Balancers == 1 {
		alone = "with its own WebAssembly instance; it sees every query"
	}
	fmt.Fprintf(&b, "%s per policy, %s.\n", counted(s.Balancers, "independent balancer"), alone)
	fmt.Fprintf(&b, "%g queries per second, %.0f %% of capacity, open loop: latency counts from the intended instant.\n",
		s.Rate, 100*s.Rate/s.Capacity())
	fmt.Fprintf(&b, "%s x %s of %s, interleaved, after a short warm-up; within a round all policies get the same arrivals and the same work (seed %d).\n",
		counted(len(s.Policies), "policy"), counted(s.Rounds, "round"), s.Round().Round(time.Millisecond), s.Seed)
	return b.String()
}
