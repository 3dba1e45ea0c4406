package experiment

import (
	"context"
	"math"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// trouble is what goes wrong in one situation of the sinkhole.
type trouble struct {
	name   string
	load   int    // parts per 10,000 of the allocation
	fleet  int    // replicas; 0 is the size asked for
	cores  int    // of a replica, in thousandths; 0 is eight
	who    extent // fails
	share  int    // of their queries, parts per 10,000
	always bool   // from the start, and for ever
}

// extent is how much of a fleet fails.
type extent uint8

const (
	nobody extent = iota
	one
	tenth
	most // three of four
	everybody
)

// of is how many that is of n replicas.
func (e extent) of(n int) int { return [...]int{0, 1, n / 10, 3 * n / 4, n}[e] }

// troubles are the situations, calm ones first.
var troubles = []trouble{
	{name: "calm 0.9", load: 9000},
	{name: "calm 1.1", load: 11_000},
	{name: "1% everywhere", load: 9000, who: everybody, share: 100, always: true},
	{name: "one at 0.9", load: 9000, who: one, share: 10_000},
	{name: "one at 1.1", load: 11_000, who: one, share: 10_000},
	{name: "one, few queries", load: 9000, cores: 1000, who: one, share: 10_000},
	{name: "one by half", load: 9000, who: one, share: 5000},
	{name: "one by a tenth", load: 9000, who: one, share: 1000},
	{name: "a tenth of all", load: 9000, who: tenth, share: 10_000},
	{name: "one of four", load: 7500, fleet: 4, who: one, share: 10_000},
	{name: "one of three", load: 6000, fleet: 3, who: one, share: 10_000},
	{name: "one of two", load: 4500, fleet: 2, who: one, share: 10_000},
	{name: "three of four", load: 2000, fleet: 4, who: most, share: 10_000},
	{name: "most of all", load: 2000, who: most, share: 10_000},
	{name: "20% everywhere", load: 9000, who: everybody, share: 2000},
	{name: "40% everywhere", load: 9000, who: everybody, share: 4000},
}

// The course of a run: settle, then trouble, then repair and a look at the return.
const (
	settled  = 12 * sim.Second
	repaired = settled + 15*sim.Second
	looked   = repaired + 15*sim.Second  // what follows is measured until then
	over     = repaired + 240*sim.Second // a return is waited for until then
	// What a replica's own share is, is taken from the last seconds before the trouble.
	usual = 6 * sim.Second
	// A return takes this share of it, over so long.
	returnShare   = 0.8
	returnStretch = 2 * sim.Second
)

func sinkhole() Experiment {
	return Experiment{
		Name:   "sinkhole",
		Report: sinkholeReport(),
		About: "Replicas that fail fast look idle. Compares rules that keep clients away from them: what each loses, " +
			"how soon it turns away and comes back, and what it costs when nothing or everything fails.",
		Keys: []string{"situation", "rule"},
		Columns: []Column{
			{Name: "failed", Unit: "%", About: "of queries, while replicas fail; a missed deadline fails too", digits: 2},
			{Name: "share", Unit: "%", About: "of their share of traffic before that failing replicas have while they fail"},
			{Name: "p50", Unit: "ms", About: "of successes, while replicas fail"},
			{Name: "p99", Unit: "ms", About: "of successes, while replicas fail"},
			{Name: "p99.9", Unit: "ms", About: "of successes, while replicas fail"},
			{Name: "half", Unit: "s", About: "until failing replicas have at most half of their share", Within: seconds(repaired - settled), digits: 1},
			{Name: "lost", Unit: "queries", About: "failed at failing replicas until then, or in all"},
			{Name: "back", Unit: "s", About: "from the repair until they have four fifths of their share", Within: seconds(over - repaired), digits: 1},
			{Name: "p99 after", Unit: "ms", About: "of successes, in the fifteen seconds after the repair"},
		},
		Size:  Size{Seeds: 5, Replicas: 100, Clients: 100},
		cases: sinkholeCases,
	}
}

func sinkholeCases(size Size) []run {
	var out []run
	for _, t := range troubles {
		for _, r := range rules() {
			out = append(out, run{
				keys:    []string{t.name, r.name},
				measure: func(ctx context.Context, seed uint64) ([]float64, error) { return t.measure(ctx, r, size, seed) },
			})
		}
	}
	return out
}

// scene is the fleet of a situation: three machines in ten are old, and one in five has a
// neighbour that never rests. They stay as they are, so that a replica's usual share is plain.
func (t trouble) scene(size Size, seed uint64) (sc sim.Scenario, marked []int) {
	sc = sim.Weather()
	sc.Name, sc.Seed, sc.Load, sc.Weather = "sinkhole", seed, t.load, 0
	sc.Replicas, sc.Clients = size.Replicas, size.Clients
	if t.fleet > 0 {
		// As many clients to a replica as elsewhere.
		sc.Replicas, sc.Clients = t.fleet, max(1, size.Clients*t.fleet/size.Replicas)
	}
	if t.cores > 0 {
		sc.Cores = t.cores
	}
	sc.Noisy = max(1, sc.Replicas/5)
	// From the middle on: neither all noisy nor all old.
	for i := range t.who.of(sc.Replicas) {
		marked = append(marked, (sc.Replicas/2+i)%sc.Replicas)
	}
	return sc, marked
}

// measure runs one world under one rule and gives a value for each column.
func (t trouble) measure(ctx context.Context, r rule, size Size, seed uint64) ([]float64, error) {
	sc, marked := t.scene(size, seed)
	m := newMeter(over, marked, phase{from: settled, until: repaired}, phase{from: repaired, until: looked})
	w, err := sim.NewWorld(sc, r.spec, sim.Maker{Machine: m.watching(r.machine)})
	if err != nil {
		return nil, err
	}
	fail := func(share int) {
		for _, i := range marked {
			w.SetFailing(i, share)
		}
	}
	if t.always {
		fail(t.share)
	}
	if err := advance(ctx, w, settled); err != nil {
		return nil, err
	}
	fail(t.share)
	if err := advance(ctx, w, repaired); err != nil {
		return nil, err
	}
	if !t.always {
		fail(0)
	}
	if err := advance(ctx, w, looked); err != nil {
		return nil, err
	}
	share, half, lost, back := math.NaN(), math.NaN(), math.NaN(), math.NaN()
	if len(marked) > 0 && len(marked) < sc.Replicas { // otherwise they have no share of their own
		before := m.over(settled-usual, settled).share()
		share = 100 * m.over(settled, repaired).share() / before
		half, lost = m.avoided(before)
		if back, err = m.awaitReturn(ctx, w, before); err != nil {
			return nil, err
		}
	}
	during, good, after := m.over(settled, repaired), &m.phases[0], &m.phases[1]
	failed := 100 * float64(during.failed) / float64(during.ended)
	return []float64{failed, share, good.quantile(5000), good.quantile(9900), good.quantile(9990), half, lost, back, after.quantile(9900)}, nil
}

// avoided is how long it took until failing replicas had half of their share, and what failed
// there until then.
func (m *meter) avoided(before float64) (half, lost float64) {
	half = m.first(settled, repaired, sliceSpan, func(s float64) bool { return s <= before/2 })
	until := repaired
	if !math.IsInf(half, 1) {
		until = settled + int64(half*float64(sim.Second))
	}
	return half, float64(m.over(settled, until).failedMarked)
}

// awaitReturn runs a world on until the replicas that failed have their share again.
func (m *meter) awaitReturn(ctx context.Context, w *sim.World, before float64) (float64, error) {
	for {
		back := m.first(repaired, w.Now(), returnStretch, func(s float64) bool { return s >= returnShare*before })
		if !math.IsInf(back, 1) || w.Now() >= over {
			return back, nil
		}
		if err := advance(ctx, w, w.Now()+sim.Second); err != nil {
			return 0, err
		}
	}
}

// advance lets a world run in pieces, so that it ends soon after ctx does.
func advance(ctx context.Context, w *sim.World, until int64) error {
	for at := w.Now(); at < until; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		at = min(at+sim.Second, until)
		if err := w.Run(at); err != nil {
			return err
		}
	}
	return nil
}
