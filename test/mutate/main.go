// Command mutate breaks the engine on purpose, one small way at a time, and fails for each way
// that no test notices. It edits nothing: every mutant is compiled from an overlay. A mutant
// may survive only with a written reason, and a reason that no longer holds is an error.
//
//	go run ./test/mutate                        the engine and the probe pool
//	go run ./test/mutate -policy                the policies too
//	go run ./test/mutate -file pool.go -line 90 one place
//	go run ./test/mutate -n 50 -seed 3          a sample
//	go run ./test/mutate -doubt                 what has a reason, against the tests of all packages
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

type options struct {
	root     string
	patterns []string
	tests    string
	reasons  string
	cache    string
	file     string
	line     int
	sample   int
	seed     uint64
	parallel int
	limit    time.Duration
	list     bool
	doubt    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := options{root: "."}
	policy := flag.Bool("policy", false, "mutate engine/policy too")
	flag.StringVar(&o.tests, "tests", "./engine/...", "packages whose tests may catch a mutant")
	flag.StringVar(&o.reasons, "reasons", "test/mutate/reasons.txt", "why mutants may survive")
	flag.StringVar(&o.cache, "cache", "", "build cache; a temporary one if empty, since mutants fill it")
	flag.StringVar(&o.file, "file", "", "only files whose path ends so")
	flag.IntVar(&o.line, "line", 0, "only this line")
	flag.IntVar(&o.sample, "n", 0, "only so many mutants, drawn by -seed")
	flag.Uint64Var(&o.seed, "seed", 1, "of the sample")
	flag.IntVar(&o.parallel, "parallel", 2, "mutants at a time")
	flag.DurationVar(&o.limit, "limit", 5*time.Second, "least time before a mutant counts as endless")
	flag.BoolVar(&o.list, "list", false, "print the mutants and run none")
	flag.BoolVar(&o.doubt, "doubt", false, "only mutants with a reason, and against the tests of other packages too")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutate [flags] [packages to mutate, ./engine ./engine/probe if none]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.patterns = flag.Args(); len(o.patterns) == 0 {
		o.patterns = []string{"./engine", "./engine/probe"}
	}
	if *policy {
		o.patterns = append(o.patterns, "./engine/policy")
	}
	bad, err := run(ctx, o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// job is a mutant with what it takes to make it.
type job struct {
	site
	pkg, path string
	src       []byte
}

// run tries the mutants and returns how many survived without a reason or against one.
func run(ctx context.Context, o options, out io.Writer) (bad int, err error) {
	b := &bench{limit: o.limit, cache: o.cache}
	if b.root, err = filepath.Abs(o.root); err != nil {
		return 0, err
	}
	if b.temp, err = os.MkdirTemp("", "mutate"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(b.temp)
	if b.cache == "" {
		b.cache = filepath.Join(b.temp, "cache")
	}
	if err := b.survey(ctx, o.patterns, o.tests); err != nil {
		return 0, err
	}
	all, err := jobs(b)
	if err != nil {
		return 0, err
	}
	reasons, err := readReasons(filepath.Join(b.root, o.reasons))
	if err != nil {
		return 0, err
	}
	t := &tally{begun: time.Now(), reasons: reasons, doubt: o.doubt, out: out}
	for _, s := range stale(b.root, o.reasons, reasons, all) {
		fmt.Fprintln(out, s)
		t.all.bad++
	}
	all = o.choose(all, reasons)
	if o.list {
		for _, j := range all {
			fmt.Fprintf(out, "%s:%d: %s: %s\n%s\n", j.File, j.Line, j.Func, j.Label, j.diff(j.src))
		}
		return t.all.bad, nil
	}
	fmt.Fprintf(out, "%d places\n", len(all))
	for len(all) > 0 { // file by file
		n := 1
		for n < len(all) && all[n].path == all[0].path {
			n++
		}
		if err := b.file(ctx, all[:n], max(1, o.parallel), t); err != nil {
			return t.all.bad, err
		}
		fmt.Fprintf(out, "%s: %s\n", all[0].File, t.file)
		all, t.file = all[n:], count{}
	}
	fmt.Fprintf(out, "all: %s; %s\n", t.all, time.Since(t.begun).Round(time.Second))
	return t.all.bad, nil
}

// jobs lists the mutants of all packages, file by file.
func jobs(b *bench) (all []*job, err error) {
	for _, pkg := range slices.Sorted(maps.Keys(b.pkgs)) {
		files, err := filepath.Glob(filepath.Join(b.pkgs[pkg], "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			rel, err := filepath.Rel(b.root, file)
			if err != nil {
				return nil, err
			}
			sites, err := find(filepath.ToSlash(rel), src)
			if err != nil {
				return nil, err
			}
			for _, s := range sites {
				all = append(all, &job{s, pkg, file, src})
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("nothing to mutate")
	}
	return all, nil
}

// choose keeps what the flags ask for.
func (o *options) choose(all []*job, reasons map[string]*reason) (kept []*job) {
	for _, j := range all {
		if strings.HasSuffix(j.File, o.file) && (o.line == 0 || o.line == j.Line) && (!o.doubt || reasons[j.key()] != nil) {
			kept = append(kept, j)
		}
	}
	if o.sample > 0 && o.sample < len(kept) {
		r := rand.New(rand.NewPCG(o.seed, 0))
		r.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		kept = kept[:o.sample]
		sort.SliceStable(kept, func(i, j int) bool { return kept[i].path < kept[j].path })
	}
	return kept
}

// file tries the mutants of one file: those in functions from one build, the others one by one.
func (b *bench) file(ctx context.Context, js []*job, parallel int, t *tally) error {
	c, err := b.checker(ctx, js[0].pkg)
	if err != nil {
		return err
	}
	var viable []*job
	var sites []*site
	for _, j := range js {
		if c.viable(j.path, &j.site, j.src) {
			viable, sites = append(viable, j), append(sites, &j.site)
		} else {
			t.note(j, unviable, "")
		}
	}
	text, name, numbers, err := schema(js[0].path, js[0].src, sites)
	if err != nil {
		return err
	}
	over := map[string]string{
		js[0].path: text, filepath.Join(filepath.Dir(js[0].path), switchName): fmt.Sprintf(switchFile, name),
	}
	bins, own, err := b.build(filepath.Join(b.temp, "all"), js[0].pkg, over)
	if err != nil {
		return err
	}
	if err := b.prove(ctx, bins[:own]); err != nil {
		return err
	}
	others := sync.OnceValue(func() error { return b.prove(ctx, bins[own:]) }) // seldom wanted, and slow
	return each(ctx, len(viable), parallel, func(ctx context.Context, worker, i int) error {
		j, with := viable[i], bins
		if numbers[i] == 0 {
			alone, _, err := b.build(filepath.Join(b.temp, strconv.Itoa(worker)), j.pkg, map[string]string{j.path: string(j.mutated(j.src))})
			if err != nil {
				return err
			}
			with = alone
		}
		v, by, err := b.try(ctx, with[:own], bins[:own], numbers[i])
		if err == nil && v == survived && (t.doubt || t.reasons[j.key()] == nil) {
			if err = others(); err == nil {
				v, by, err = b.try(ctx, with[own:], bins[own:], numbers[i])
			}
		}
		if err == nil {
			t.note(j, v, by)
		}
		return err
	})
}

// each calls f for 0 to n-1, some at a time, until one fails.
func each(ctx context.Context, n, parallel int, f func(ctx context.Context, worker, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for worker := range parallel {
		wg.Go(func() {
			for i := range next {
				if err := f(ctx, worker, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// count is how many mutants ended in each way.
type count struct {
	verdicts [4]int
	excused  int
	bad      int
}

func (c count) String() string {
	v := c.verdicts
	return fmt.Sprintf("%d mutants: %d caught, %d of them by running too long; %d survived, %d of them with a reason; %d did not compile; %d to answer for",
		v[caught]+v[late]+v[survived], v[caught]+v[late], v[late], v[survived], c.excused, v[unviable], c.bad)
}

// tally counts verdicts, and says what there is to answer for.
type tally struct {
	mu        sync.Mutex
	reasons   map[string]*reason
	doubt     bool // whether a reason is held against the tests of other packages
	out       io.Writer
	file, all count
	begun     time.Time
}

func (t *tally) note(j *job, v verdict, by string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := count{}
	c.verdicts[v]++
	why := t.reasons[j.key()]
	switch {
	case v == survived && why == nil:
		c.bad++
		fmt.Fprintf(t.out, "%s:%d: survived: %s\n%s\nas a reason:\n\n%s %s\n%s\n%s\n\n", j.File, j.Line, j.Label, j.diff(j.src), j.File, j.Func, j.Text, j.Label)
	case v == survived:
		c.excused++
	case why != nil:
		c.bad++
		fmt.Fprintf(t.out, "%s:%d: stale: %q was to survive, and does not (%s)\n", j.File, j.Line, j.Label, by)
	}
	t.file.add(c)
	t.all.add(c)
}

func (c *count) add(o count) {
	for i, n := range o.verdicts {
		c.verdicts[i] += n
	}
	c.excused += o.excused
	c.bad += o.bad
}
