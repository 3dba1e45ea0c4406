package host_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
)

var module *host.Module

func TestMain(m *testing.M) {
	ctx := context.Background()
	r, err := host.NewRuntime(ctx)
	if err == nil {
		module, err = r.LoadEngine(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	r.Close(ctx)
	os.Exit(code)
}

func guest(tb testing.TB, spec string) *host.Instance {
	in, err := module.Instantiate(context.Background(), spec, 0)
	require.NoError(tb, err)
	tb.Cleanup(func() { in.Close(context.Background()) })
	return in
}

func native(tb testing.TB, spec string) *engine.Engine {
	p, err := policy.Parse(spec)
	require.NoError(tb, err)
	return engine.New(p, engine.Config{})
}

func replicas(n int) []engine.Candidate {
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i].ID = engine.IDOf(fmt.Sprint("replica-", i))
	}
	return cs
}

func BenchmarkPrequal(b *testing.B) {
	for _, k := range []string{"native", "guest"} {
		var m engine.Machine = native(b, "prequal seed=7")
		if k == "guest" {
			m = guest(b, "prequal seed=7")
		}
		cs := replicas(100)
		require.NoError(b, m.SetCandidates(0, cs))
		now := engine.Instant(0)
		var d engine.Decision
		q := engine.Query{}
		i := uint64(0)
		rec := func() {
			now += 1000
			i = i*6364136223846793005 + 1442695040888963407
			_, _ = m.Record(now, cs[i>>33%100].ID, engine.Reading{RIF: uint32(i >> 60), Latency: engine.Duration(i>>40 + 1000000), Asked: now})
		}
		b.Run(k+"/3rec+decide", func(b *testing.B) {
			for b.Loop() {
				rec()
				rec()
				rec()
				q.Now = now
				_ = m.Decide(&q, &d)
			}
		})
		b.Run(k+"/3rec", func(b *testing.B) {
			for b.Loop() {
				rec()
				rec()
				rec()
			}
		})
		b.Run(k+"/random", func(b *testing.B) {
			b.ReportAllocs()
			now += 2000000000
			for b.Loop() {
				q.Now = now
				_ = m.Decide(&q, &d)
			}
		})
	}
}
