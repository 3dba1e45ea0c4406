package hosttest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// Each law of a claim notices a policy that has no right to it. The laws of pools have planted
// faults of their own beside the policy.
func TestEachLawOfAClaimNoticesItsFault(t *testing.T) {
	bend := func(spec string, pick func(b *bent, q *engine.Query) int) func(string) (guest, error) {
		return func(string) (guest, error) {
			g, err := natives(spec)
			if err != nil {
				return nil, err
			}
			b := &bent{native: g.(native)}
			if pick != nil {
				b.decide = choose(pick)
			}
			return b, nil
		}
	}
	modulo := func(b *bent, q *engine.Query) int { return b.openAt(q, int(q.Key)) }
	first := func(b *bent, q *engine.Query) int { return b.openAt(q, 0) }
	drifts := func(b *bent, q *engine.Query) int { return b.openAt(q, int(q.Key)+b.count/1000) }
	for law, start := range map[string]func(string) (guest, error){
		"a key stays with its replica while the fleet stands":            bend("random", nil),
		"the keys of a drained replica move, and come back with it":      bend("rendezvous", drifts),
		"keys spread over the whole fleet":                               bend("rendezvous", first),
		"when a replica leaves, only its keys move":                      bend("rendezvous", modulo),
		"when a replica joins, keys move only to it":                     bend("rendezvous", modulo),
		"every eligible replica gets its even share":                     bend("random", first),
		"shares are in proportion to weights":                            bend("random", nil),
		"the busiest replica is left alone while another is open":        bend("random", nil),
		"any cold one on offer decides, none faster; else the least RIF": bend("random", nil),
	} {
		t.Run(law, func(t *testing.T) {
			k, err := newKit(start, nil, Options{Spec: "x", Claims: claimNames()})
			require.NoError(t, err)
			found := false
			for _, task := range k.tasks {
				if task.name == law {
					found = true
					res := k.judge(t.Context(), task)
					assert.Equal(t, Fail, res.Verdict)
					t.Log(res.Reason, res.Calls)
				}
			}
			assert.True(t, found, "no such law")
		})
	}
}

func TestAClaimThatIsNoneIsRefusedByName(t *testing.T) {
	_, err := newKit(natives, []string{"random"}, Options{Claims: []string{"even", "odd"}})
	require.ErrorIs(t, err, engine.ErrConfig)
	assert.ErrorContains(t, err, "odd")
	assert.ErrorContains(t, err, "affinity, minimal_disruption, even, proportional, load, pool")
}

func TestWithoutASpecTheFirstPolicyIsJudged(t *testing.T) {
	k, err := newKit(natives, []string{"random", "prequal"}, Options{})
	require.NoError(t, err)
	assert.Equal(t, "random", k.o.Spec)
	_, err = newKit(natives, nil, Options{})
	assert.ErrorIs(t, err, engine.ErrConfig)
}
