// Package enginetest is the conformance kit of any policy: generated traffic, and the laws
// that every policy keeps whatever it decides.
package enginetest

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// Walker makes traffic from a seed: readings, queries with retries, outcomes, probes, changes
// of status and of the fleet, instants that repeat and jump. Two walkers with one seed make
// the same calls.
type Walker struct {
	Now   engine.Instant
	Fleet []engine.Candidate // as last set, statuses as last changed

	x      uint64
	script []byte // instead of the seed
	told   bool   // there is a script
	names  int
	ids    [64]engine.ID
	query  engine.Query
	tried  [8]engine.ID
	own    [6]engine.Answer
	d      engine.Decision
}

// zones are the localities of the walks' fleets.
var zones = [...]string{"", "zone-a", "zone-b"}

const mostReplicas = 60

// replicas are those that there may be, and one that there is not.
var replicas = func() (ids [mostReplicas + 1]engine.ID) {
	for i := range ids {
		ids[i] = engine.IDOf(fmt.Sprint("replica-", i))
	}
	return ids
}()

// NewWalker starts a walk and gives it its first fleet; Begin hands that to a machine.
func NewWalker(seed uint64) *Walker {
	w := &Walker{x: seed*2 + 1}
	w.redraw()
	return w
}

// NewScript is a walk that a fuzzer writes: every choice is a byte of the script, or two where
// one has not enough values. Walk until [Walker.Done]; beyond the end every choice is the first.
func NewScript(script []byte) *Walker {
	w := &Walker{script: script, told: true}
	w.redraw()
	return w
}

// Done reports whether the script is used up.
func (w *Walker) Done() bool { return w.told && len(w.script) == 0 }

// Begin sets the first fleet.
func (w *Walker) Begin(m engine.Machine) error { return m.SetCandidates(w.Now, w.Fleet) }

func (w *Walker) next(n int) int {
	if w.told {
		return w.read(n)
	}
	w.x = w.x*6364136223846793005 + 1442695040888963407
	return int((w.x >> 33) % uint64(n))
}

func (w *Walker) read(n int) (v int) {
	for span := 1; span < n && len(w.script) > 0; span *= 256 {
		v, w.script = v*256+int(w.script[0]), w.script[1:]
	}
	return v % n
}

func (w *Walker) redraw() {
	w.names = 1 + w.next(mostReplicas)
	fleet := make([]engine.Candidate, 0, w.names)
	for i := range w.names {
		if w.next(8) > 0 {
			fleet = append(fleet, engine.Candidate{
				ID: replicas[i], Weight: engine.Weight(w.next(4)),
				Priority: uint8(w.next(3)), Locality: engine.LocalityOf(zones[w.next(3)]), Status: engine.Status(w.next(12) / 10),
			})
		}
	}
	for i := range fleet {
		j := w.next(len(fleet))
		fleet[i], fleet[j] = fleet[j], fleet[i]
	}
	w.Fleet = fleet
}

// Replica names a replica that is probably in the fleet.
func (w *Walker) Replica() engine.ID { return replicas[w.next(w.names+1)] }

// Step is one call and what came of it. It holds until the walker's next.
type Step struct {
	Op       string
	Query    *engine.Query    // of a decide
	Decision *engine.Decision // of a decide that was placed
	Err      error
	said     any // of any other call
}

// Text is everything the machine said.
func (s Step) Text() string {
	if s.Decision != nil {
		return fmt.Sprintf("%s: %+v", s.Op, *s.Decision)
	}
	return fmt.Sprint(s.Op, ": ", s.said, " ", s.Err)
}

// Same reports whether another machine said the same. Decisions are most of a walk, and a
// hundred times dearer to print than to compare.
func (s Step) Same(o Step) bool {
	if s.Decision != nil && o.Decision != nil {
		return *s.Decision == *o.Decision
	}
	return s.Text() == o.Text()
}

// Step makes the next call on a machine.
func (w *Walker) Step(m engine.Machine) Step {
	w.Now += engine.Instant([]int{0, 1, 40, 900, 2500}[w.next(5)])
	switch op := w.next(1000); {
	case op < 450:
		rd := engine.Reading{
			RIF: uint32(w.next(40)), Latency: engine.Duration(w.next(5000) - 50), Asked: w.Now - engine.Instant(w.next(2000)),
		}
		a, err := m.Record(w.Now, w.Replica(), rd)
		return Step{Op: "record", Err: err, said: a}
	case op < 800:
		return w.decide(m)
	case op < 900:
		err := m.Report(w.Now, engine.Report{
			ID: w.Replica(), Outcome: engine.Outcome(w.next(4)), Latency: engine.Duration(w.next(9000)),
		})
		return Step{Op: "report", Err: err}
	case op < 980:
		due, err := m.Probes(w.Now, w.ids[:0])
		return Step{Op: "probes", Err: err, said: due}
	case op < 990:
		return w.status(m)
	case op < 992:
		id, l := w.Replica(), engine.LoadReport{Utilization: uint32(w.next(12000)), QPS: uint32(w.next(100000)), EPS: uint32(w.next(2000))}
		return Step{Op: "load", Err: m.RecordLoad(w.Now, id, l)}
	case op < 995:
		id := w.Replica()
		return Step{Op: "forget", Err: m.Forget(w.Now, id, w.Now-engine.Instant(w.next(1000)))}
	case op < 998:
		es, err := m.Entries(w.Now, nil)
		return Step{Op: "entries", Err: err, said: es}
	default:
		old := w.Fleet
		w.redraw()
		err := m.SetCandidates(w.Now, w.Fleet)
		if err != nil { // a policy may refuse a fleet; the old one stands
			w.Fleet = old
		}
		return Step{Op: "fleet", Err: err}
	}
}

func (w *Walker) decide(m engine.Machine) Step {
	w.query = engine.Query{Now: w.Now, Key: engine.Key(w.next(100)), Tried: w.tried[:0]}
	for range max(0, w.next(12)-8) {
		w.query.Tried = append(w.query.Tried, w.Replica())
	}
	w.query.Answers = w.own[:0]
	for range max(0, w.next(18)-12) {
		rd := engine.Reading{RIF: uint32(w.next(40)), Latency: engine.Duration(w.next(5000) - 50), Asked: w.Now}
		w.query.Answers = append(w.query.Answers, engine.Answer{ID: w.Replica(), Reading: rd})
	}
	s := Step{Op: "decide", Query: &w.query, Err: m.Decide(&w.query, &w.d)}
	if s.Err == nil {
		s.Decision = &w.d
	}
	return s
}

func (w *Walker) status(m engine.Machine) Step {
	id, st := w.Replica(), engine.Status(w.next(4))
	err := m.SetStatus(w.Now, id, st)
	if err == nil {
		for i := range w.Fleet {
			if w.Fleet[i].ID == id {
				w.Fleet[i].Status = st
			}
		}
	}
	return Step{Op: "status", Err: err, said: st}
}
