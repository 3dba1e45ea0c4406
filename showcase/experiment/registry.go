package experiment

// All lists the experiments in the order of the paper, then our own.
func All() []Experiment {
	return []Experiment{
		ramp(),
		nineRules(),
		probeRate(),
		quantile(),
		linear(),
		neighbours(),
		sinkhole(),
		variant(),
		ablation(),
		estimator(),
		smallFleet(),
		herd(),
		scale(),
	}
}

// Named finds an experiment.
func Named(name string) (Experiment, bool) {
	for _, e := range All() {
		if e.Name == name {
			return e, true
		}
	}
	return Experiment{}, false
}
