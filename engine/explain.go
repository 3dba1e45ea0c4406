package engine

import (
	"slices"
	"strconv"
)

// Verdict says what a decision made of one candidate or entry.
type Verdict uint8

const (
	VerdictLost       Verdict = iota // weighed, and another was better
	VerdictChosen                    // decided for
	VerdictRunnerUp                  // would decide if the chosen one were tried already
	VerdictTied                      // as good as the chosen one; the tie-break settled it
	VerdictIneligible                // draining or unavailable
	VerdictTried                     // this query has been there
	VerdictFull                      // at its capacity
	VerdictRemoved                   // an entry that left before the decision
	VerdictUnweighed                 // open, and the rule did not look at it
)

var verdictNames = [...]string{"lost", "chosen", "runner_up", "tied", "ineligible", "tried", "full", "removed", "unweighed"}

// String returns the verdict's name in documents.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "invalid"
}

// Weighed is one candidate, or one entry of a pool, as a decision saw it.
type Weighed struct {
	ID       ID
	Slot     uint32
	Verdict  Verdict
	Compared bool   // the rule got as far as its load
	Load     uint64 // what the rule compares, in the explanation's Unit; less is better
	Weight   uint32 // relative capacity
	Entry    *Entry // of a pool, as the decision found it; nil for a rule without one
}

// Explanation is a decision as data: what it weighed, who was second, what settled it.
type Explanation struct {
	Decision Decision
	Err      error // instead of a decision
	Rule     string
	Unit     string // of Load: what is compared
	Because  string // why the chosen one, to follow its name: "has the fewest queries in flight (3)"
	TieBreak string // what settles equal loads; empty if nothing can be equal
	Ties     int    // others that were equal with the chosen one
	Weighed  []Weighed
	RunnerUp ID       // who decides if the chosen one is to be avoided
	Second   bool     // there is a runner-up
	Notes    []string // what else an operator would want to know: shares, capacities, owners
}

// Weigh adds a candidate that the rule looked at.
func (x *Explanation) Weigh(s *Set, slot uint32, load uint64) {
	x.Weighed = append(x.Weighed, Weighed{ID: s.ID(slot), Slot: slot, Compared: true, Load: load, Weight: s.Weight(slot)})
}

// Sentence is the decision in words; name tells a replica's name.
func (x *Explanation) Sentence(name func(ID) string) string {
	if x.Err != nil {
		return "not placed: " + x.Err.Error()
	}
	s := name(x.Decision.ID)
	if x.Because != "" {
		s += " " + x.Because
	}
	switch {
	case x.Ties == 1:
		s += "; one other was equal, " + x.TieBreak
	case x.Ties > 1:
		s += "; " + strconv.Itoa(x.Ties) + " others were equal, " + x.TieBreak
	}
	if x.Second {
		s += "; next would be " + name(x.RunnerUp)
	}
	return s
}

// Explain says why a query would be placed where it would be placed now. Nothing changes: the
// decision that follows is the one explained. It allocates, and is for people and tests.
func (e *Engine) Explain(q *Query) *Explanation {
	x := &Explanation{Rule: e.policy.Name()}
	saved := append([]uint64(nil), e.block...)
	if err := e.Attach(q.Now, q.Tried, q.Answers); err != nil {
		x.Err = err
		return x
	}
	s := e.set
	if now := e.advance(q.Now); s.Open() > 0 {
		e.policy.Explain(now, q.Key, x)
	}
	e.rollback(saved)
	x.Err = e.Decide(q, &x.Decision)
	e.rollback(saved)
	if x.Err == nil && len(q.Tried) < MaxTried {
		again := *q
		again.Tried = append(append([]ID(nil), q.Tried...), x.Decision.ID)
		var second Decision
		if e.Decide(&again, &second) == nil {
			x.RunnerUp, x.Second = second.ID, true
		}
		e.rollback(saved)
	}
	e.judge(q, x)
	return x
}

// rollback puts back the words of a block that only a decision has touched since.
func (e *Engine) rollback(saved []uint64) {
	copy(e.block, saved)
	e.rebind(e.block)
}

// judge gives each row its verdict and adds the candidates that the rule left out.
func (e *Engine) judge(q *Query, x *Explanation) {
	seen := make([]bool, len(e.set.cands))
	best := uint64(0)
	for i := range x.Weighed {
		w := &x.Weighed[i]
		if x.Err == nil && w.ID == x.Decision.ID {
			if w.Verdict == VerdictRemoved { // and drawn all the same: it gets a second row
				continue
			}
			w.Verdict, best = VerdictChosen, w.Load
		}
		seen[w.Slot] = true
	}
	for i := range x.Weighed {
		w := &x.Weighed[i]
		switch {
		case w.Verdict != VerdictLost:
		case x.TieBreak != "" && w.Compared && w.Load == best:
			w.Verdict = VerdictTied
			x.Ties++
		case x.Second && w.ID == x.RunnerUp:
			w.Verdict = VerdictRunnerUp
		}
	}
	for slot, c := range e.set.cands {
		if seen[slot] {
			continue
		}
		w := Weighed{ID: c.ID, Slot: uint32(slot), Weight: e.set.Weight(uint32(slot)), Verdict: VerdictUnweighed}
		switch {
		case !e.set.IsEligible(uint32(slot)):
			w.Verdict = VerdictIneligible
		case slices.Contains(q.Tried, c.ID):
			w.Verdict = VerdictTried
		case x.Err == nil && c.ID == x.Decision.ID:
			w.Verdict = VerdictChosen
		case x.Second && c.ID == x.RunnerUp:
			w.Verdict = VerdictRunnerUp
		}
		x.Weighed = append(x.Weighed, w)
	}
}
