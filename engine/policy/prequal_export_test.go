package policy

import "github.com/headroom-lb/headroom/engine"

// ConfigOf lets outside tests parse a line into settings.
func ConfigOf(p engine.Policy) PrequalConfig { return p.(*Prequal).c }
