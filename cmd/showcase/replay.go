package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/showcase/experiment"
	"github.com/headroom-lb/headroom/showcase/recorded"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// replayRules are compared unless others are named.
var replayRules = []string{"prequal", "c3", "yarp_power_of_two", "least_loaded", "power_of_two", "weighted_round_robin", "random", sim.Omniscient}

// replayFleets are the machines that recorded traffic can be served by.
var replayFleets = []struct {
	name string
	make func() sim.Scenario
}{
	{"t1", sim.T1}, {"t2", sim.T2}, {"t3", sim.T3}, {"antagonists", sim.Antagonists}, {"calm", sim.Calm},
}

// replaying is the flags of simulate replay.
type replaying struct {
	simulation
	trace, fleet string
	replicas     int
	load         float64
	rules        []string
}

func newReplayCmd() *cobra.Command {
	var o replaying
	c := &cobra.Command{
		Use:   "replay",
		Short: "Serve recorded traffic in the simulator, under rules that did not serve it then",
		Long: "Serve recorded traffic in the simulator: the queries of a recording, at the instants and balancers at which\n" +
			"they arrived, under each of some rules. The recording is one of \"wasmhost record\", or a table with the\n" +
			"heading arrival_ns,work_ns or arrival_ns,work_ns,client.\n\n" +
			"A recording has how long queries took, and not their work: of a success that is taken for its work, though\n" +
			"it may have waited, and what failed has the work of the success before it. So work is too much by as much\n" +
			"as queries waited, and heavier where they waited together. --load says how loaded the fleet shall be;\n" +
			"its replicas get the cores for that. What differs between rules is to be believed, and not the latencies.",
		Example: "  wasmhost record 127.0.0.1:9901 --wait 5m -o now.rec\n" +
			"  showcase simulate replay --trace now.rec\n" +
			"  showcase simulate replay --trace now.rec --load 1.1 --rule prequal --rule 'prequal quantile=0.6'\n" +
			"  showcase simulate replay --trace queries.csv --replicas 20 --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%q is left over: give the recording with --trace FILE", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.trace, "trace", "", "`file` with the recording or the table; - is standard input")
	f.StringArrayVar(&o.rules, "rule", replayRules, "policy `line` to serve it; repeatable. omniscient is a bound and no policy")
	f.StringVar(&o.fleet, "fleet", "t1", "`name` of the machines: t1, t2, t3, antagonists or calm; see docs/simulator.md")
	f.IntVar(&o.replicas, "replicas", 0, "`number` of replicas; 0 is as many as were recorded, or 10 if it is a table")
	f.Float64Var(&o.load, "load", 0.75, "work over what the fleet is allotted, 0.01 to 3")
	f.IntVar(&o.size.Seeds, "seeds", 0, "`number` of seeds, of neighbours and draws; 0 is 5")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "`number` of runs at once")
	f.BoolVar(&o.json, "json", false, "print one JSON document, with the value of every seed")
	f.BoolVar(&o.csv, "csv", false, "print a line for each rule and seed, set apart by commas")
	return c
}

func (o *replaying) run(c *cobra.Command) error {
	wrong := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	fleet := sim.Scenario{}
	for _, f := range replayFleets {
		if f.name == o.fleet {
			fleet = f.make()
		}
	}
	switch {
	case o.trace == "":
		return wrong("give the recording with --trace FILE")
	case fleet.Name == "":
		return wrong("--fleet %s: there are t1, t2, t3, antagonists and calm", o.fleet)
	case !(o.load >= 0.01 && o.load <= 3):
		return wrong("--load %g must be 0.01 to 3", o.load)
	case o.replicas < 0 || o.replicas > sim.MaxReplicas:
		return wrong("--replicas %d must be 1 to %d, or 0 for as many as were recorded", o.replicas, sim.MaxReplicas)
	case o.json && o.csv:
		return wrong("--json and --csv: give one of them")
	}
	for _, r := range o.rules {
		if _, err := sim.Canonical(r); err != nil && r != sim.Omniscient {
			return wrong("--rule %q: %w", r, err)
		}
	}
	t, err := readTraffic(c, o.trace)
	if err != nil {
		return err
	}
	if fleet.Replicas = t.Replicas; o.replicas > 0 {
		fleet.Replicas = o.replicas
	}
	if fleet.Replicas == 0 {
		fleet.Replicas = 10
	}
	fleet.Noisy = min(fleet.Noisy, fleet.Replicas)
	e, err := experiment.Replay(experiment.Recorded{Arrivals: t.Arrivals, Fleet: fleet, Load: o.load}, o.rules)
	if err != nil {
		return usageError{err}
	}
	return o.study(c, e.Name, []experiment.Experiment{e})
}

// readTraffic reads a file, and says on the terminal what is in it.
func readTraffic(c *cobra.Command, path string) (t *recorded.Traffic, err error) {
	in := c.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the recording: %w; give a file of wasmhost record with --trace", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	}
	if t, err = recorded.Read(path, in); err != nil {
		return nil, err
	}
	says(c.ErrOrStderr(), t)
	return t, nil
}

func says(to io.Writer, t *recorded.Traffic) {
	span := float64(t.Arrivals[len(t.Arrivals)-1].At) / float64(sim.Second)
	notes := []string{fmt.Sprintf("%d queries at %d balancers in %.1f s", len(t.Arrivals), t.Clients, span)}
	if n := len(t.Arrivals) - t.Known; n > 0 {
		notes = append(notes, fmt.Sprintf("%d without a success, which have the work of another", n))
	}
	if t.Cut {
		notes = append(notes, "the recording ends in the midst of a segment, which is left out")
	}
	fmt.Fprintln(to, strings.Join(notes, "; "))
}
