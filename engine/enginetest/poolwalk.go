package enginetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// PoolMaker makes a machine of a pool policy with settings of its spec line, as in
// "pool=8 quantile=0.5": each law chooses those that show what it is about.
type PoolMaker func(settings string) Maker

// poolWalk drives a machine and keeps what every law needs to know beside it.
type poolWalk struct {
	m      engine.Machine
	now    engine.Instant
	fleet  []engine.Candidate
	x      uint64
	window []windowed // RIFs said within windowAge, as the machine heard them
	lately []windowed // the last mostLately of them
	config poolConfig
	scale  engine.Duration // of latencies
	done   func()
}

type windowed struct {
	at  engine.Instant
	rif uint32
}

// poolConfig is what a law's settings mean, as far as laws ask.
type poolConfig struct {
	quantile  int // parts per 10,000
	window    int
	windowAge engine.Duration
	maxAge    engine.Duration
	minPool   int
}

// quiet are settings under which a decision takes its entry's use and nothing else.
const quiet = "remove_rate=0 aversion=off idle=0 window_age=4us max_age=5us window=16 "

var quietConfig = poolConfig{window: 16, windowAge: 4000, maxAge: 5000, minPool: 2}

func startPool(mk Maker, n int, seed uint64, c poolConfig) (*poolWalk, error) {
	m, done, err := mk()
	if err != nil {
		return nil, err
	}
	w := &poolWalk{m: m, x: 2*seed + 1, config: c, scale: 1, done: done}
	for i := range n {
		w.fleet = append(w.fleet, engine.Candidate{ID: engine.IDOf(fmt.Sprint("replica-", i))})
	}
	return w, m.SetCandidates(0, w.fleet)
}

func (w *poolWalk) next(n int) int {
	w.x = w.x*6364136223846793005 + 1442695040888963407
	return int((w.x >> 33) % uint64(n))
}

func (w *poolWalk) entries() ([]engine.Entry, error) { return w.m.Entries(w.now, nil) }

// record hands over a reading and enters it into the law's own window.
func (w *poolWalk) record(slot int, rd engine.Reading) (engine.Admission, error) {
	w.shed()
	w.window = append(w.window, windowed{w.now, rd.RIF})
	w.window = w.window[max(0, len(w.window)-w.config.window):]
	w.lately = append(w.lately, windowed{w.now, rd.RIF})
	w.lately = w.lately[max(0, len(w.lately)-mostLately):]
	if rd.Latency > 0 {
		rd.Latency *= w.scale
	}
	return w.m.Record(w.now, w.fleet[slot].ID, rd)
}

func (w *poolWalk) shed() {
	w.window = slices.DeleteFunc(w.window, func(r windowed) bool { return engine.Duration(w.now-r.at) >= w.config.windowAge })
}

// reading is a reading of a random replica; RIFs and latencies are few, so that they meet.
func (w *poolWalk) reading() (slot int, rd engine.Reading) {
	rd = engine.Reading{RIF: uint32(w.next(8)), Latency: engine.Duration(w.next(10)), Asked: w.now - engine.Instant(w.next(100))}
	if w.next(12) == 0 {
		rd.Latency = engine.UnknownLatency
	}
	return w.next(len(w.fleet)), rd
}

// threshold is the exact nearest rank over the window: the least RIF that a share of at least
// the quantile is not above.
func (w *poolWalk) threshold() uint32 {
	w.shed()
	n, q := len(w.window), w.config.quantile
	if n == 0 || q == 10000 {
		return engine.NoThreshold
	}
	rifs := make([]uint32, n)
	for i, r := range w.window {
		rifs[i] = r.rif
	}
	slices.Sort(rifs)
	return rifs[max((q*n+9999)/10000, 1)-1]
}

// offered are the entries of replicas that a query may go to.
func (w *poolWalk) offered(es []engine.Entry, tried []engine.ID) (out []engine.Entry) {
	for _, e := range es {
		i := slices.IndexFunc(w.fleet, func(c engine.Candidate) bool { return c.ID == e.ID })
		if i >= 0 && w.fleet[i].Status.Eligible() && !slices.Contains(tried, e.ID) {
			out = append(out, e)
		}
	}
	return out
}

// ranked replaces unknown latencies by the lower median of the known ones.
func ranked(es []engine.Entry) []engine.Entry {
	var known []engine.Duration
	for _, e := range es {
		if e.Latency != engine.UnknownLatency {
			known = append(known, e.Latency)
		}
	}
	slices.Sort(known)
	es = slices.Clone(es)
	for i := range es {
		if es[i].Latency == engine.UnknownLatency && len(known) > 0 {
			es[i].Latency = known[(len(known)-1)/2]
		}
	}
	return es
}

// order is what variants of hot-cold differ in.
type order struct {
	faster  string                                                      // in the name of a law
	better  func(w *poolWalk, a, b engine.Entry, threshold uint32) bool // whether a comes strictly before b
	smooths bool                                                        // latencies of readings
	scale   engine.Duration                                             // of latencies, where rounding does not show
}

var paper = order{faster: "faster", better: better, scale: 1}

// better goes by hot-cold, RIF, latency and receipt; the tie-break after those is the machine's own.
func better(_ *poolWalk, a, b engine.Entry, threshold uint32) bool {
	ha, hb := a.RIF > threshold, b.RIF > threshold
	switch {
	case ha != hb:
		return hb
	case ha && a.RIF != b.RIF:
		return a.RIF < b.RIF
	case a.Latency != b.Latency:
		return a.Latency < b.Latency
	case a.RIF != b.RIF:
		return a.RIF < b.RIF
	}
	return a.At > b.At
}

// decision is one query with the pool before and after it.
type decision struct {
	engine.Decision
	err           error
	tried         []engine.ID
	before, after []engine.Entry
}

func (w *poolWalk) decide(tried []engine.ID) (d decision, err error) {
	d.tried = tried
	if d.before, err = w.entries(); err != nil {
		return d, err
	}
	d.err = w.m.Decide(&engine.Query{Now: w.now, Tried: tried}, &d.Decision)
	d.after, err = w.entries()
	return d, err
}

// stroll makes readings, changes of status and queries, and hands the queries to look.
func (w *poolWalk) stroll(steps int, look func(d *decision) error) error {
	for i := range steps {
		w.now += engine.Instant([]int{0, 1, 1, 40, 300, 900}[w.next(6)])
		if es, err := w.entries(); err == nil && len(es) > 0 && w.next(20) == 0 { // to the very end of an entry's time
			w.now = max(w.now, es[w.next(len(es))].At+engine.Instant(w.config.maxAge))
		}
		switch op := w.next(20); {
		case op < 11:
			if _, err := w.record(w.reading()); err != nil {
				return err
			}
		case op < 18:
			var tried []engine.ID
			for range max(0, w.next(5)-2) {
				tried = append(tried, w.fleet[w.next(len(w.fleet))].ID)
			}
			d, err := w.decide(tried)
			if err != nil {
				return err
			}
			if errors.Is(d.err, engine.ErrNoneEligible) {
				continue
			}
			if err := errors.Join(d.err, look(&d)); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		default:
			c := &w.fleet[w.next(len(w.fleet))]
			c.Status = engine.Status(max(0, w.next(4)-1))
			if err := w.m.SetStatus(w.now, c.ID, c.Status); err != nil {
				return err
			}
		}
	}
	return nil
}

// of finds a replica's entry.
func of(es []engine.Entry, id engine.ID) *engine.Entry {
	for i := range es {
		if es[i].ID == id {
			return &es[i]
		}
	}
	return nil
}
