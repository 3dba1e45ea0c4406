package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict int

const (
	caught   verdict = iota
	late             // caught by running too long
	survived         // every test passed
	unviable         // does not compile: no mutant
)

// suite is one package's tests.
type suite struct {
	path, dir string
	covers    map[string]bool // packages that the tests are linked with
	rapid     bool
}

// binary is a suite built with mutants, and what it takes without one in force.
type binary struct {
	*suite
	bin  string
	link func(ctx context.Context) error // makes bin; nil when it is made
	slow []string                        // tests that take longer than quick
	took [2]time.Duration                // the quick tests, the slow ones
}

// ready makes the binary when it is first wanted.
func (t *binary) ready(ctx context.Context) error {
	if t.link == nil {
		return nil
	}
	err := t.link(ctx)
	t.link = nil
	return err
}

// quick is how long a test may take to run in the first round.
const quick = 100 * time.Millisecond

// bench runs trials in one module.
type bench struct {
	root  string
	temp  string
	cache string // the build cache; "" is the user's own
	limit time.Duration
	pkgs  map[string]string // import path to folder, from the root
	suite []*suite
}

func (b *bench) goRun(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if b.cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+b.cache)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return errs.String(), fmt.Errorf("go %s: %w\n%s", args[0], err, errs.String())
	}
	return out.String(), nil
}

// survey lists the packages of a pattern and the tests that are linked with them.
func (b *bench) survey(ctx context.Context, patterns []string, tests string) error {
	list := func(format string, more ...string) ([][]string, error) {
		out, err := b.goRun(ctx, b.root, append([]string{"list", "-f", format}, more...)...)
		var rows [][]string
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			if line != "" {
				rows = append(rows, strings.Split(line, "|"))
			}
		}
		return rows, err
	}
	rows, err := list("{{.ImportPath}}|{{.Dir}}", patterns...)
	if err != nil {
		return err
	}
	b.pkgs = map[string]string{}
	for _, r := range rows {
		b.pkgs[r[0]] = r[1]
	}
	rows, err = list(`{{.ImportPath}}|{{.Dir}}|{{join .Deps " "}}`, "-test", tests)
	if err != nil {
		return err
	}
	for _, r := range rows {
		path, ok := strings.CutSuffix(r[0], ".test")
		if !ok {
			continue
		}
		s := &suite{path: path, dir: r[1], covers: map[string]bool{}}
		for _, dep := range strings.Fields(strings.ReplaceAll(r[2], " [", "[")) {
			dep, _, _ = strings.Cut(dep, "[")
			s.covers[dep] = true
		}
		s.rapid = s.covers["pgregory.net/rapid"]
		b.suite = append(b.suite, s)
	}
	return nil
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\S+) \(([0-9.]+)s\)`)

// build prepares the tests that could catch a mutant of a package, its own first, with files
// laid over the tree; own of them are its own.
func (b *bench) build(temp, pkg string, over map[string]string) (bins []*binary, own int, err error) {
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return nil, 0, err
	}
	replace := map[string]string{}
	for path, text := range over {
		file := filepath.Join(temp, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, 0, err
		}
		replace[path] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, 0, err
	}
	file := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return nil, 0, err
	}
	for _, s := range b.suite {
		if s.path == pkg {
			bins, own = append([]*binary{{suite: s}}, bins...), 1
		} else if s.covers[pkg] {
			bins = append(bins, &binary{suite: s})
		}
	}
	for i, t := range bins {
		t.bin = filepath.Join(temp, strconv.Itoa(i)+".test")
		t.link = func(ctx context.Context) error {
			_, err := b.goRun(ctx, b.root, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", file, "-o", t.bin, t.path)
			return err
		}
	}
	return bins, own, nil
}

// prove runs the tests with no mutant in force: they must pass, and say how long they take.
func (b *bench) prove(ctx context.Context, bins []*binary) error {
	for _, t := range bins {
		if err := t.ready(ctx); err != nil {
			return err
		}
		begun := time.Now()
		out, err := b.exec(ctx, t, 0, 10*time.Minute, "-test.v")
		if err != nil {
			return fmt.Errorf("%s does not pass unmutated: %w\n%s", t.path, err, out)
		}
		t.took[0] = time.Since(begun)
		for _, m := range passed.FindAllStringSubmatch(out, -1) {
			if sec, _ := strconv.ParseFloat(m[2], 64); sec > quick.Seconds() {
				t.slow = append(t.slow, m[1])
				t.took[1] += time.Duration(sec * float64(time.Second))
			}
		}
		t.took[0] = max(0, t.took[0]-t.took[1])
	}
	return nil
}

// exec runs a test binary with a mutant in force. A mutant may ask for all the memory there
// is; its address space is bounded.
func (b *bench) exec(ctx context.Context, t *binary, mutant int, limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args = append([]string{"-c", `ulimit -v 6000000; exec "$0" "$@"`, t.bin, "-test.short", "-test.failfast"}, args...)
	if t.rapid {
		args = append(args, "-rapid.seed=1", "-rapid.checks=1000", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), switchVar+"="+strconv.Itoa(mutant))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(out), err
}

// try runs the tests with a mutant in force: the quick ones of every package, then the slow,
// as the proven binaries of the same suites tell them apart.
func (b *bench) try(ctx context.Context, bins, proven []*binary, mutant int) (verdict, string, error) {
	for slow := range 2 {
		for i, t := range bins {
			as := proven[i]
			if slow == 1 && len(as.slow) == 0 {
				continue
			}
			which := "-test.run=^(" + strings.Join(as.slow, "|") + ")$"
			if slow == 0 {
				which = "-test.skip=^(" + strings.Join(append([]string{"NONE"}, as.slow...), "|") + ")$"
			}
			if err := t.ready(ctx); err != nil && ctx.Err() == nil {
				return unviable, "", nil // another package does not compile with it
			}
			_, err := b.exec(ctx, t, mutant, max(b.limit, 8*as.took[slow]), which)
			switch {
			case ctx.Err() != nil:
				return 0, "", ctx.Err()
			case errors.Is(err, context.DeadlineExceeded):
				return late, t.path, nil
			case err != nil:
				return caught, t.path, nil
			}
		}
	}
	return survived, "", nil
}
