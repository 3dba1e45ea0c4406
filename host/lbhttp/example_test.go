package lbhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
	"github.com/headroom-lb/headroom/host/replica"
)

// Two replicas that answer probes, and a proxy before them.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	b, err := host.NewNativeBalancer(policy.Parse, "prequal seed=7")
	if err != nil {
		fmt.Println(err)
		return
	}
	var eps []host.Endpoint
	for _, name := range []string{"a", "b"} {
		m, err := replica.NewMonitor(probe.EstimatorConfig{})
		if err != nil {
			fmt.Println(err)
			return
		}
		mux := http.NewServeMux()
		mux.Handle(replica.DefaultPath, m.ProbeHandler())
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") })
		s := httptest.NewServer(m.Middleware(mux))
		defer s.Close()
		eps = append(eps, host.Endpoint{Name: name, Addr: s.URL})
	}
	if err := b.SetEndpoints(eps); err != nil {
		fmt.Println(err)
		return
	}
	prober := host.Prober{Probe: lbhttp.ProbeURL(nil, "")}
	go prober.Run(ctx, b)

	proxy := httptest.NewServer(lbhttp.NewProxy(b))
	defer proxy.Close()
	for range 2 {
		resp, err := http.Get(proxy.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, string(body))
	}
	// Output:
	// 200 served
	// 200 served
}

// A client without a proxy: the host in the URL is only a name.
func ExampleNewTransport() {
	b, err := host.NewNativeBalancer(policy.Parse, "round_robin seed=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, r.URL.Path)
	}))
	defer s.Close()
	if err := b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: s.URL}}); err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: lbhttp.NewTransport(b)}
	resp, err := client.Get("http://orders/list")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))
	// Output: orders/list
}

// Replicas may be probed by hand too.
func ExampleProbeURL() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"rif": 3, "latency_ms": 12.5}`) // one of the forms understood
	}))
	defer s.Close()
	rd, err := lbhttp.ProbeURL(nil, "/probe")(context.Background(), host.Endpoint{Name: "a", Addr: s.URL})
	fmt.Println(rd.RIF, rd.Latency, err)
	// Output: 3 12500000 <nil>
}
