package lbhttp_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

var estimatorDefaults = probe.EstimatorConfig{}

type nowhere struct{}

func (nowhere) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// BenchmarkTransport is what the transport itself costs: nothing is sent.
func BenchmarkTransport(b *testing.B) {
	lb := balancer(b, "random seed=1")
	require.NoError(b, lb.SetEndpoints([]host.Endpoint{{Name: "a", Addr: "http://10.0.0.1:1"}, {Name: "b", Addr: "http://10.0.0.2:1"}}))
	tr := lbhttp.NewTransport(lb, lbhttp.WithBase(nowhere{}))
	req := request(b, http.MethodGet, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tr.RoundTrip(req); err != nil {
			b.Fatal(err)
		}
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
