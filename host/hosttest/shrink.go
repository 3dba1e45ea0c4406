package hosttest

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// attempts bounds the trials that cutting a counterexample down may take.
const attempts = 800

// shrink leaves calls out and makes others plainer for as long as they still break the law.
func shrink(calls []call, breaks func([]call) bool) []call {
	left := attempts
	try := func(next []call) bool {
		if left == 0 {
			return false
		}
		left--
		if !breaks(next) {
			return false
		}
		calls = next
		return true
	}
	for again := true; again && left > 0; {
		again = false
		for size := max(1, len(calls)/2); size > 0; size /= 2 {
			for at := len(calls) - size; at >= 0; at -= size {
				if at+size <= len(calls) && try(slices.Delete(slices.Clone(calls), at, at+size)) {
					again = true
				}
			}
		}
		for i := range calls {
			for plainOne(calls[i], func(c call) bool {
				next := slices.Clone(calls)
				next[i] = c
				return try(next)
			}) {
				again = true
			}
		}
	}
	return calls
}

// plainOne offers a call with one thing less, in one way after another, until one is taken.
func plainOne(c call, take func(call) bool) bool {
	change := func(f func(*call)) bool {
		next := c
		next.fleet, next.tried = slices.Clone(c.fleet), slices.Clone(c.tried)
		f(&next)
		return next.String() != c.String() && take(next)
	}
	for size := len(c.fleet); size > 0; size /= 2 {
		for at := len(c.fleet) - size; at >= 0; at -= size {
			if change(func(n *call) { n.fleet = slices.Delete(n.fleet, at, at+size) }) {
				return true
			}
		}
	}
	for i := range c.fleet {
		if change(func(n *call) { n.fleet[i] = row{who: n.fleet[i].who, status: n.fleet[i].status} }) ||
			change(func(n *call) { n.fleet[i].status = engine.StatusReady }) {
			return true
		}
	}
	for i := range c.tried {
		if change(func(n *call) { n.tried = slices.Delete(n.tried, i, i+1) }) {
			return true
		}
	}
	for i := range c.open {
		if change(func(n *call) { n.open = slices.Delete(slices.Clone(c.open), i, i+1) }) {
			return true
		}
	}
	return change(func(n *call) { n.answers = nil }) ||
		change(func(n *call) { n.gap = 0 }) ||
		change(func(n *call) { n.key = 0 }) ||
		change(func(n *call) { n.asked = 0 }) ||
		change(func(n *call) { n.rif = min(n.rif, 1) }) ||
		change(func(n *call) { n.latency = min(n.latency, 1) }) ||
		change(func(n *call) { n.outcome = engine.OutcomeSuccess })
}
