package serve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckTellsOfSettingsAndOfThoseThatDoNothing: a warning refuses nothing.
func TestCheckTellsOfSettingsAndOfThoseThatDoNothing(t *testing.T) {
	const one = "engine: native\nendpoints: [http://a]\nspec: "
	for text, want := range map[string][]string{
		one + "random seed=1":                            {"setting engine native"},
		one + "maglev seed=1":                            {"setting engine native", "warning maglev places by key, and there is none"},
		one + "maglev seed=1\nkey: X-User":               {"setting engine native", "setting key X-User"},
		one + "random seed=1\nhedge: 95p":                {"setting engine native", "setting hedge 95p", "warning hedge 95p does nothing with a single endpoint"},
		one + "prequal seed=1\nprobe_wait: 1m":           {"setting engine native", "setting probe_wait 1m", "warning probe_wait 1m does nothing"},
		one + "prequal seed=1\nhint: X-A":                {"setting engine native", "setting hint X-A", "warning hint X-A does nothing"},
		one + "prequal mode=sync\nhint: X-A\ndrain: 20s": {"setting drain 20s", "setting engine native", "setting hint X-A"},
		"engine: native\nmax_streams: 9\nroutes:\n- name: r\n  endpoints: [http://a, http://b]\n  retries: 0\n  record: 1m\n  retry_status: [503]\n  hedge: 95p": {
			"setting max_streams 9", "setting engine native", "setting record 1m", "setting retries 0", "setting retry_status [503]", "setting hedge 95p",
		},
	} {
		c, err := load(t, text)
		require.NoError(t, err, text)
		var out strings.Builder
		require.NoError(t, Check(t.Context(), c, &out))
		var got []string
		for line := range strings.Lines(out.String()) {
			if words := strings.Fields(line); words[0] == "setting" || words[0] == "warning" {
				got = append(got, strings.Join(words, " "))
			}
		}
		require.Len(t, got, len(want), out.String())
		for i := range want {
			require.True(t, strings.HasPrefix(got[i], want[i]), "%s: want %s", got[i], want[i])
		}
	}
}
