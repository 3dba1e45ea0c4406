package hosttest

import (
	"fmt"
	"strings"

	"github.com/headroom-lb/headroom/engine"
)

type op uint8

const (
	opFleet op = iota
	opDecide
	opReport
	opRecord
	opStatus
	opLoad
	opForget
	opProbes
	opEntries
	opTakeOver
)

// call is one call of a guest, as data: it can be made again, left out, or made plainer.
type call struct {
	op      op
	gap     engine.Duration // since the call before
	who     int             // number of a replica, in the fleet or not
	fleet   []row
	key     engine.Key
	tried   []int
	answers []answer
	status  engine.Status
	outcome engine.Outcome
	rif     uint32
	latency engine.Duration
	asked   engine.Duration // before now
	load    engine.LoadReport
	open    []flight
}

// flight is what another guest has in flight.
type flight struct {
	who     int
	queries uint32
}

type row struct {
	who      int
	weight   engine.Weight
	zone     int
	priority uint8
	status   engine.Status
}

type answer struct {
	who     int
	rif     uint32
	latency engine.Duration
}

const mostReplicas = 40

// identities are those of the replicas that there may be, and of one that there never is.
var identities = func() (ids [mostReplicas + 1]engine.ID) {
	for i := range ids {
		ids[i] = engine.IDOf(nameOf(i))
	}
	return ids
}()

func nameOf(who int) string { return fmt.Sprintf("r%d", who) }

// nameOfID is the name of a replica as the words of a report use it.
func nameOfID(id engine.ID) string {
	for i, known := range identities {
		if known == id {
			return nameOf(i)
		}
	}
	return fmt.Sprintf("#%016x", uint64(id))
}

var zones = [...]string{"", "zone-a", "zone-b"}

func candidates(rows []row) []engine.Candidate {
	cs := make([]engine.Candidate, len(rows))
	for i, r := range rows {
		cs[i] = engine.Candidate{
			ID: identities[r.who], Weight: r.weight, Locality: engine.LocalityOf(zones[r.zone]), Priority: r.priority, Status: r.status,
		}
	}
	return cs
}

func names(whos []int) string {
	out := make([]string, len(whos))
	for i, w := range whos {
		out[i] = nameOf(w)
	}
	return strings.Join(out, " ")
}

func (r row) String() string {
	var more []string
	if r.status != engine.StatusReady {
		more = append(more, r.status.String())
	}
	if r.weight > 0 {
		more = append(more, fmt.Sprint("weight ", r.weight))
	}
	if r.priority > 0 {
		more = append(more, fmt.Sprint("priority ", r.priority))
	}
	if r.zone > 0 {
		more = append(more, zones[r.zone])
	}
	if len(more) == 0 {
		return nameOf(r.who)
	}
	return nameOf(r.who) + " (" + strings.Join(more, ", ") + ")"
}

func latencyText(d engine.Duration) string {
	if d < 0 {
		return "unknown latency"
	}
	return fmt.Sprintf("latency %d ns", d)
}

// String is the call in words.
func (c *call) String() string {
	s := c.words()
	if c.gap != 0 {
		s = fmt.Sprintf("%d ns later: %s", c.gap, s)
	}
	return s
}

func (c *call) words() string {
	switch c.op {
	case opFleet:
		if len(c.fleet) == 0 {
			return "the fleet is empty"
		}
		out := make([]string, len(c.fleet))
		for i, r := range c.fleet {
			out[i] = r.String()
		}
		return "the fleet is " + strings.Join(out, ", ")
	case opDecide:
		s := "decide"
		if c.key != 0 {
			s += fmt.Sprint(", key ", uint64(c.key))
		}
		if len(c.tried) > 0 {
			s += ", tried " + names(c.tried)
		}
		for _, a := range c.answers {
			s += fmt.Sprintf(", answer of %s: RIF %d, %s", nameOf(a.who), a.rif, latencyText(a.latency))
		}
		return s
	case opReport:
		return fmt.Sprintf("report of %s: %s, %s", nameOf(c.who), c.outcome, latencyText(c.latency))
	case opRecord:
		return fmt.Sprintf("reading of %s: RIF %d, %s, asked %d ns ago", nameOf(c.who), c.rif, latencyText(c.latency), c.asked)
	case opStatus:
		return fmt.Sprintf("%s becomes %s", nameOf(c.who), c.status)
	case opLoad:
		return fmt.Sprintf("load report of %s: utilization %d, %d queries and %d errors in 1000 s", nameOf(c.who), c.load.Utilization, c.load.QPS, c.load.EPS)
	case opForget:
		return fmt.Sprintf("forget %s, asked %d ns ago", nameOf(c.who), c.asked)
	case opProbes:
		return "who is to be probed"
	case opEntries:
		return "what entries are held"
	default:
		s := "in flight are now"
		for _, f := range c.open {
			s += fmt.Sprintf(" %d on %s", f.queries, nameOf(f.who))
		}
		if len(c.open) == 0 {
			s += " none"
		}
		return s
	}
}

// source is a small generator, for the same reason as the engine's: the same seed gives the
// same calls everywhere and for ever.
type source struct{ x uint64 }

func newSource(seed uint64) *source {
	s := &source{x: seed*0x9e3779b97f4a7c15 + 1}
	s.next(2)
	return s
}

func (s *source) next(n int) int {
	s.x = s.x*6364136223846793005 + 1442695040888963407
	return int((s.x >> 33) % uint64(n))
}

// generate makes a fleet and calls about it. Fleets are small and numbers few, so that they meet.
func generate(seed uint64, length int) []call {
	s := newSource(seed)
	names := 1 + s.next(8)
	if s.next(6) == 0 {
		names = 1 + s.next(mostReplicas)
	}
	calls := []call{{op: opFleet, fleet: s.fleet(names)}}
	for len(calls) < length {
		calls = append(calls, s.call(names))
	}
	return calls
}

func (s *source) fleet(names int) []row {
	var rows []row
	for who := range names {
		if s.next(6) > 0 {
			rows = append(rows, row{who, engine.Weight(s.next(4)), s.next(3), uint8(s.next(3)), engine.Status(s.next(12) / 10)})
		}
	}
	for i := range rows {
		j := s.next(len(rows))
		rows[i], rows[j] = rows[j], rows[i]
	}
	return rows
}

func (s *source) call(names int) call {
	c := call{
		gap: engine.Duration([]int{0, 1, 40, 900, 2500}[s.next(5)]), who: s.next(names + 1),
		rif: uint32(s.next(12)), latency: engine.Duration(s.next(5000) - 50), asked: engine.Duration(s.next(2000)),
	}
	switch k := s.next(100); {
	case k < 40:
		c.op, c.key = opDecide, engine.Key(s.next(30))
		for range max(0, s.next(10)-6) {
			c.tried = append(c.tried, s.next(names+1))
		}
		for range max(0, s.next(12)-8) {
			c.answers = append(c.answers, answer{s.next(names + 1), uint32(s.next(12)), engine.Duration(s.next(5000) - 50)})
		}
	case k < 57:
		c.op, c.outcome = opReport, engine.Outcome(max(0, s.next(7)-3))
	case k < 78:
		c.op = opRecord
	case k < 86:
		c.op, c.status = opStatus, engine.Status(max(0, s.next(5)-2))
	case k < 88:
		c.op, c.load = opLoad, engine.LoadReport{Utilization: uint32(s.next(12000)), QPS: uint32(s.next(100000)), EPS: uint32(s.next(2000))}
	case k < 90:
		c.op = opForget
	case k < 95:
		c.op = opProbes
	case k < 96:
		c.op = opEntries
	case k < 97:
		c.op = opTakeOver
		for who := range names + 1 {
			if s.next(3) == 0 {
				c.open = append(c.open, flight{who, uint32(s.next(5))})
			}
		}
	default:
		c.op, c.fleet = opFleet, s.fleet(names)
	}
	return c
}
