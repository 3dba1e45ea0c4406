package replica_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host/replica"
)

func Example() {
	m, err := replica.NewMonitor(probe.EstimatorConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle(replica.DefaultPath, m.ProbeHandler())
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello, with ", m.RIF(), " in flight")
	})
	server := httptest.NewServer(m.Middleware(mux))
	defer server.Close()

	w := httptest.NewRecorder()
	m.Middleware(mux).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hello", nil))
	fmt.Println(w.Body)

	resp, err := http.Get(server.URL + replica.DefaultPath)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println("RIF", resp.Header.Get("x-prequal-rif"))
	fmt.Println("latency known:", resp.Header.Get("x-prequal-latency-us") != "")
	// Output:
	// hello, with 1 in flight
	// RIF 0
	// latency known: true
}

// Work that does not come by HTTP is counted by hand.
func ExampleMonitor_Begin() {
	m, err := replica.NewMonitor(probe.EstimatorConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	q := m.Begin()
	fmt.Println("serving", m.Reading().RIF)
	q.Finish()
	fmt.Println("done", m.Reading().RIF)
	// Output:
	// serving 1
	// done 0
}
