package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Readings come in when they come; a decision uses what the pool holds.
func ExamplePrequal() {
	p, err := policy.Parse("prequal seed=7")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	a, b, c := engine.IDOf("a"), engine.IDOf("b"), engine.IDOf("c")
	_ = e.SetCandidates(0, []engine.Candidate{{ID: a}, {ID: b}, {ID: c}})
	now := engine.Instant(engine.Millisecond)
	_, _ = e.Record(now, a, engine.Reading{RIF: 2, Latency: 9 * engine.Millisecond, Asked: now})
	_, _ = e.Record(now, b, engine.Reading{RIF: 3, Latency: 4 * engine.Millisecond, Asked: now})

	var d engine.Decision
	_ = e.Decide(&engine.Query{Now: now}, &d)
	fmt.Println(d.ID == b, d.Regime, d.RIF)
	// Output: true cold 3
}

// The keen variant weighs what is in the way: b is faster by itself, and busier than usual.
func ExamplePrequalKeen() {
	p, err := policy.Parse("prequal seed=7 variant=keen")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	a, b, c := engine.IDOf("a"), engine.IDOf("b"), engine.IDOf("c")
	_ = e.SetCandidates(0, []engine.Candidate{{ID: a}, {ID: b}, {ID: c}})
	now := engine.Instant(engine.Millisecond)
	_, _ = e.Record(now, a, engine.Reading{RIF: 1, Latency: 9 * engine.Millisecond, Asked: now})
	_, _ = e.Record(now, b, engine.Reading{RIF: 7, Latency: 6 * engine.Millisecond, Asked: now})
	_, _ = e.Record(now, c, engine.Reading{RIF: 1, Latency: 20 * engine.Millisecond, Asked: now})

	var d engine.Decision
	_ = e.Decide(&engine.Query{Now: now}, &d)
	fmt.Println(d.ID == a, d.Regime, d.RIF)
	// Output: true cold 1
}

// With mode=sync the host probes for each query, and the query brings the answers.
func ExamplePrequalSync() {
	p, err := policy.Parse("prequal seed=7 mode=sync probes=3 wait=2")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	a, b, c := engine.IDOf("a"), engine.IDOf("b"), engine.IDOf("c")
	_ = e.SetCandidates(0, []engine.Candidate{{ID: a}, {ID: b}, {ID: c}})
	due, _ := e.Probes(0, nil)
	fmt.Println(len(due), "probes for this query")

	var d engine.Decision
	_ = e.Decide(&engine.Query{Now: 5, Answers: []engine.Answer{
		{ID: c, Reading: engine.Reading{RIF: 1, Latency: 6 * engine.Millisecond}},
		{ID: a, Reading: engine.Reading{RIF: 1, Latency: 2 * engine.Millisecond}},
	}}, &d)
	fmt.Println(d.ID == a, d.Regime, d.Offered)
	_ = e.Decide(&engine.Query{Now: 6}, &d) // nobody answered in time, and nothing was kept
	fmt.Println(d.Regime, d.Cause)
	// Output:
	// 3 probes for this query
	// true cold 2
	// fallback empty
}
