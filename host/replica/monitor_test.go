package replica_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host/replica"
)

func monitor(t testing.TB, opts ...replica.Option) *replica.Monitor {
	t.Helper()
	m, err := replica.NewMonitor(probe.EstimatorConfig{}, opts...)
	require.NoError(t, err)
	return m
}

func TestMonitorReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := monitor(t)
		require.Equal(t, engine.Reading{Latency: engine.UnknownLatency}, m.Reading())
		a := m.Begin()
		b := m.Begin()
		require.Equal(t, uint32(2), m.RIF())
		time.Sleep(30 * time.Millisecond)
		a.Finish()
		require.Equal(t, engine.Reading{RIF: 1, Latency: 30 * engine.Millisecond}, m.Reading())
		time.Sleep(10 * time.Millisecond)
		b.Fail()
		require.Equal(t, uint32(0), m.RIF())
		c := m.Begin()
		time.Sleep(time.Hour)
		c.Withdraw()
		require.Equal(t, engine.Reading{Latency: engine.UnknownLatency}, m.Reading(), "an hour later nothing is known")
	})
}

func TestQueryEndsOnce(t *testing.T) {
	m := monitor(t)
	other := m.Begin()
	q := m.Begin()
	q.Finish()
	q.Finish()
	q.Fail()
	q.Withdraw()
	require.Equal(t, uint32(1), m.RIF())
	other.Withdraw()
	require.Equal(t, uint32(0), m.RIF())
}

func TestNewMonitorRefuses(t *testing.T) {
	_, err := replica.NewMonitor(probe.EstimatorConfig{Samples: 1000})
	require.ErrorIs(t, err, engine.ErrConfig)
}

func TestMonitorUnderConcurrency(t *testing.T) {
	m := monitor(t)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			for i := range 500 {
				q := m.Begin()
				rd := m.Reading()
				if rd.RIF < 1 || rd.RIF > 16 {
					t.Errorf("RIF %d with 16 callers, this one included", rd.RIF)
				}
				switch (n + i) % 3 {
				case 0:
					q.Finish()
				case 1:
					q.Fail()
				default:
					q.Withdraw()
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, uint32(0), m.RIF())
	require.GreaterOrEqual(t, m.Reading().Latency, engine.Duration(0))
}

func TestMonitorAllocatesNothing(t *testing.T) {
	m := monitor(t)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		q := m.Begin()
		m.Reading()
		q.Finish()
	}))
}

func BenchmarkBeginFinish(b *testing.B) {
	m := monitor(b)
	b.ReportAllocs()
	for b.Loop() {
		q := m.Begin()
		q.Finish()
	}
}

func BenchmarkBeginFinishParallel(b *testing.B) {
	m := monitor(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			q := m.Begin()
			q.Finish()
		}
	})
}

func BenchmarkReading(b *testing.B) {
	m := monitor(b)
	for range 1000 {
		q := m.Begin()
		q.Finish()
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Reading()
	}
}

func BenchmarkRIF(b *testing.B) {
	m := monitor(b)
	for b.Loop() {
		m.RIF()
	}
}
