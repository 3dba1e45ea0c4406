package demo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/loadgen"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/module"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/replicaproc"
	"github.com/headroom-lb/headroom/host"
)

// maxOpen bounds the queries open at once, about a minute of an ordinary run; more are lost.
const maxOpen = 20_000

// queryTimeout is when a query without an answer is given up as lost.
const queryTimeout = 30 * time.Second

// State is what a run shows while it goes on.
type State struct {
	Results       []*Result
	Policy        string // whose round it is
	Round, Rounds int
	Elapsed       time.Duration // of this round's load
	Length        time.Duration
	Sent, Done    int64
}

// Watcher hears of a run's progress: Tick several times a second, Round at the end of each round, Repeat when a round
// does not count because the generator was late, Close at the end of the run.
type Watcher interface {
	Tick(State)
	Round(State)
	Repeat(State)
	Close()
}

// maxRepeats bounds the rounds that a run repeats. The rule is the same for all policies and looks at the generator
// alone: a round says nothing about a policy if the queries left late. On a machine that stays busy the last
// try counts, and the notes say so.
const maxRepeats = 4

// Run compares the policies, with compiled code kept in the folder cache unless that is empty. It returns what it has
// when ctx ends, together with the context's error.
func Run(ctx context.Context, s Scenario, cache string, w Watcher) ([]*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	defer w.Close()
	rt, m, err := module.Open(ctx, cache, nil, 0)
	if err != nil {
		return nil, err
	}
	defer rt.Close(context.WithoutCancel(ctx))
	results := newResults(s.Policies)
	if err := warmUp(ctx, m, s); err != nil {
		return results, err
	}
	repeats := maxRepeats
	for round := range s.Rounds {
		plan := loadgen.Poisson(s.Seed+uint64(round), s.Rate, s.Round(), s.Balancers, loadgen.Work{Mean: s.Service})
		for i := range results {
			// Each round starts with another policy, so that no policy always comes first or last.
			r := results[(i+round)%len(results)]
			st := State{Results: results, Policy: r.name(), Round: round + 1, Rounds: s.Rounds, Length: s.Round()}
			for again := true; again; {
				if again, err = runRound(ctx, m, s, r, plan, s.Seed+uint64(round), st, w, repeats > 0); err != nil {
					return results, err
				}
				if again {
					repeats--
					w.Repeat(st)
				}
			}
			w.Round(st)
		}
	}
	return results, nil
}

// warmTime is how long the warm-up sends.
const warmTime = 300 * time.Millisecond

// warmUp sends some load that is not measured, so that the first round does not pay for the process's own start.
func warmUp(ctx context.Context, m *host.Module, s Scenario) error {
	plan := loadgen.Poisson(s.Seed-1, s.Rate, warmTime, s.Balancers, loadgen.Work{Mean: s.Service})
	_, err := runRound(ctx, m, s, newResult(s.Policies[0]), plan, s.Seed-1, State{}, silent{}, false)
	return err
}

// silent watches nothing.
type silent struct{}

func (silent) Tick(State)   {}
func (silent) Round(State)  {}
func (silent) Repeat(State) {}
func (silent) Close()       {}

// runRound sends one plan through one policy's balancers and adds what was seen to its result. It reports whether the
// round is to be run again, which it never is unless mayRepeat.
func runRound(ctx context.Context, m *host.Module, s Scenario, r *Result, plan []loadgen.Arrival, seed uint64, st State, w Watcher, mayRepeat bool) (again bool, err error) {
	f, err := newFleet(ctx, m, s, r.Spec, seed)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	client := &http.Client{Timeout: queryTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	defer client.CloseIdleConnections()

	var p loadgen.Progress
	start, cpu := time.Now(), cpuTime()
	ticking, stop := context.WithCancel(ctx)
	ticked := make(chan struct{})
	go func() {
		defer close(ticked)
		t := time.NewTicker(250 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-ticking.Done():
				return
			case <-t.C:
				st.Elapsed, st.Sent, st.Done = time.Since(start), p.Sent.Load(), p.Done.Load()
				w.Tick(st)
			}
		}
	}()
	rep := loadgen.Run(ctx, plan, maxOpen, &p, func(ctx context.Context, a loadgen.Arrival) loadgen.Result {
		return send(ctx, client, f.proxies[a.Via], a)
	})
	stop()
	<-ticked
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	again = mayRepeat && ms(rep.Lag.ValueAtQuantile(99)) > lagLimit
	if again {
		r.repeat(rep)
		return true, nil
	}
	f.count(r)
	r.addLoad(rep, cpuTime()-cpu, time.Since(start))
	return false, nil
}

// send sends one query and reads the whole answer.
func send(ctx context.Context, c *http.Client, url string, a loadgen.Arrival) loadgen.Result {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/", nil)
	if err != nil {
		return loadgen.Lost
	}
	req.Header.Set(replicaproc.WorkHeader, strconv.FormatInt(a.Work.Microseconds(), 10))
	resp, err := c.Do(req)
	if err != nil {
		return loadgen.Lost
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return loadgen.Lost
	}
	if resp.StatusCode != http.StatusOK {
		return loadgen.Failed
	}
	return loadgen.OK
}
