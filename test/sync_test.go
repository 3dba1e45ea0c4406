package test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/test/guestbuild"
)

// A host learns over the ABI that a guest's policy is synchronous, and hands it the answers of each query.
func TestAGuestPlacesQueriesOnTheirOwnAnswers(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wasm, err := guestbuild.Build("..", "./wasm")
	require.NoError(t, err)
	r, err := host.NewRuntime(ctx)
	require.NoError(t, err)
	defer r.Close(context.Background())
	m, err := r.Load(ctx, wasm)
	require.NoError(t, err)
	b, err := host.NewBalancer(ctx, m, "prequal seed=7 mode=sync probes=5 wait=5", host.WithProbeWait(10*time.Second), host.WithTrapHandler(func(err error) { t.Error(err) }))
	require.NoError(t, err)
	require.Equal(t, "prequal seed=7 mode=sync probes=5 wait=5", b.Spec())
	var eps []host.Endpoint
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		eps = append(eps, host.Endpoint{Name: name})
	}
	require.NoError(t, b.SetEndpoints(eps))
	p := host.Prober{Probe: func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		rd := engine.Reading{RIF: 3, Latency: 9 * engine.Millisecond}
		if host.Hint(ctx) == ep.Name {
			rd = engine.Reading{RIF: 1, Latency: engine.Millisecond}
		}
		return rd, nil
	}}
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, b) }()
	require.Eventually(t, func() bool {
		pl, err := b.Decide(ctx, host.Query{})
		require.NoError(t, err)
		pl.Done(engine.OutcomeSuccess)
		return pl.Decision.Regime == engine.RegimeCold
	}, 10*time.Second, time.Millisecond)
	for range 20 {
		for _, ep := range eps {
			pl, err := b.Decide(ctx, host.Query{Hint: ep.Name})
			require.NoError(t, err)
			pl.Done(engine.OutcomeSuccess)
			require.Equal(t, ep.Name, pl.Endpoint.Name)
			require.Equal(t, uint32(5), pl.Decision.Offered)
		}
	}
	s := b.Stats()
	require.Equal(t, uint32(5), s.Fit.Probes)
	require.Equal(t, uint32(5), s.Fit.Wait)
	require.Zero(t, s.Traps)
	require.Equal(t, s.Probes.Answered, s.Counters.Readings)
	cancel()
	<-ended
	require.NoError(t, b.Close(context.Background()))
}
