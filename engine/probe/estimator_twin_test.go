package probe_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// twin keeps everything that ever happened and answers by definition. A named fault makes it
// wrong in one respect, to prove that the comparison would notice.
type twin struct {
	c      probe.EstimatorConfig
	fault  string
	now    engine.Instant
	done   map[int][]event // by tag, in order of finish
	opened map[int]event   // newest arrival by tag
	ended  map[int]bool    // whether that one has ended
}

type event struct {
	at      engine.Instant
	latency engine.Duration
}

func newTwin(c probe.EstimatorConfig, fault string) *twin {
	return &twin{c: c, fault: fault, now: -1 << 62, done: map[int][]event{}, opened: map[int]event{}, ended: map[int]bool{}}
}

// place counts the tags below a RIF by walking all of them.
func (w *twin) place(rif uint32) int {
	if int(rif) < w.c.Tags {
		return int(rif)
	}
	n, width := w.c.Tags, uint64(w.c.Tags/8)
	for low := uint64(w.c.Tags); low < 1<<16; low *= 2 {
		for k := range uint64(8) {
			if uint64(rif) < low+(k+1)*width {
				return n
			}
			n++
		}
		width *= 2
	}
	return n - 1
}

func (w *twin) clock(now engine.Instant) engine.Instant {
	w.now = max(w.now, now)
	return w.now
}

func (w *twin) arrive(now engine.Instant, rif uint32) {
	p := w.place(rif)
	w.opened[p], w.ended[p] = event{at: w.clock(now)}, false
}

func (w *twin) settle(a probe.Arrival) {
	if p := w.place(a.Tag); w.opened[p].at == a.At {
		w.ended[p] = true
	}
}

func (w *twin) finish(now engine.Instant, a probe.Arrival) {
	w.settle(a)
	tag := a.Tag
	if w.fault == "tag counts the query itself" {
		tag++
	}
	now = w.clock(now)
	p := w.place(tag)
	w.done[p] = append(w.done[p], event{now, engine.Duration(now - a.At)})
}

func (w *twin) fail(now engine.Instant, a probe.Arrival) {
	w.settle(a)
	was := w.estimate(now, a.Tag)
	if w.fault == "failures count" || was != engine.UnknownLatency && engine.Duration(w.clock(now)-a.At) > was {
		w.finish(now, a)
	}
}

func (w *twin) estimate(now engine.Instant, rif uint32) engine.Duration {
	now = w.clock(now)
	for _, horizon := range []engine.Duration{w.c.Memory, w.c.Hold} {
		found := w.nearest(now, rif, horizon, -1)
		if len(found) == 0 {
			continue
		}
		m := w.middle(found)
		if w.fault == "open queries ignored" || w.c.FinishedOnly {
			return m
		}
		return w.middle(w.nearest(now, rif, horizon, m))
	}
	return engine.UnknownLatency
}

// nearest lists latencies in the order in which they count; a floor of -1 leaves open queries out.
func (w *twin) nearest(now engine.Instant, rif uint32, horizon, floor engine.Duration) (all []engine.Duration) {
	from := w.place(rif)
	tags := make([]int, w.place(1<<32-1)+1)
	for i := range tags {
		tags[i] = i
	}
	slices.SortFunc(tags, func(a, b int) int {
		lower := cmp.Compare(a, b)
		if w.fault == "RIF+1 first" {
			lower = -lower
		}
		return cmp.Or(cmp.Compare(max(a-from, from-a), max(b-from, from-b)), lower)
	})
	for _, p := range tags {
		if o, ok := w.opened[p]; floor >= 0 && ok && !w.ended[p] {
			if age := engine.Duration(now - o.at); age < horizon && age > floor {
				all = append(all, age)
			}
		}
		kept := w.done[p]
		if n := len(kept) - w.c.Ring; n > 0 && w.fault != "ring without bound" {
			kept = kept[n:]
		}
		if w.fault != "oldest first" {
			kept = slices.Clone(kept)
			slices.Reverse(kept)
		}
		for _, e := range kept {
			age := engine.Duration(now - e.at)
			if age < horizon || age == horizon && w.fault == "one nanosecond too old" {
				all = append(all, e.latency)
			}
		}
	}
	return all[:min(len(all), w.c.Samples)]
}

func (w *twin) middle(d []engine.Duration) engine.Duration {
	d = slices.Sorted(slices.Values(d))
	if w.fault == "upper median" {
		return d[len(d)/2]
	}
	return d[(len(d)-1)/2]
}

// call is one step of a script; which open query ends is taken modulo their number.
type call struct {
	wait engine.Duration
	what string
	rif  uint32
	nth  int
}

type script struct {
	c     probe.EstimatorConfig
	calls []call
}

var scripts = rapid.Custom(func(t *rapid.T) script {
	memory := engine.Duration(rapid.SampledFrom([]int{40, 100}).Draw(t, "memory"))
	s := script{c: probe.EstimatorConfig{
		Samples:      rapid.IntRange(1, 9).Draw(t, "samples"),
		Memory:       memory,
		Hold:         memory * engine.Duration(rapid.IntRange(1, 3).Draw(t, "hold")),
		Ring:         rapid.IntRange(1, 5).Draw(t, "ring"),
		Tags:         rapid.SampledFrom([]int{8, 16, 64}).Draw(t, "tags"),
		FinishedOnly: rapid.IntRange(0, 9).Draw(t, "only") == 0,
	}}
	rif := rapid.OneOf(rapid.Uint32Range(0, 6), rapid.Uint32Range(0, 20), rapid.Uint32Range(0, 300), rapid.Uint32())
	if narrow := rapid.Uint32Range(0, 4).Draw(t, "narrow"); narrow > 0 {
		rif = rapid.Uint32Range(0, narrow)
	}
	waits := []int{-30, 0, 0, 1, 1, 2, 3, 5, 7, 10, int(memory) / 2, int(memory), 300}
	s.calls = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call {
		return call{
			wait: engine.Duration(rapid.SampledFrom(waits).Draw(t, "wait")),
			what: rapid.SampledFrom([]string{"arrive", "arrive", "finish", "finish", "finish", "fail", "withdraw", "estimate"}).Draw(t, "what"),
			rif:  rif.Draw(t, "rif"),
			nth:  rapid.IntRange(0, 1000).Draw(t, "nth"),
		}
	}), rapid.SampledFrom([]int{1, 10, 60}).Draw(t, "least"), 120).Draw(t, "calls")
	return s
})

// disagreement runs a script on both and says where they part, or nothing.
func disagreement(s script, fault string) string {
	e, err := probe.NewEstimator(s.c)
	if err != nil {
		return err.Error()
	}
	w := newTwin(s.c, fault)
	now := engine.Instant(1000)
	var open []probe.Arrival
	for i, c := range s.calls {
		now += engine.Instant(c.wait)
		end := func() probe.Arrival {
			k := c.nth % len(open)
			a := open[k]
			open = slices.Delete(open, k, k+1)
			return a
		}
		switch {
		case c.what == "arrive":
			open = append(open, e.Arrive(now, c.rif))
			w.arrive(now, c.rif)
		case c.what == "estimate":
			if got, want := e.Estimate(now, c.rif), w.estimate(now, c.rif); got != want {
				return fmt.Sprintf("call %d, RIF %d: estimate %d, twin %d", i, c.rif, got, want)
			}
		case len(open) == 0:
		case c.what == "finish":
			a := end()
			e.Finish(now, a)
			w.finish(now, a)
		case c.what == "fail":
			a := end()
			e.Fail(now, a)
			w.fail(now, a)
		case c.what == "withdraw":
			a := end()
			e.Withdraw(a)
			w.settle(a)
		}
	}
	return ""
}

func TestEstimatorEqualsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		require.Empty(t, disagreement(scripts.Draw(t, "script"), ""))
	})
}

func TestTwinNoticesFaults(t *testing.T) {
	for _, fault := range []string{
		"RIF+1 first", "upper median", "one nanosecond too old", "oldest first", "ring without bound",
		"tag counts the query itself", "open queries ignored", "failures count",
	} {
		t.Run(fault, func(t *testing.T) {
			for seed := range 2000 {
				s := scripts.Example(seed)
				require.Empty(t, disagreement(s, ""))
				if disagreement(s, fault) != "" {
					return
				}
			}
			t.Error("2,000 scripts and not one tells the faulty twin from the estimator")
		})
	}
}
