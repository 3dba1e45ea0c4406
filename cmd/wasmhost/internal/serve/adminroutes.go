package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// newAdmin answers operators about the whole proxy, and passes what concerns one route on to it.
func newAdmin(f *fleet, draining *atomic.Bool, reload *reloader, token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { f.ready(w, draining.Load()) })
	mux.HandleFunc("GET /routes", f.list)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, adminHelp+controlHelp) })
	if reload != nil {
		mux.HandleFunc("POST /reload", reload.answer)
	}
	for _, path := range strings.Fields("/pool /spec /status /swap /canary /share /promote /rollback /compare /record") {
		mux.HandleFunc(path, f.one)
	}
	// A page in an operator's browser must not be able to take endpoints out.
	return http.NewCrossOriginProtection().Handler(guarded(mux, token))
}

// ready fails as soon as draining starts, so that what stands in front can turn away before the listener closes.
func (f *fleet) ready(w http.ResponseWriter, draining bool) {
	if draining {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	for _, p := range f.routes() {
		for _, e := range p.b.Endpoints() {
			if e.Status.Eligible() {
				fmt.Fprintln(w, "ready")
				return
			}
		}
	}
	http.Error(w, "no endpoint is ready", http.StatusServiceUnavailable)
}

// one passes a request on to the route that it names. With a single route it need not name it.
func (f *fleet) one(w http.ResponseWriter, r *http.Request) {
	name, all := r.URL.Query().Get("route"), f.routes()
	switch {
	case name == "" && len(all) == 1:
		all[0].admin.ServeHTTP(w, r)
	case name == "" && r.Method == http.MethodGet && r.URL.Path == "/pool":
		views := map[string]view{}
		for _, p := range all {
			views[p.name] = newView(p.b, p.watch)
		}
		writeJSON(w, map[string]any{"routes": views})
	case name == "" && r.Method == http.MethodGet && r.URL.Path == "/spec":
		for _, p := range all {
			fmt.Fprintf(w, "%s: %s\n", p.name, p.b.Spec())
		}
	case name == "":
		http.Error(w, "there are several routes: name one with ?route= or --route: "+strings.Join(f.names(), ", "), http.StatusBadRequest)
	default:
		rt := f.named(name)
		if rt == nil {
			http.Error(w, fmt.Sprintf("no route %q: there are %s", name, strings.Join(f.names(), ", ")), http.StatusNotFound)
			return
		}
		rt.admin.ServeHTTP(w, r)
	}
}

// routeView is one route in GET /routes.
type routeView struct {
	Name string `json:"name"`
	Host string `json:"host,omitempty"`
	Path string `json:"path,omitempty"`
	Spec string `json:"spec"`
	trials
	Endpoints int   `json:"endpoints"`
	InFlight  int64 `json:"in_flight"`
}

// list shows the routes in the order in which they are asked.
func (f *fleet) list(w http.ResponseWriter, _ *http.Request) {
	out := []routeView{}
	for _, p := range f.routes() {
		st := p.b.Stats()
		out = append(out, routeView{p.name, p.Host, p.Path, p.b.Spec(), newTrials(&st), len(p.b.Endpoints()), p.b.InFlight()})
	}
	writeJSON(w, out)
}
