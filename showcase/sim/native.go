package sim

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Native makes machines of the native engine.
func Native(spec string, salt uint64) (engine.Machine, error) {
	p, err := policy.Parse(spec)
	if err != nil {
		return nil, err
	}
	return engine.New(p, engine.Config{Salt: salt}), nil
}
