package replica_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host/replica"
)

func TestScaleIsClampedAndNeverHidesLoad(t *testing.T) {
	rd := engine.Reading{RIF: 25, Latency: 3 * engine.Millisecond, Asked: 7}
	for parts, want := range map[int]engine.Reading{
		1_000:         {RIF: 3, Latency: 300 * engine.Microsecond, Asked: 7},
		10_000:        rd,
		25_000:        {RIF: 63, Latency: 7500 * engine.Microsecond, Asked: 7},
		0:             {RIF: 1, Latency: 30 * engine.Microsecond, Asked: 7},
		-5:            {RIF: 1, Latency: 30 * engine.Microsecond, Asked: 7},
		1_000_000_000: {RIF: 2500, Latency: 300 * engine.Millisecond, Asked: 7},
	} {
		assert.Equal(t, want, replica.Scale(rd, parts), parts)
	}
	assert.Equal(t, engine.UnknownLatency, replica.Scale(engine.Reading{RIF: 1, Latency: engine.UnknownLatency}, 1000).Latency)
	most := engine.Reading{RIF: 1<<32 - 1, Latency: engine.MaxLatency}
	assert.Equal(t, most, replica.Scale(most, replica.ScaleMost), "what does not fit stays at the most there is")
	rapid.Check(t, func(t *rapid.T) {
		rd := engine.Reading{RIF: rapid.Uint32().Draw(t, "rif"), Latency: engine.Duration(rapid.Int64Range(0, int64(engine.MaxLatency)).Draw(t, "latency"))}
		a, b := rapid.Int().Draw(t, "a"), rapid.Int().Draw(t, "b")
		low, high := replica.Scale(rd, min(a, b)), replica.Scale(rd, max(a, b))
		require.LessOrEqual(t, low.RIF, high.RIF)
		require.LessOrEqual(t, low.Latency, high.Latency)
		require.Equal(t, rd.RIF == 0, low.RIF == 0)
		require.Equal(t, rd, replica.Scale(rd, replica.ScaleSame))
	})
}

func TestHintsScaleTheProbesThatCarryThem(t *testing.T) {
	var heard []string
	m, err := replica.NewMonitor(probe.EstimatorConfig{}, replica.WithHints(func(hint string) int {
		heard = append(heard, hint)
		return 1000
	}))
	require.NoError(t, err)
	for range 30 {
		busy := m.Begin()
		defer busy.Withdraw()
	}
	rif := func(hints ...string) string {
		r := httptest.NewRequest(http.MethodGet, replica.DefaultPath, nil)
		r.Header[replica.HeaderHint] = hints
		w := httptest.NewRecorder()
		m.ProbeHandler().ServeHTTP(w, r)
		return w.Header().Get(replica.HeaderRIF)
	}
	assert.Equal(t, "3", rif("cart-17"))
	assert.Equal(t, "30", rif())
	assert.Equal(t, "30", rif(""))
	assert.Equal(t, "30", rif("a", "b"))
	assert.Equal(t, "30", rif(strings.Repeat("x", replica.MaxHint+1)))
	assert.Equal(t, "30", rif("caf\xc3\xa9"))
	assert.Equal(t, "3", rif(strings.Repeat("x", replica.MaxHint)))
	assert.Equal(t, []string{"cart-17", strings.Repeat("x", replica.MaxHint)}, heard)
	assert.Equal(t, uint32(30), m.Reading().RIF, "only probes are told a scaled load")
}

func TestValidHints(t *testing.T) {
	for hint, want := range map[string]bool{
		"": false, "a": true, "a b": true, " a": false, "a ": false, "a\r\nb": false, "\x7f": false, "~": true,
	} {
		assert.Equal(t, want, replica.ValidHint(hint), "%q", hint)
	}
}
