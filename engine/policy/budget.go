package policy

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// budget is what a fleet of a given size can sustain. The mean number of uses per entry is
// num/den, held as a ratio so that its rounding keeps the mean exactly.
type budget struct {
	num, den   uint64
	whole      uint32 // num/den, for rounding
	rest       uint64 // num%den
	pool       uint64
	removeRate uint64 // parts per 10,000
	shrunk     bool   // the small-fleet rule is in force
}

// derive gives the reuse budget of the paper's equation 1,
//
//	b = max(1, (1+delta) / ((1 - pool/n) * probe_rate - remove_rate))
//
// for n eligible replicas, and reports whether n lies in its domain: more replicas than pool
// entries, a positive denominator, and min_pool entries left of a full pool when those that
// are due have been removed.
func (c *PoolConfig) derive(n int) (b budget, ok bool) {
	b = budget{pool: uint64(c.Pool), removeRate: c.RemoveRate}
	in := (n - c.Pool) * int(c.ProbeRate)
	out := n * int(c.RemoveRate)
	if n <= c.Pool || in <= out || int(c.RemoveRate) > (c.Pool-c.MinPool)*probe.Unit {
		return b, false
	}
	b.num, b.den = (probe.Unit+c.Delta)*uint64(n), uint64(in-out)
	return b, true
}

// The small-fleet rule keeps at least this inflow of entries after removal, per query, and
// never lets the reuse budget grow beyond (1+delta)/leastInflow.
const (
	spareInflow = probe.Unit / 2
	leastInflow = probe.Unit / 5
)

// fit is the small-fleet rule, for fleets outside the domain: a pool of half the fleet, with
// room for one removal above min_pool; a removal rate that leaves half an entry of inflow per
// query and min_pool entries; and the window as it is. A probe often replaces its replica's
// older entry there, so inflow is taken as at least 0.2.
func (c *PoolConfig) fit(n int) budget {
	pool := min(max(n/2, c.MinPool+1), c.Pool)
	inflow := 0
	if n > pool {
		inflow = (n - pool) * int(c.ProbeRate) / n
	}
	remove := min(max(inflow-spareInflow, 0), int(c.RemoveRate), (pool-c.MinPool)*probe.Unit)
	return budget{
		num: probe.Unit + c.Delta, den: uint64(max(inflow-remove, leastInflow)),
		pool: uint64(pool), removeRate: uint64(remove), shrunk: true,
	}
}

// settle makes the budget at least one and ready for rounding; whole stays within a record's
// field.
func (b *budget) settle() {
	if b.num < b.den || b.den == 0 {
		b.num, b.den = 1, 1
	}
	b.whole, b.rest = uint32(min(b.num/b.den, 1<<31)), b.num%b.den
}

func (c *PoolConfig) outsideDomain(policy string, n int) error {
	return &engine.ConfigError{
		Policy: policy, Key: "fit", Value: "strict",
		Reason: "a pool of " + itoa(c.Pool) + " cannot sustain itself with " + itoa(n) +
			" eligible replicas: needs more replicas than pool entries, (1 - pool/n)*probe_rate = " +
			inflowText(c, n) + " above remove_rate = " + decimal(c.RemoveRate) + ", and pool - remove_rate at least min_pool = " +
			itoa(c.MinPool) + "; use fit=auto, a smaller pool or remove_rate, or reuse=N",
	}
}

func inflowText(c *PoolConfig, n int) string {
	if n <= c.Pool {
		return "0"
	}
	return decimal(uint64((n - c.Pool) * int(c.ProbeRate) / n))
}
