package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/internal/terminal"
	"github.com/headroom-lb/headroom/showcase/experiment"
)

// simulation is the flags of simulate. A number of 0 is the experiment's own.
type simulation struct {
	size    experiment.Size
	workers int
	only    string
	list    bool
	json    bool
	csv     bool
}

func newSimulateCmd() *cobra.Command {
	var o simulation
	var names []string
	for _, e := range experiment.All() {
		names = append(names, e.Name)
	}
	c := &cobra.Command{
		Use:   "simulate EXPERIMENT",
		Short: "Run an experiment in the simulator and print what it measured",
		Long: "Run an experiment in the simulator and print what it measured. Every case gets the same queries. The same\n" +
			"flags give the same figures on every machine, however many workers there are.\n\n" +
			"The table has the median over the seeds, and the least and the most in parentheses. A dash does not apply;\n" +
			"\">240\" did not happen within the 240 seconds that were looked at.",
		Example: "  showcase simulate --list\n" +
			"  showcase simulate sinkhole\n" +
			"  showcase simulate sinkhole --only 'one of four' --seeds 20\n" +
			"  showcase simulate sinkhole --only shipped --json | jq '.cases[].cells[0].median'\n" +
			"  showcase simulate sinkhole --csv > sinkhole.csv",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.list && len(args) == 0:
				return nil
			case o.list:
				return usageError{errors.New("--list takes no experiment")}
			case len(args) == 0:
				return usageError{fmt.Errorf("give an experiment: %s; see showcase simulate --list", strings.Join(names, ", "))}
			case len(args) > 1:
				return usageError{fmt.Errorf("%q is left over: give one experiment", args[1])}
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.list {
				return list(c.OutOrStdout())
			}
			return simulate(c, args[0], o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&o.list, "list", false, "say what experiments there are and what each shows")
	f.StringVar(&o.only, "only", "", "run only the cases with this `key`, such as a rule or a situation")
	f.IntVar(&o.size.Seeds, "seeds", 0, "`number` of seeds; 0 is the experiment's own, see --list")
	f.IntVar(&o.size.Replicas, "replicas", 0, "`number` of replicas; 0 is the experiment's own")
	f.IntVar(&o.size.Clients, "clients", 0, "`number` of clients, each with a balancer; 0 is the experiment's own")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "`number` of runs at once")
	f.BoolVar(&o.json, "json", false, "print one JSON document, with the value of every seed")
	f.BoolVar(&o.csv, "csv", false, "print a line for each case and seed, set apart by commas")
	err := c.RegisterFlagCompletionFunc("only", func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		e, _ := experiment.Named(args[0])
		return e.Values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

func list(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, e := range experiment.All() {
		s := e.Size
		fmt.Fprintf(w, "%s\t%s\n\t%d seeds, %d replicas, %d clients.\n", e.Name, e.About, s.Seeds, s.Replicas, s.Clients)
		for _, col := range e.Columns {
			fmt.Fprintf(w, "\t  %s: %s, %s\n", col.Name, col.Unit, col.About)
		}
	}
	return w.Flush()
}

func simulate(c *cobra.Command, name string, o simulation) error {
	if o.json && o.csv {
		return usageError{errors.New("--json and --csv: give one of them")}
	}
	e, ok := experiment.Named(name)
	if !ok {
		return usageError{fmt.Errorf("there is no experiment %q; see showcase simulate --list", name)}
	}
	for _, n := range []struct{ to, own *int }{
		{&o.size.Seeds, &e.Size.Seeds}, {&o.size.Replicas, &e.Size.Replicas}, {&o.size.Clients, &e.Size.Clients},
	} {
		if *n.to == 0 {
			*n.to = *n.own
		}
	}
	show := progress(c.ErrOrStderr(), e.Name)
	r, err := experiment.Run(c.Context(), e, experiment.Options{
		Size: o.size, Workers: o.workers, Only: o.only, Progress: show.step,
	})
	show.end()
	switch {
	case c.Context().Err() != nil:
		return errors.New("interrupted before the experiment was complete")
	case errors.Is(err, experiment.ErrOptions):
		return usageError{err}
	case err != nil:
		return err
	}
	out := c.OutOrStdout()
	switch {
	case o.json:
		return json.NewEncoder(out).Encode(r)
	case o.csv:
		return r.WriteCSV(out)
	}
	return r.WriteTable(out)
}

// meter is a line of progress on a terminal, and nothing elsewhere.
type meter struct {
	to    io.Writer
	what  string
	start time.Time
	shown bool
}

func progress(to io.Writer, what string) *meter {
	if !terminal.Is(to) {
		to = nil
	}
	return &meter{to: to, what: what, start: time.Now()}
}

func (m *meter) step(done, total int) {
	if m.to != nil {
		left := time.Since(m.start) * time.Duration(total-done) / time.Duration(done)
		fmt.Fprintf(m.to, "\r\x1b[K%s: %d of %d runs, about %s left", m.what, done, total, left.Round(time.Second))
		m.shown = true
	}
}

// end clears the line.
func (m *meter) end() {
	if m.shown {
		fmt.Fprint(m.to, "\r\x1b[K")
	}
}
