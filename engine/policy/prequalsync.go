package policy

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// PrequalSync is Prequal in its synchronous mode (paper, section 4): each query has probes of its
// own, and decides on their answers ([engine.Query.Answers]). No reading is kept for the next
// query, so a replica may answer for this query alone, as one that has its data cached.
//
// Per query: [PrequalSync.Probes] names d distinct eligible replicas, uniform; the host probes
// them and brings what has come. Each answer's RIF enters the RIF window; the first wait answers
// are ranked by the hot-cold rule, as entries of a pool are; fewer are ranked as well as they go,
// and with none a uniform draw decides.
//
// Cost O(wait²), whatever the fleet. Ties: RIF and latency, then the later asked, then a hash of
// seed and replica, so that clients do not agree on them. It fails as the engine does, when no
// candidate is open.
type PrequalSync struct {
	engine.Base
	c      PrequalSyncConfig
	spec   string
	window probe.Window
	ballot probe.Pool // of one decision: empty before it and after, so that it is not state
	words  []uint64   // the ballot's
	h      *[syncHead]uint64
	taken  probe.Incoming // scratch
	errs   aversion
}

// The policy's own words; the window's follow.
const (
	wSyncDecisions = iota
	wSyncFallbacks
	wSyncReadings
	wSyncProbesDue
	wSyncAversion // aversion's words
	syncHead      = wSyncAversion + aversionHead
)

// PrequalSyncConfig is everything that can be set of [PrequalSync]. The quantile is in parts per
// 10,000. Start from [DefaultPrequalSync]: every zero means zero.
type PrequalSyncConfig struct {
	Seed      uint64
	Probes    int             // d, for each query: 2 to engine.MaxAnswers
	Wait      int             // answers that decide: 1 to Probes; more see further, and wait for slower replicas
	Quantile  uint64          // of the RIF window, above which an answer is hot; 0 ranks by RIF alone, 1 by latency alone
	Window    int             // RIF readings remembered: 1 to 4096
	WindowAge engine.Duration // and for how long
	Aversion  bool            // rank replicas that fail this client's queries behind the others
}

// DefaultPrequalSync is three probes, two of whose answers decide; the paper has 3 to 5, and d-1.
func DefaultPrequalSync(seed uint64) PrequalSyncConfig {
	return PrequalSyncConfig{
		Seed: seed, Probes: 3, Wait: 2, Quantile: 8400, Window: 128, WindowAge: engine.Second, Aversion: true,
	}
}

// validate says which setting is out of range.
func (c *PrequalSyncConfig) validate() error {
	v := bounds{policy: "prequal"}
	v.whole("probes", c.Probes, 2, engine.MaxAnswers)
	v.whole("wait", c.Wait, 1, c.Probes)
	v.parts("quantile", c.Quantile, 0, probe.Unit)
	v.whole("window", c.Window, 1, probe.MaxWindow)
	v.span("window_age", c.WindowAge, leastAge, mostAge)
	return v.err()
}

// Settings of one mode alone.
var (
	asyncOnly = []string{"variant", "pool", "max_age", "probe_rate", "remove_rate", "delta", "min_pool", "idle", "reuse", "fit"}
	syncOnly  = []string{"probes", "wait"}
)

// prequalMode makes the policy of a mode.
func (s *settings) prequalMode() (engine.Policy, error) {
	s.text("seed") // first in the list of what there is
	if s.choice("mode", "async", "sync") == "sync" {
		s.foreign(asyncOnly, "async")
		return NewPrequalSync(s.prequalSync())
	}
	s.foreign(syncOnly, "sync")
	if s.choice("variant", "paper", "keen") == "keen" {
		return NewPrequalKeen(s.prequal(DefaultPrequalKeen))
	}
	return NewPrequal(s.prequal(DefaultPrequal))
}

// foreign refuses settings that mean something in another mode only.
func (s *settings) foreign(keys []string, mode string) {
	for i, k := range s.keys {
		if s.err == nil && slices.Contains(keys, k) {
			s.err = &engine.ConfigError{Policy: s.policy, Key: k, Value: clip(s.values[i]), Reason: "applies to mode=" + mode + " only"}
		}
	}
}

func (s *settings) prequalSync() PrequalSyncConfig {
	c := DefaultPrequalSync(s.uint64("seed", 0))
	c.Probes = s.integer("probes", c.Probes)
	c.Wait = s.integer("wait", max(c.Probes-1, 1))
	c.Quantile = s.parts("quantile", c.Quantile)
	c.Window = s.integer("window", c.Window)
	c.WindowAge = s.duration("window_age", c.WindowAge)
	c.Aversion = s.choice("aversion", "on", "off") == "on"
	s.choice("fallback", "random")
	return c
}

func (c *PrequalSyncConfig) spec() string {
	d := DefaultPrequalSync(c.Seed)
	l := newLine("prequal").seed(c.Seed).set("mode", "sync")
	l.whole("probes", c.Probes, d.Probes)
	l.whole("wait", c.Wait, c.Probes-1)
	l.parts("quantile", c.Quantile, d.Quantile)
	l.whole("window", c.Window, d.Window)
	l.span("window_age", c.WindowAge, d.WindowAge)
	if !c.Aversion {
		l.set("aversion", "off")
	}
	return l.String()
}

// NewPrequalSync makes the policy, or says which setting is wrong.
func NewPrequalSync(c PrequalSyncConfig) (*PrequalSync, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	p := &PrequalSync{c: c, spec: c.spec()}
	p.window.Init(c.Window, c.WindowAge, c.Quantile)
	p.ballot.Init(c.Wait, 1, hotCold)
	p.words = make([]uint64, p.ballot.Words())
	return p, nil
}

// Name is "prequal".
func (*PrequalSync) Name() string { return "prequal" }

// Spec is the canonical line.
func (p *PrequalSync) Spec() string { return p.spec }

// Seed starts the fallback and the probe targets.
func (p *PrequalSync) Seed() uint64 { return p.c.Seed }

// Layout asks for the window, and an error average for each replica.
func (p *PrequalSync) Layout() engine.Layout {
	return engine.Layout{Fixed: syncHead + p.window.Words(), PerSlot: aversionSlot}
}

// Bind attaches the window to its words and empties the ballot.
func (p *PrequalSync) Bind(fixed []uint64, s *engine.Set, _ bool) {
	p.Set = s
	p.h = (*[syncHead]uint64)(fixed)
	p.errs = aversion{off: !p.c.Aversion, set: s, words: (*[aversionHead]uint64)(p.h[wSyncAversion:])}
	p.window.Bind(fixed[syncHead:])
	clear(p.words)
	p.ballot.Bind(p.words, s, true)
}

// Changed follows the statuses.
func (p *PrequalSync) Changed() { p.ballot.Changed() }

// Decide applies the rule to the query's answers.
func (p *PrequalSync) Decide(now engine.Instant, _ engine.Key) error {
	p.h[wSyncDecisions]++
	p.poll(now)
	d := &p.Set.Out
	if p.ballot.Len() == 0 {
		p.h[wSyncFallbacks]++
		d.Index, d.Regime, d.Cause = p.Set.DrawOpen(), engine.RegimeFallback, engine.CauseEmpty
		d.Offered, d.Cold, d.Hot, d.Threshold = 0, 0, 0, p.window.Threshold()
		d.RIF, d.Latency, d.Age, d.UsesLeft = 0, 0, 0, 0
		return nil
	}
	o := p.ballot.Offered()
	p.ballot.Take(now, o.Best, o.Entries, o.Cold)
	if d.Latency == engine.UnknownLatency {
		d.Latency = o.Median
	}
	if d.Age < 0 { // asked longer ago than a span can say
		d.Age = 1<<63 - 1
	}
	p.ballot.Clear()
	return nil
}

// poll takes the answers in: all into the window, the first wait of them onto the ballot. Its
// entries serve once, and are as old as their probes.
func (p *PrequalSync) poll(now engine.Instant) {
	p.expire(now)
	in := &p.taken
	for i := range p.Set.Answers() {
		a := &p.Set.Answers()[i]
		p.read(now, a.Slot, &a.Reading)
		if i < p.c.Wait {
			in.Uses, in.Asked = 1, a.Reading.Asked
			p.ballot.Record(a.Reading.Asked, in)
		}
	}
	p.ballot.SetThreshold(p.window.Threshold())
}

// read takes one reading's RIF into the window, and leaves the reading as ranked in scratch.
func (p *PrequalSync) read(now engine.Instant, slot uint32, rd *engine.Reading) {
	p.h[wSyncReadings]++
	p.window.Add(now, rd.RIF)
	p.taken.Slot = slot
	p.errs.rank(now, &p.taken, rd)
}

func (p *PrequalSync) expire(now engine.Instant) {
	if now >= p.window.Due() {
		p.window.Expire(now)
	}
}

// Observe weighs failures: see aversion.go.
func (p *PrequalSync) Observe(now engine.Instant, slot uint32, r engine.Report) {
	p.errs.observe(now, slot, r.Outcome)
}

// Record takes the RIF of a reading that belongs to no decision into the window: an answer that
// came too late, or a reading on an ordinary answer.
func (p *PrequalSync) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	p.expire(now)
	p.read(now, slot, &rd)
	return engine.NotKept
}

// Probes appends d distinct eligible replicas, uniform without replacement, for one query; all
// of them, if there are fewer. Nothing is due without a query.
func (p *PrequalSync) Probes(_ engine.Instant, dst []engine.ID) []engine.ID {
	k := min(uint32(p.c.Probes), uint32(p.Set.Eligible()))
	p.h[wSyncProbesDue] += uint64(k)
	return drawEligible(p.Set, k, dst)
}

// Explain shows the answers: those that are ranked, in the order in which they would decide, then
// those that came after them.
func (p *PrequalSync) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	x.Unit = "place in the hot-cold order"
	p.poll(now)
	o := p.ballot.Offered()
	ranked := p.ballot.Offers(-1<<63, 1, nil) // as of the first instant there is: nothing is too old
	for i := range ranked {
		slot, _ := p.Set.Slot(ranked[i].ID)
		x.Weigh(p.Set, slot, uint64(i))
		x.Weighed[i].Entry = &ranked[i]
	}
	for i, a := range p.Set.Answers() {
		if i >= p.c.Wait {
			x.Weigh(p.Set, a.Slot, 0)
			x.Weighed[i].Verdict = engine.VerdictUnweighed
		}
	}
	if late := len(p.Set.Answers()) - len(ranked); late > 0 {
		x.Notes = append(x.Notes, plural(late, "answer")+" beyond the first "+itoa(p.c.Wait)+" did not decide (wait="+itoa(p.c.Wait)+")")
	}
	p.ballot.Clear()
	if len(ranked) == 0 {
		x.Because = "was drawn among the open candidates, because none of this query's probes was answered in time"
		return
	}
	x.Because = hotColdReason(&o, &ranked[0], p.window.Threshold(), "answers")
}

// Inspect shows the counters, and how many probes a query has.
func (p *PrequalSync) Inspect(c *engine.Counters, f *engine.Fit) {
	c.Decisions, c.Fallbacks = p.h[wSyncDecisions], p.h[wSyncFallbacks]
	c.Readings, c.ProbesDue = p.h[wSyncReadings], p.h[wSyncProbesDue]
	f.Threshold, f.WindowFilled = p.window.Threshold(), uint32(p.window.Len())
	f.Probes, f.Wait = uint32(p.c.Probes), uint32(p.c.Wait)
}

// Valid checks the restored words.
func (p *PrequalSync) Valid() bool {
	return p.errs.valid() && p.h[wSyncFallbacks] <= p.h[wSyncDecisions] && p.window.Valid(p.Set.Last())
}
