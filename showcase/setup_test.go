package showcase

import (
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/showcase/sim"
)

func parse(t require.TestingT, query string) Setup {
	q, err := url.ParseQuery(query)
	require.NoError(t, err)
	s, _, err := ParseSetup(q)
	require.NoError(t, err, query)
	return s
}

// The simulator has the synchronous mode, and the page nothing to show of it.
func TestThePageRefusesTheSynchronousMode(t *testing.T) {
	_, err := DefaultSetup().spec("prequal seed=1 mode=sync")
	require.ErrorContains(t, err, "want mode=async")
	_, err = DefaultSetup().spec("prequal seed=1 mode=async")
	require.NoError(t, err)
}

func TestLinkRoundTrip(t *testing.T) {
	assert.Equal(t, DefaultSetup(), parse(t, ""))
	assert.Empty(t, DefaultSetup().Query())
	rapid.Check(t, func(t *rapid.T) {
		s := DefaultSetup()
		s.Scenario = rapid.SampledFrom([]string{"neighbours", "weather", "calm"}).Draw(t, "s")
		s.A = rapid.SampledFrom(append(sim.Policies(), "prequal pool=8 quantile=0.5")).Draw(t, "a")
		s.B = rapid.SampledFrom(sim.Policies()).Draw(t, "b")
		s.Seed = rapid.Uint64().Draw(t, "seed")
		s.Load = rapid.IntRange(minLoad, maxLoad).Draw(t, "load")
		s.Replicas = rapid.IntRange(minReplicas, maxReplicas).Draw(t, "replicas")
		s.Noisy = rapid.IntRange(0, min(maxNoisy, s.Replicas)).Draw(t, "noisy")
		s.Quantile = rapid.IntRange(-1, unit).Draw(t, "q")
		s.Probe = rapid.IntRange(minProbe, maxProbe).Draw(t, "probe")
		s.Speed = rapid.IntRange(minSpeed, maxSpeed).Draw(t, "speed")
		s.Start = rapid.IntRange(0, maxStart).Draw(t, "t")
		s.Clients = rapid.IntRange(minClients, maxClients).Draw(t, "clients")
		s.Focus = rapid.IntRange(0, s.Clients-1).Draw(t, "focus")
		s.Room = rapid.StringN(0, 8, maxRoom).Draw(t, "room")
		if got := parse(t, s.Query()); got != s {
			t.Fatalf("%q: %+v, want %+v", s.Query(), got, s)
		}
	})
}

func TestLinkIsClamped(t *testing.T) {
	s := parse(t, "load=99&noisy=-3&q=7&probe=0&speed=1e9&t=-5&replicas=100000&clients=0&focus=77")
	assert.Equal(t, []int{maxLoad, 0, unit, minProbe, maxSpeed, 0, maxReplicas, minClients, minClients - 1},
		[]int{s.Load, s.Noisy, s.Quantile, s.Probe, s.Speed, s.Start, s.Replicas, s.Clients, s.Focus})
	for query, want := range map[string]string{
		"s=nowhere":                        "no such scenario",
		"load=x":                           `load="x": must be a number`,
		"load=NaN":                         "must be a number",
		"seed=-1":                          "seed=\"-1\"",
		"a=fastest":                        "a: fastest",
		"b=prequal pool=0":                 "b: prequal: pool=0",
		"a=%20":                            "a: spec: empty",
		"room=" + string(make([]byte, 41)): "room: at most 40 bytes",
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, _, err = ParseSetup(q)
		assert.ErrorContains(t, err, want, query)
	}
}

func TestLinkSaysWhatIsClamped(t *testing.T) {
	notes := func(query string) []string {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, notes, _ := ParseSetup(q)
		return notes
	}
	assert.Empty(t, notes("load=2&noisy=0&probe=0.25&replicas=100&focus=23&q=1"))
	assert.Equal(t, []string{"load=99 is out of range: 2 is used", "clients=1 is out of range: 2 is used"}, notes("load=99&clients=1"))
	assert.Equal(t, []string{"focus=9 is out of range: 3 is used"}, notes("focus=9&clients=4"))
	assert.Equal(t, []string{"load=99 is out of range: 2 is used"}, notes("a=foo&load=99"), "beside an error")
}

func TestKnobsOfAnotherSceneDoNotApply(t *testing.T) {
	assert.Equal(t, parse(t, "s=calm&q=0.5"), parse(t, "s=calm&was=neighbours&load=1.1&noisy=4&q=0.5"))
	s := parse(t, "s=calm&was=calm&load=1.1&noisy=4")
	assert.Equal(t, []int{11_000, 4}, []int{s.Load, s.Noisy})
}

func TestKnobsReachTheSpec(t *testing.T) {
	s := parse(t, "a=prequal pool=8 quantile=0.9&b=least_loaded&seed=11&q=0.25&probe=1.5")
	a, b, err := s.Specs()
	require.NoError(t, err)
	assert.Equal(t, "prequal seed=11 pool=8 quantile=0.25 probe_rate=1.5", a)
	q, p := knobs(a, b)
	assert.Equal(t, []float64{0.25, 1.5}, []float64{q, p})
	q, p = knobs("prequal seed=7")
	assert.Equal(t, []float64{0.84, 3}, []float64{q, p})
	q, _ = knobs("random seed=7", "least_loaded")
	assert.Equal(t, -1.0, q)
}

func TestEveryPolicyIsOffered(t *testing.T) {
	assert.Equal(t, "prequal", policies()[0])
	got := slices.Clone(policies())
	slices.Sort(got)
	assert.Equal(t, sim.Policies(), got)
	for _, p := range policies() {
		assert.NotEmpty(t, Title(p))
	}
	assert.Equal(t, "Round robin", Title("round_robin seed=1"))
}
