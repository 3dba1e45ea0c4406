package hosttest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// native is an engine in a guest's place.
type native struct{ *engine.Engine }

func (native) MemorySize() int             { return 1 << 16 }
func (native) Close(context.Context) error { return nil }

func natives(spec string) (guest, error) {
	p, err := policy.Parse(spec)
	if err != nil {
		return nil, err
	}
	return native{engine.New(p, engine.Config{})}, nil
}

// claims are the laws that policies keep beyond the general ones.
var claims = map[string][]string{
	"random":                      {"even"},
	"weighted_random":             {"proportional"},
	"round_robin":                 {"even"},
	"smooth_weighted_round_robin": {"proportional"},
	"least_loaded":                {"load"},
	"power_of_two":                {"load", "even"},
	"rendezvous":                  {"affinity", "minimal_disruption"},
	"weighted_rendezvous":         {"affinity", "minimal_disruption"},
	"bounded_load":                {"affinity", "minimal_disruption"},
	"ring_hash":                   {"affinity", "minimal_disruption"},
	"maglev":                      {"affinity"},
	"prequal":                     {"pool"},
}

func TestEveryPolicyKeepsTheLawsOfGuests(t *testing.T) {
	runs, names := 30, policy.Names()
	if testing.Short() {
		runs, names = 5, []string{"least_request", "prequal", "rendezvous"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := newKit(natives, nil, Options{Spec: name + " seed=3", Claims: claims[name], Runs: runs})
			require.NoError(t, err)
			for _, law := range k.tasks {
				res := k.judge(t.Context(), law)
				assert.NotEqual(t, Fail, res.Verdict, "%s: %s\n%v", law.name, res.Reason, res.Calls)
			}
		})
	}
}
