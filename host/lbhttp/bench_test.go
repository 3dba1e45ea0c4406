package lbhttp_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

var estimatorDefaults = probe.EstimatorConfig{}

type nowhere struct{}

func (nowhere) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// BenchmarkTransport is what the transport itself costs: nothing is sent.
func BenchmarkTransport(b *testing.B) { benchmarkTransport(b) }

// BenchmarkTransportHedging is the same where hedging is on: a query has a timer and contexts of its own, even if its
// answer comes in time.
func BenchmarkTransportHedging(b *testing.B) { benchmarkTransport(b, lbhttp.WithHedge(time.Second, 5)) }

func benchmarkTransport(b *testing.B, opts ...lbhttp.Option) {
	lb := balancer(b, "random seed=1")
	fleetOf(b, lb, 2)
	tr := lbhttp.NewTransport(lb, append(opts, lbhttp.WithBase(nowhere{}))...)
	req := request(b, http.MethodGet, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tr.RoundTrip(req); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTheUsualPathAllocatesAsEver holds what a query costs that is neither retried nor hedged.
func TestTheUsualPathAllocatesAsEver(t *testing.T) {
	b := balancer(t, "random seed=1")
	fleetOf(t, b, 2)
	req := request(t, http.MethodGet, nil)
	for most, opts := range map[float64][]lbhttp.Option{6: nil, 12: {lbhttp.WithHedge(time.Second, 5)}} {
		tr := lbhttp.NewTransport(b, append(opts, lbhttp.WithBase(nowhere{}))...)
		require.LessOrEqual(t, testing.AllocsPerRun(200, func() { _, _ = tr.RoundTrip(req) }), most)
	}
}

// BenchmarkLoopback compares a real exchange with and without the transport.
func BenchmarkLoopback(b *testing.B) {
	lb := balancer(b, "random seed=1")
	served(b, lb, says("ok"))
	direct := lb.Endpoints()[0].Addr
	for name, c := range map[string]struct {
		rt  http.RoundTripper
		url string
	}{"direct": {&http.Transport{}, direct}, "balanced": {lbhttp.NewTransport(lb), "http://shop.example"}} {
		b.Run(name, func(b *testing.B) {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, c.url, nil)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				resp, err := c.rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}
