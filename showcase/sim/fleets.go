package sim

// T1 is the fleet on which this testbed reproduces the Prequal paper's load ramp and its
// comparison of rules: three machines in ten are old, and every machine is saturated by its
// neighbours half of the time, else has up to six times a replica's allocation to spare. Phases
// last half a minute. Start measuring after a minute.
func T1() Scenario { return paper("t1", 30, 18_000) }

// T2 is T1 with half of the machines half as fast: the paper's fast and slow fleet.
func T2() Scenario { return paper("t2", 50, 2*whole) }

// T3 is T1 with equal machines.
func T3() Scenario { return paper("t3", 0, whole) }

func paper(name string, share, cost int) Scenario {
	s := base(name)
	s.Load, s.Spare, s.SpareMost, s.Weather, s.Demand = 9000, 0, 60_000, 30*Second, DemandGauss
	s.OldShare, s.OldCost, s.WorkOnly = share, cost, true
	return s
}

// Antagonists is the paper's argument against balancing CPU: two machines of a hundred are full
// for ever, and the fleet is a tenth over its allocation.
func Antagonists() Scenario {
	s := base("antagonists")
	s.Load, s.Noisy, s.Demand, s.WorkOnly = 11_000, 2, DemandGauss, true
	return s
}
