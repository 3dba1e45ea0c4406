package policy_test

import (
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// keenTwin is what the keen variant has beside the twin of Prequal.
type keenTwin struct {
	past  map[engine.ID][]twinPast // of each replica, readings with a latency and failed probes
	usual []twinReading            // the last 128 RIFs
}

type twinPast struct {
	at     engine.Instant
	rif    uint32
	lat    engine.Duration
	failed bool
}

// keenFaults are the mistakes that a twin of the keen variant could make.
var keenFaults = []fault{
	"latency not smoothed", "memory never ends", "memory ends at nine seconds", "the newest counts half", "what is ranked is smoothed",
	"RIF weighs nothing", "RIF weighs by itself", "age weighs nothing", "age weighs twice", "hot by weight", "median of the window",
	"probes at random", "probes of two", "probes of the worst", "the unknown come last", "probes by latency alone", "probes forget failures",
	"unanswered probes are forgotten", "an unanswered probe is remembered for ever", "unanswered probes count as latency", "drawn probes are not drawn again",
}

func newKeenTwin(c policy.PrequalConfig) *twin {
	w := newTwin(c)
	w.keen = &keenTwin{past: map[engine.ID][]twinPast{}}
	return w
}

// memory is what is remembered of a replica: a smoothed latency, or a failed probe.
func (w *twin) memory(id engine.ID, now engine.Instant) (m twinPast, known bool) {
	span := 10 * engine.Second
	if w.is("memory ends at nine seconds") {
		span = 9 * engine.Second
	}
	for _, p := range w.keen.past[id] {
		if w.is("memory never ends") {
			span = 1 << 62
		}
		live := known && engine.Duration(p.at-m.at) < span
		switch {
		case p.failed && live:
			continue // who is known keeps what is known
		case !p.failed && live && (!m.failed || w.is("unanswered probes count as latency")):
			if m.failed {
				m.lat = engine.MaxLatency
			}
			p.lat = (3*p.lat + 7*m.lat) / 10
			if w.is("the newest counts half") {
				p.lat = (w.keenLast(id, p.at) + m.lat) / 2
			}
		}
		m, known = p, true
	}
	if known && m.failed && w.is("an unanswered probe is remembered for ever") {
		return m, true
	}
	return m, known && engine.Duration(now-m.at) < span
}

func (w *twin) keenLast(id engine.ID, at engine.Instant) (lat engine.Duration) {
	for _, p := range w.keen.past[id] {
		if p.at <= at && !p.failed {
			lat = p.lat
		}
	}
	return lat
}

// smooth remembers a reading and gives its latency as smoothed.
func (w *twin) smooth(id engine.ID, rd engine.Reading) engine.Duration {
	if rd.Latency == engine.UnknownLatency {
		return rd.Latency
	}
	w.keen.past[id] = append(w.keen.past[id], twinPast{at: w.now, rif: rd.RIF, lat: rd.Latency})
	if w.is("latency not smoothed") {
		return rd.Latency
	}
	m, _ := w.memory(id, w.now)
	return m.lat
}

// unanswered remembers that a probe failed.
func (w *twin) unanswered(id engine.ID) {
	if _, known := w.memory(id, w.now); !known && !w.is("unanswered probes are forgotten") {
		w.keen.past[id] = append(w.keen.past[id], twinPast{at: w.now, failed: true})
	}
}

// usualRIF is the median of the last RIFs.
func (w *twin) usualRIF() uint64 {
	last := w.keen.usual
	if w.is("median of the window") {
		last = w.window
	}
	var v []uint32
	for _, r := range last {
		if engine.Duration(w.now-r.at) < w.c.WindowAge {
			v = append(v, r.rif)
		}
	}
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return uint64(v[(len(v)-1)/2])
}

// weight is latency * (1 + 0.7 RIF / (1 + median)) * (1 + age / 100ms), times what is the same for all.
func (w *twin) weight(e twinEntry) *big.Int {
	busy := 10*(w.usualRIF()+1) + 7*uint64(e.rif)
	stale := uint64(100*engine.Millisecond+engine.Duration(w.now-e.at)) / 1000
	switch {
	case w.is("RIF weighs nothing"):
		busy = 1
	case w.is("RIF weighs by itself"):
		busy = 10 + 7*uint64(e.rif)
	case w.is("age weighs nothing"):
		stale = 1
	case w.is("age weighs twice"):
		stale = uint64(100*engine.Millisecond+2*engine.Duration(w.now-e.at)) / 1000
	}
	x := big.NewInt(max(int64(e.lat), 1))
	x.Mul(x, new(big.Int).SetUint64(busy))
	return x.Mul(x, new(big.Int).SetUint64(stale))
}

// promise is how a replica stands for a probe: less is better.
func (w *twin) promise(id engine.ID) *big.Int {
	m, known := w.memory(id, w.now)
	worst := new(big.Int).Lsh(big.NewInt(1), 200)
	switch {
	case !known && w.is("the unknown come last"):
		return worst
	case !known:
		return big.NewInt(0)
	case m.failed:
		return worst
	}
	e := twinEntry{id: id, at: w.now, rif: m.rif, rawRIF: m.rif, lat: m.lat}
	if !w.is("probes forget failures") {
		w.weigh(&e)
	}
	if w.is("probes by latency alone") {
		e.rif = 0
	}
	return w.weight(e)
}

// keenProbes draws three for each probe and takes the most promising.
func (w *twin) keenProbes(k int, from []int) (due []engine.ID) {
	for range k {
		left := slices.Clone(from)
		best := -1
		draws := min(3, len(left))
		if w.is("probes of two") {
			draws = min(2, draws)
		}
		if w.is("probes at random") {
			draws = 1
		}
		for range draws {
			i := w.draw(len(left))
			slot := left[i]
			left = slices.Delete(left, i, i+1)
			if best < 0 {
				best = slot
				continue
			}
			c := w.promise(w.cs[slot].ID).Cmp(w.promise(w.cs[best].ID))
			if c < 0 != w.is("probes of the worst") && c != 0 {
				best = slot
			}
		}
		due = append(due, w.cs[best].ID)
		from = slices.DeleteFunc(slices.Clone(from), func(s int) bool { return s == best })
		if w.is("drawn probes are not drawn again") && len(left) > k {
			from = left
		}
	}
	return due
}

// genKeenConfig lets entries grow old enough for their age to count.
func genKeenConfig(t *rapid.T) policy.PrequalConfig {
	c := genConfig(t)
	c.MaxAge = engine.Duration(rapid.SampledFrom([]engine.Duration{1000, 5000, engine.Second, 20 * engine.Second}).Draw(t, "keen_age"))
	c.WindowAge = engine.Duration(rapid.SampledFrom([]engine.Duration{3000, engine.Second, 20 * engine.Second}).Draw(t, "keen_window_age"))
	c.Window = rapid.SampledFrom([]int{1, 5, 16, 400}).Draw(t, "keen_window")
	return c
}

func TestPrequalKeenEqualsItsSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genKeenConfig(t)
		p, err := policy.NewPrequalKeen(c)
		require.NoError(t, err)
		require.NoError(t, walk(t, newKeenTwin(c), engine.New(p, engine.Config{}), rapid.Bool().Draw(t, "restores")))
	})
}

func TestTheKeenTwinNoticesEveryPlantedFault(t *testing.T) {
	everyFaultIsNoticed(t, slices.Concat(keenFaults, aversionFaults), func(t *rapid.T, f fault) error {
		c := genKeenConfig(t)
		p, err := policy.NewPrequalKeen(c)
		require.NoError(t, err)
		w := newKeenTwin(c)
		w.fault = f
		return walk(t, w, engine.New(p, engine.Config{}), false)
	})
}
