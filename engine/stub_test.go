package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// stub is a policy that decides for the first open candidate and writes down what it is told.
type stub struct {
	engine.Base
	seed    uint64
	layout  engine.Layout
	fixed   []uint64
	log     []string
	refuse  error // of Admit
	fail    error // of Decide
	failing func(s *engine.Set) error
	invalid bool
	choose  func(s *engine.Set) uint32
	explain func(s *engine.Set, x *engine.Explanation)
}

func (p *stub) say(format string, args ...any) { p.log = append(p.log, fmt.Sprintf(format, args...)) }

// told is the log since it was last read.
func (p *stub) told() []string {
	log := p.log
	p.log = nil
	return log
}

func (p *stub) Name() string          { return "stub" }
func (p *stub) Spec() string          { return fmt.Sprint("stub seed=", p.seed) }
func (p *stub) Seed() uint64          { return p.seed }
func (p *stub) Layout() engine.Layout { return p.layout }
func (p *stub) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	p.fixed, p.Set = fixed, s
	p.say("bind %d words, %d candidates, fresh %t", len(fixed), s.Len(), fresh)
}
func (p *stub) Admit(cs []engine.Candidate) error { return p.refuse }
func (p *stub) Moved(remap []int32)               { p.say("moved %v", remap) }
func (p *stub) Changed()                          { p.say("changed, %d eligible", p.Set.Eligible()) }
func (p *stub) Decide(now engine.Instant, key engine.Key) error {
	p.say("decide %d %d", now, key)
	if p.fail != nil {
		return p.fail
	}
	if p.failing != nil {
		if err := p.failing(p.Set); err != nil {
			return err
		}
	}
	p.Set.Out = engine.Decision{Index: p.Set.OpenAt(0), RIF: 4}
	if p.choose != nil {
		p.Set.Out.Index = p.choose(p.Set)
	}
	return nil
}
func (p *stub) Observe(now engine.Instant, slot uint32, r engine.Report) {
	p.say("observe %d %d %s %d", now, slot, r.Outcome, r.Latency)
}
func (p *stub) Record(now engine.Instant, slot uint32, rd engine.Reading) engine.Admission {
	p.say("record %d %d %+v", now, slot, rd)
	return engine.Replaced
}
func (p *stub) RecordLoad(now engine.Instant, slot uint32, l engine.LoadReport) {
	p.say("load %d %d %+v", now, slot, l)
}
func (p *stub) Forget(slot uint32, asked engine.Instant) { p.say("forget %d %d", slot, asked) }
func (p *stub) Probes(now engine.Instant, dst []engine.ID) []engine.ID {
	return append(dst, engine.ID(now))
}
func (p *stub) Entries(now engine.Instant, dst []engine.Entry) []engine.Entry {
	return append(dst, engine.Entry{At: now})
}
func (p *stub) Explain(now engine.Instant, key engine.Key, x *engine.Explanation) {
	p.say("explain %d %d", now, key)
	if p.explain != nil {
		p.explain(p.Set, x)
	}
}
func (p *stub) Inspect(c *engine.Counters, f *engine.Fit) { c.Decisions += 3; f.Pool += 2 }
func (p *stub) Valid() bool                               { return !p.invalid }

var errOwn = errors.New("the policy's own")

// ids is a fleet of ready candidates.
func ids(of ...engine.ID) (cs []engine.Candidate) {
	for _, id := range of {
		cs = append(cs, engine.Candidate{ID: id})
	}
	return cs
}

func started(t *testing.T, cs []engine.Candidate) (*engine.Engine, *stub) {
	t.Helper()
	p := &stub{seed: 7, layout: engine.Layout{Fixed: 3, PerSlot: 2}}
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(100, cs))
	p.told()
	return e, p
}

func snapshot(t *testing.T, e *engine.Engine) []byte {
	t.Helper()
	b, err := e.Snapshot(nil)
	require.NoError(t, err)
	return b
}

func decide(t *testing.T, e *engine.Engine, q engine.Query) engine.Decision {
	t.Helper()
	var d engine.Decision
	require.NoError(t, e.Decide(&q, &d))
	return d
}
