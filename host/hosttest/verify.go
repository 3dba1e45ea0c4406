package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// Verdict is what became of a law.
type Verdict string

// The verdicts.
const (
	Pass       Verdict = "pass"
	Fail       Verdict = "fail"
	NotClaimed Verdict = "not_claimed"
	NotJudged  Verdict = "not_judged" // because the guest loops, which [Fail] of another law says
)

// General is the group of the laws that bind every guest.
const General = "general"

// Result is a law and what became of it.
type Result struct {
	Law     string   `json:"law"`
	Group   string   `json:"group"` // General, or the claim
	Verdict Verdict  `json:"verdict"`
	Reason  string   `json:"reason,omitempty"` // what broke it
	Calls   []string `json:"calls,omitempty"`  // that led there, in words, as few as were found
}

// Options say how a guest is judged.
type Options struct {
	Spec     string   // spec line; empty: the first policy that the module names
	Claims   []string // names of claims whose laws bind it too
	Runs     int      // generated sequences of calls for each law; 0 means 50
	Seed     uint64   // of the sequences; the same seed makes the same calls
	Progress func(done, of int, law string)
}

// length is how many calls a generated sequence has.
const length = 120

// spoken bounds the calls of a report that was not cut down.
const spoken = 12

// task is a law in its group.
type task struct {
	law
	group   string
	claimed bool
}

func tasks(claimed []string) ([]task, error) {
	var out []task
	for _, l := range generalLaws() {
		out = append(out, task{l, General, true})
	}
	left := slices.Clone(claimed)
	for _, c := range Claims() {
		is := slices.Contains(claimed, c.Name)
		left = slices.DeleteFunc(left, func(n string) bool { return n == c.Name })
		for _, l := range c.laws {
			out = append(out, task{l, c.Name, is})
		}
	}
	if len(left) > 0 {
		return nil, &engine.ConfigError{Policy: "laws", Value: left[0], Key: "claim", Reason: "want " + strings.Join(claimNames(), ", ")}
	}
	return out, nil
}

func claimNames() (out []string) {
	for _, c := range Claims() {
		out = append(out, c.Name)
	}
	return out
}

// kit judges the guests that start makes.
type kit struct {
	start func(spec string) (guest, error)
	o     Options
	tasks []task
	loops bool // a call was ended by its limit
}

// CallLimit suits [host.WithCallLimit] for trials: no call of a sound guest comes near it on a busy machine.
const CallLimit = 5 * time.Second

// slow is longer than a call takes that traps by itself.
const slow = CallLimit / 2

func newKit(start func(spec string) (guest, error), policies []string, o Options) (*kit, error) {
	if o.Runs <= 0 {
		o.Runs = 50
	}
	if o.Spec == "" {
		if len(policies) == 0 {
			return nil, &engine.ConfigError{Reason: "the module names no policy in lb_policies: give a spec line"}
		}
		o.Spec = policies[0]
	}
	ts, err := tasks(o.Claims)
	return &kit{start: start, o: o, tasks: ts}, err
}

// Verify judges a module by every law. An error says that it could not begin: an unknown claim, or a
// spec that the module refuses; what a guest does wrong is in the results.
func Verify(ctx context.Context, m *host.Module, o Options) ([]Result, error) {
	k, err := newKit(starter(ctx, m), m.Policies(), o)
	if err != nil {
		return nil, err
	}
	g, err := k.start(k.o.Spec)
	if err != nil {
		return nil, fmt.Errorf("spec %q: %w", k.o.Spec, err)
	}
	if err := g.Close(ctx); err != nil {
		return nil, err
	}
	results := make([]Result, 0, len(k.tasks))
	for i, t := range k.tasks {
		if o.Progress != nil {
			o.Progress(i, len(k.tasks), t.name)
		}
		results = append(results, k.judge(ctx, t))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func starter(ctx context.Context, m *host.Module) func(spec string) (guest, error) {
	return func(spec string) (guest, error) {
		in, err := m.Instantiate(ctx, spec, 0)
		if err != nil {
			return nil, err
		}
		return in, nil
	}
}

// TestGuest holds a module to the laws, each a subtest.
func TestGuest(t *testing.T, wasm []byte, o Options) {
	t.Helper()
	ctx := context.Background()
	r, err := host.NewRuntime(ctx, host.WithCallLimit(CallLimit))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	m, err := r.Load(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	k, err := newKit(starter(ctx, m), m.Policies(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, law := range k.tasks {
		if !law.claimed {
			continue
		}
		t.Run(law.name, func(t *testing.T) {
			switch res := k.judge(ctx, law); res.Verdict {
			case Fail:
				t.Errorf("%s\n%s", res.Reason, strings.Join(res.Calls, "\n"))
			case NotJudged:
				t.Skip("not judged: the guest loops")
			}
		})
	}
}

// judge tries a law. A guest that traps gets a bounded time; one that loops, and takes the whole limit of
// a call each time, is judged by no other law.
func (k *kit) judge(ctx context.Context, law task) Result {
	res := Result{Law: law.name, Group: law.group, Verdict: Pass}
	switch {
	case !law.claimed:
		res.Verdict = NotClaimed
		return res
	case k.loops:
		res.Verdict = NotJudged
		return res
	}
	seed, begun, made, trapped := k.o.Seed, time.Now(), 0, false
	attempt := func(calls []call) (said []string, err error) {
		t := &trial{ctx: ctx, start: k.start, spec: k.o.Spec, calls: calls, seed: seed}
		err = law.check(t)
		var trap, loop bool
		said, made, trap, loop = t.end()
		trapped, k.loops = trapped || trap, k.loops || loop
		return said, err
	}
	patience := time.Second
	if law.name == trapLaw {
		patience = 3 * CallLimit
	}
	enough := func() bool { return ctx.Err() != nil || trapped && time.Since(begun) > patience }
	fail := func(said []string, err error) {
		if extra := len(said) - spoken; extra > 0 && !law.generated {
			said = append([]string{fmt.Sprint("(", extra, " calls before)")}, said[extra:]...)
		}
		lines := strings.Split(err.Error(), "\n") // a trap brings the guest's whole stack
		res.Verdict, res.Reason, res.Calls = Fail, strings.Join(lines[:min(len(lines), 5)], "\n"), said
	}
	if !law.generated {
		if said, err := attempt(nil); err != nil {
			fail(said, err)
		}
		return res
	}
	for run := 0; run < k.o.Runs && !enough(); run++ {
		calls := generate(seed, length)
		if _, err := attempt(calls); err == nil {
			seed++
			continue
		}
		begun = time.Now()
		calls = shrink(calls[:max(1, min(made, len(calls)))], func(fewer []call) bool {
			if enough() {
				return false
			}
			_, err := attempt(fewer)
			return err != nil
		})
		said, err := attempt(calls)
		if err == nil {
			err = errors.New("broken once and not again: the guest is not deterministic")
		}
		fail(said, err)
		break
	}
	return res
}
