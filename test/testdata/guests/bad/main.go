//go:build wasip1

// A guest that decides like round robin and misbehaves when it is told to: the affinity key
// names the fault. It is here so that hosts can be shown to survive it.
package main

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/wasm/guest"
)

func init() { guest.Serve(parse, "bad") }

func main() {}

type bad struct {
	*policy.RoundRobin
	set    *engine.Set
	probes uint32 // that it says a query has
	words  int    // of its state block
}

func parse(spec string) (engine.Policy, error) {
	b := &bad{RoundRobin: policy.NewRoundRobin(0)}
	switch spec {
	case "bad":
	case "bad probes":
		b.probes = 99
	case "bad block":
		b.words = 3 << 20
	default:
		return nil, &engine.ConfigError{Policy: spec, Reason: "only bad is known here"}
	}
	return b, nil
}

func (b *bad) Inspect(_ *engine.Counters, f *engine.Fit) { f.Probes, f.Wait = b.probes, b.probes }

func (b *bad) Layout() engine.Layout {
	l := b.RoundRobin.Layout()
	l.Fixed += b.words
	return l
}

func (b *bad) Name() string { return "bad" }
func (b *bad) Spec() string { return "bad" }

func (b *bad) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	b.set = s
	b.RoundRobin.Bind(fixed, s, fresh)
}

var (
	panics = engine.KeyOf("panic")
	lies   = engine.KeyOf("out of range")
	drains = engine.KeyOf("not eligible")
	eats   = engine.KeyOf("eat memory")
	deep   = engine.KeyOf("recurse")
	loops  = engine.KeyOf("loop")
	slow   = engine.KeyOf("slow")
)

var eaten [][]byte

func (b *bad) Decide(now engine.Instant, key engine.Key) error {
	if err := b.RoundRobin.Decide(now, key); err != nil {
		return err
	}
	switch key {
	case panics:
		panic("as asked")
	case lies:
		b.set.Out.Index = 0 // the engine counts it in flight; the regime is what gives it away
		b.set.Out.Regime = 99
	case drains:
		for slot := range uint32(b.set.Len()) {
			if !b.set.IsEligible(slot) {
				b.set.Out.Index = slot
			}
		}
	case eats:
		for {
			eaten = append(eaten, make([]byte, 1<<20))
		}
	case loops:
		for n := uint32(1); n != 0; n |= 1 {
			b.set.Out.RIF += n
		}
	case slow:
		b.set.Out.RIF = spin(100_000_000)
	case deep:
		b.set.Out.RIF = dive(1)
	}
	return nil
}

//go:noinline
func dive(n uint32) uint32 {
	if n == 0 {
		return 0
	}
	return dive(n+1) + n
}

// spin takes a while, but not for ever.
//
//go:noinline
func spin(n uint32) (sum uint32) {
	for ; n > 0; n-- {
		sum = sum*3 + n
	}
	return sum
}
