package policy

import "github.com/headroom-lb/headroom/engine"

// ConfigOf lets outside tests parse a line into settings.
func ConfigOf(p engine.Policy) PrequalConfig {
	s := &settings{policy: "prequal"}
	if err := s.split(fields(p.Spec())[1:]); err != nil {
		panic(err)
	}
	if s.choice("variant", "paper", "keen") == "keen" {
		return s.prequal(DefaultPrequalKeen)
	}
	return s.prequal(DefaultPrequal)
}
