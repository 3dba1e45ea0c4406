package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/showcase/experiment"
	"github.com/headroom-lb/headroom/showcase/paper"
)

// experiments are those that there are; tests add some that take no time.
var experiments = experiment.All

// everything is the name for all experiments.
const everything = "all"

// simulation is the flags of simulate. A number of 0 is the experiment's own.
type simulation struct {
	size      experiment.Size
	workers   int
	only      string
	list      bool
	json      bool
	csv       bool
	strict    bool
	journals  []string
	shard     string
	mergeOnly bool
	plot      string
	docs      string

	part experiment.Shard // shard, read
	read []string         // journals that are arguments
}

func newSimulateCmd() *cobra.Command {
	var o simulation
	c := &cobra.Command{
		Use:   "simulate EXPERIMENT [JOURNAL]...",
		Short: "Run an experiment in the simulator and print what it measured",
		Long: "Run an experiment in the simulator and print what it measured, beside the paper's figures where there\n" +
			"are any, and which statements about it hold. Every case gets the same queries. The same flags give the\n" +
			"same figures on every machine, however many workers and shards there are. \"all\" runs every experiment.\n\n" +
			"The table has the median over the seeds, and the least and the most in parentheses. A dash does not apply;\n" +
			"\">240\" did not happen within the 240 seconds that were looked at. Of the lines below it, one FAILS if it\n" +
			"does under any seed.\n\n" +
			"With --journal each finished run is kept at once, and a run that was ended goes on where it stopped.\n" +
			"Journals of shards, as flags or as arguments, become one result; what no journal has is run.",
		Example: "  showcase simulate --list\n" +
			"  showcase simulate sinkhole\n" +
			"  showcase simulate sinkhole --only 'one of four' --seeds 20\n" +
			"  showcase simulate sinkhole --only shipped --json | jq '.cases[].cells[0].median'\n" +
			"  showcase simulate sinkhole --csv > sinkhole.csv\n" +
			"  showcase simulate sinkhole --plot sinkhole.svg\n" +
			"  showcase simulate sinkhole --journal sinkhole.jsonl            again after Ctrl-C: it goes on\n" +
			"  showcase simulate all --shard 1/3 --journal 1.jsonl            on the first of three machines\n" +
			"  showcase simulate all --merge-only [123].jsonl                 all of them, or what is missing\n" +
			"  showcase simulate all --docs docs --journal all.jsonl          write docs/paper.md",
		Args:              func(_ *cobra.Command, args []string) error { return o.args(args) },
		ValidArgsFunction: completeExperiment,
		RunE: func(c *cobra.Command, args []string) error {
			if o.list {
				return list(c.OutOrStdout())
			}
			return o.study(c, args[0], named(args[0]))
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
	f.BoolVar(&o.json, "json", false, "print one JSON document, with the value of every seed and the verdicts")
	f.BoolVar(&o.csv, "csv", false, "print a line for each case and seed, set apart by commas")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 if a line fails that is not known to")
	f.StringVar(&o.plot, "plot", "", "draw the experiment's plot as SVG into this `file`; further plots into file-2.svg and so on")
	f.StringVar(&o.docs, "docs", "", "write paper.md and its pictures into this `directory`; for all experiments")
	f.StringArrayVar(&o.journals, "journal", nil, "`file` to keep finished runs in and to go on from; repeatable: further ones are only read")
	f.StringVar(&o.shard, "shard", "", "run only part `i/n` of the runs, 1/n to n/n, into the journal; 0/n is n/n")
	f.BoolVar(&o.mergeOnly, "merge-only", false, "run nothing: name what the journals lack")
	if err := c.RegisterFlagCompletionFunc("only", completeOnly); err != nil {
		panic(err) // the flag is defined above
	}
	c.AddCommand(newReplayCmd())
	return c
}

func completeExperiment(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // journals
	}
	return append(names(), everything), cobra.ShellCompDirectiveNoFileComp
}

func completeOnly(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if len(args) > 0 {
		for _, e := range named(args[0]) {
			out = append(out, e.Values()...)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func names() []string {
	var out []string
	for _, e := range experiments() {
		out = append(out, e.Name)
	}
	return out
}

// named are the experiments of a name: one, all, or none.
func named(name string) []experiment.Experiment {
	return slices.DeleteFunc(experiments(), func(e experiment.Experiment) bool { return name != everything && e.Name != name })
}

// args looks at the arguments and at flags that exclude each other.
func (o *simulation) args(args []string) error {
	wrong := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	switch {
	case o.list && len(args) == 0:
		return nil
	case o.list:
		return wrong("--list takes no experiment")
	case len(args) == 0:
		return wrong("give an experiment: %s, %s; see showcase simulate --list", strings.Join(names(), ", "), everything)
	case len(named(args[0])) == 0:
		return wrong("there is no experiment %q; see showcase simulate --list", args[0])
	case o.json && o.csv:
		return wrong("--json and --csv: give one of them")
	case o.csv && args[0] == everything:
		return wrong("--csv has the columns of one experiment: give one, or --json")
	case o.docs != "" && (args[0] != everything || o.only != ""):
		return wrong("--docs writes a page of all experiments: showcase simulate all --docs %s, without --only", o.docs)
	case o.plot != "" && args[0] == everything:
		return wrong("--plot draws one experiment: give one, or --docs")
	case o.plot != "" && filepath.Ext(o.plot) != ".svg":
		return wrong("--plot %s: give a file that ends in .svg", o.plot)
	case o.plot != "" && len(named(args[0])[0].Plots) == 0:
		return wrong("%s has no plot: leave out --plot", args[0])
	case o.mergeOnly && len(o.journals)+len(args) == 1:
		return wrong("--merge-only merges journals: name them, as in showcase simulate %s --merge-only 1.jsonl 2.jsonl", args[0])
	}
	o.read = args[1:]
	for _, path := range o.read {
		if len(named(path)) > 0 {
			return wrong("%q is left over: give one experiment, or %s", path, everything)
		}
	}
	if o.shard == "" {
		return nil
	}
	i, n, ok := strings.Cut(o.shard, "/")
	var err1, err2 error
	o.part.I, err1 = strconv.Atoi(i)
	o.part.Of, err2 = strconv.Atoi(n)
	switch {
	case !ok || err1 != nil || err2 != nil || o.part.Of < 1 || o.part.I < 0 || o.part.I > o.part.Of:
		return wrong("--shard %s: must be i/n with i from 1 to n, such as 2/3", o.shard)
	case len(o.journals) == 0:
		return wrong("--shard %s: give the file for its runs with --journal", o.shard)
	case o.json || o.csv || o.strict || o.mergeOnly || o.plot != "" || o.docs != "":
		return wrong("--shard only fills its journal: give other flags when all shards are merged")
	}
	return nil
}

func list(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, e := range experiments() {
		s := e.Size
		fmt.Fprintf(w, "%s\t%s\n\t%d seeds, %d replicas, %d clients.\n", e.Name, e.About, s.Seeds, s.Replicas, s.Clients)
		for _, col := range e.Columns {
			fmt.Fprintf(w, "\t  %s: %s, %s\n", col.Name, col.Unit, col.About)
		}
		for _, l := range e.Lines {
			fmt.Fprintf(w, "\t  %s: %s\n", l.ID, l.Says)
		}
	}
	return w.Flush()
}

// study runs experiments and says what they measured.
func (o *simulation) study(c *cobra.Command, name string, es []experiment.Experiment) error {
	study, err := experiment.NewStudy(es, o.size, o.only)
	if err != nil {
		return usageError{err}
	}
	if err := o.measure(c, name, study); err != nil {
		return err
	}
	if o.shard != "" {
		fmt.Fprintf(c.OutOrStdout(), "%s: shard %s is complete in %s\n", name, o.shard, o.journals[0])
		return nil
	}
	results, err := study.Results()
	if err != nil { // only a merge may leave runs out
		for _, run := range study.Missing(experiment.Shard{}) {
			fmt.Fprintln(c.ErrOrStderr(), "missing:", run)
		}
		return fmt.Errorf("%w; leave out --merge-only to run them", err)
	}
	if err := o.draw(results); err != nil {
		return err
	}
	if err := o.print(c.OutOrStdout(), name, results); err != nil {
		return err
	}
	return o.verdict(results)
}

// measure fills a study from the journals and by work.
func (o *simulation) measure(c *cobra.Command, name string, study *experiment.Study) (err error) {
	start := time.Now()
	w := experiment.Work{Workers: o.workers, Shard: o.part, Clock: func() int64 { return int64(time.Since(start)) }}
	read, err := globbed(o.read)
	if err != nil {
		return err
	}
	if len(o.journals)+len(read) > 0 {
		id, err := build()
		if err != nil {
			return err
		}
		if len(o.journals) > 0 {
			read = append(read, o.journals[1:]...)
			if o.mergeOnly {
				read = append(read, o.journals[0])
			} else {
				j, err := openJournal(study, id, o.journals[0])
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, j.close()) }()
				w.Keep = j.keep
			}
		}
		if err := readJournals(study, id, read); err != nil {
			return err
		}
	}
	if o.mergeOnly {
		return nil
	}
	show := progress(c.ErrOrStderr(), name)
	w.Progress = show.step
	err = study.Work(c.Context(), w)
	show.end()
	switch {
	case c.Context().Err() != nil && len(o.journals) > 0:
		return fmt.Errorf("interrupted; what is finished is in %s, and the same command goes on from there", o.journals[0])
	case c.Context().Err() != nil:
		return errors.New("interrupted before the experiment was complete")
	case errors.Is(err, experiment.ErrOptions):
		return usageError{err}
	}
	return err
}

// globbed expands patterns that no shell did.
func globbed(patterns []string) ([]string, error) {
	var out []string
	for _, p := range patterns {
		m, err := filepath.Glob(p)
		if err != nil {
			return nil, usageError{fmt.Errorf("%q: %w", p, err)}
		}
		if m == nil {
			m = []string{p} // reading it says what is wrong
		}
		out = append(out, m...)
	}
	return out, nil
}

// draw writes the files that were asked for.
func (o *simulation) draw(results []*experiment.Result) error {
	if o.plot != "" {
		for i, f := range results[0].Figures() {
			if err := os.WriteFile(paper.PlotName(o.plot, i), f.SVG(), 0o644); err != nil {
				return fmt.Errorf("cannot write the plot: %w; give a file in a directory that exists", err)
			}
		}
	}
	if o.docs == "" {
		return nil
	}
	files, err := paper.Write(results)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(o.docs, filepath.FromSlash(f.Path))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, f.Text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("cannot write the page: %w; give a directory that can be written with --docs", err)
		}
	}
	return nil
}

func (o *simulation) print(out io.Writer, name string, results []*experiment.Result) error {
	switch {
	case o.json && name == everything:
		return json.NewEncoder(out).Encode(results)
	case o.json:
		return json.NewEncoder(out).Encode(results[0])
	case o.csv:
		return results[0].WriteCSV(out)
	}
	for i, r := range results {
		if name == everything {
			fmt.Fprintf(out, "%s%s: %s\n\n", strings.Repeat("\n", min(i, 1)), r.Experiment, r.About)
		}
		if err := r.WriteTable(out); err != nil {
			return err
		}
		if len(r.Lines) > 0 {
			fmt.Fprintln(out)
		}
		if err := r.WriteLines(out); err != nil {
			return err
		}
	}
	return nil
}

// verdict is an error if a line must hold and does not.
func (o *simulation) verdict(results []*experiment.Result) error {
	var failing []string
	for _, r := range results {
		for _, l := range r.Lines {
			if l.Fails() {
				failing = append(failing, l.ID)
			}
		}
	}
	if !o.strict || len(failing) == 0 {
		return nil
	}
	return fmt.Errorf("lines that fail: %s; look at the figures, or leave out --strict", strings.Join(failing, ", "))
}
