package test_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
	"github.com/headroom-lb/headroom/host/replica"
)

// replicaURL starts a replica that answers probes. It lives as long as the test process.
func replicaURL() string {
	m, err := replica.NewMonitor(probe.EstimatorConfig{})
	check(err)
	mux := http.NewServeMux()
	mux.Handle(replica.DefaultPath, m.ProbeHandler())
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "served") })
	return httptest.NewServer(m.Middleware(mux)).URL
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// The README shows this example, and test/docs_test.go compares the two.
func Example_embed() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	runtime, err := host.NewRuntime(ctx)
	check(err)
	defer runtime.Close(ctx)
	module, err := runtime.LoadEngine(ctx) // the WebAssembly module that comes with the package
	check(err)
	balancer, err := host.NewBalancer(ctx, module, "prequal")
	check(err)
	defer balancer.Close(ctx)
	err = balancer.SetEndpoints([]host.Endpoint{
		{Name: "a", Addr: replicaURL()}, // a base URL such as http://10.0.0.1:9001
		{Name: "b", Addr: replicaURL()},
	})
	check(err)
	prober := host.Prober{Probe: lbhttp.ProbeURL(nil, "")}
	go prober.Run(ctx, balancer)

	client := &http.Client{Transport: lbhttp.NewTransport(balancer)}
	resp, err := client.Get("http://orders/list") // the host in the URL is only a name
	check(err)
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}
