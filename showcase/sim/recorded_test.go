package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// even is a query every so often, all alike, to three clients in turn.
func even(n int, every, work int64) (out []Arrival) {
	for i := range n {
		out = append(out, Arrival{At: int64(i)*every + 1, Client: int32(i % 3), Work: work})
	}
	return out
}

func TestRecordedTrafficArrivesAsItWas(t *testing.T) {
	sc := small(T3())
	require.NoError(t, sc.Replay(even(1000, 10*Millisecond, 50*Millisecond), 5000))
	assert.Equal(t, 3, sc.Clients)
	// Five at once, on replicas that bear ten.
	assert.InEpsilon(t, 10_000, sc.Cores*sc.Replicas, 0.01)
	w := world(t, sc, "prequal")
	m, err := w.Measure(0, 20*Second)
	require.NoError(t, err)
	require.NoError(t, w.Run(20*Second))
	assert.Equal(t, uint64(1000), m.Totals.Arrivals)
	assert.Equal(t, []uint64{334, 333, 333}, m.ByClient)
	assert.Zero(t, w.InFlight(), "and then nothing comes")
	assert.InEpsilon(t, 1000*50*Millisecond, m.Used, 0.0001)

	other := world(t, sc, "random")
	require.NoError(t, other.Run(20*Second))
	assert.Equal(t, w.TrafficHash(), other.TrafficHash())
}

func TestACloneGoesOnWithRecordedTraffic(t *testing.T) {
	sc := small(T1())
	require.NoError(t, sc.Replay(even(1000, 10*Millisecond, 50*Millisecond), 9000))
	w := world(t, sc, "prequal")
	require.NoError(t, w.Run(3*Second))
	c, err := w.Clone()
	require.NoError(t, err)
	require.NoError(t, w.Run(12*Second))
	require.NoError(t, c.Run(12*Second))
	assert.Equal(t, w.Hash(), c.Hash())
}

func TestRecordedTrafficThatCannotBe(t *testing.T) {
	for says, change := range map[string]func(*Scenario) error{
		"needs two queries or more, and has 1":      func(s *Scenario) error { return s.Replay(even(1, 1, 1), 5000) },
		"needs replicas, a load from 1 to 30000":    func(s *Scenario) error { return s.Replay(even(9, 1, 1), 0) },
		"cores=0: must be 100 to 64000; give anoth": func(s *Scenario) error { return s.Replay(even(9, Second, Microsecond), 5000) },
		"recorded query 2: instants must not be ne": func(s *Scenario) error { s.Recorded = []Arrival{{At: 1}, {At: 0}}; return s.Validate() },
		"recorded query 1: client 20: must be 0 to": func(s *Scenario) error { s.Recorded = []Arrival{{Client: 20}}; return s.Validate() },
		"recorded query 1: work must be 0 to 1000 ": func(s *Scenario) error { s.Recorded = []Arrival{{Work: -1}}; return s.Validate() },
	} {
		sc := small(T1())
		sc.Clients = 20
		assert.ErrorContains(t, change(&sc), says)
	}
}
