package setting

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

func TestANameThatIsNearIsSuggested(t *testing.T) {
	known := []string{"listen", "admin", "shards", "key", "url"}
	for name, want := range map[string]string{
		"lisen": "listen", "sahrds": "shards", "ulr": "url", "Admin": "admin", "listens": "listen", "kee": "key",
		"": "", "x": "", "nothing": "", "hint": "", "abc": "",
	} {
		if want != "" {
			want = "did you mean " + want + "? "
		}
		assert.Equal(t, want+"use listen, admin, shards, key, url", Use(name, known), name)
	}
}

func TestPolicyLinesAreSuggested(t *testing.T) {
	for spec, want := range map[string]string{
		"preqal":                "preqal: no such policy; did you mean prequal? want one of bounded_load, c3",
		"prequal quantil=3":     "prequal: quantil: no such setting; did you mean quantile? want one of seed",
		"fastest":               "fastest: no such policy; want one of bounded_load",
		"prequal quantile=much": "prequal: quantile=much: ",
	} {
		_, err := policy.Parse(spec)
		err = Suggest(err)
		assert.ErrorIs(t, err, engine.ErrConfig)
		assert.ErrorContains(t, err, want)
	}
	assert.NoError(t, Suggest(nil))
}
