package experiment

// All lists the experiments in the order of the paper, then our own.
func All() []Experiment {
	return []Experiment{
		ramp().with(rampReport()),
		nineRules().with(nineRulesReport()),
		probeRate(),
		quantile().with(quantileReport()),
		linear().with(linearReport()),
		neighbours().with(neighboursReport()),
		sinkhole().with(sinkholeReport()),
		variant(),
		ablation(),
		estimator(),
		smallFleet(),
		herd(),
		scale(),
	}
}

// with gives an experiment what it says of its figures.
func (e Experiment) with(r Report) Experiment {
	e.Report = r
	return e
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
