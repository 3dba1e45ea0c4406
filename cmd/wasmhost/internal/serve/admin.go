package serve

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// admin answers operators about one route. The listener is apart from the proxy's, by default on loopback only, since it
// can take endpoints out.
type admin struct {
	b     *host.Balancer
	watch *watch
}

// routeAdmin is what there is to ask of one route, and to change of it.
func routeAdmin(b *host.Balancer, w *watch, c *control) http.Handler {
	a := &admin{b: b, watch: w}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pool", a.pool)
	mux.HandleFunc("GET /spec", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, b.Spec()) })
	mux.HandleFunc("POST /status", a.status)
	c.routes(mux)
	return mux
}

// guarded asks for the token, if there is one, before anything is changed or recorded queries are shown.
func guarded(next http.Handler, token string) http.Handler {
	if token == "" {
		return next
	}
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.Path != "/record"
		if !open && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this needs the admin token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const adminHelp = `GET  /metrics   Prometheus metrics
GET  /healthz   the process lives
GET  /readyz    it takes traffic: not draining, and an endpoint is ready
GET  /routes    the routes, with the requests that each has; with several, what follows needs ?route=NAME,
                but for /pool and /spec, which show all without it
GET  /pool      endpoints, live probe pool, settings in force and counts, as JSON
GET  /spec      the policy in force
POST /status    {"endpoint":"127.0.0.1:9001","status":"draining"}; ready, draining or unavailable;
                it comes before what health checks say
`

func (a *admin) pool(w http.ResponseWriter, _ *http.Request) { writeJSON(w, newView(a.b, a.watch)) }

func (a *admin) status(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Endpoint string `json:"endpoint"`
		Status   string `json:"status"`
	}
	if !readJSON(w, r, &in, `{"endpoint":"127.0.0.1:9001","status":"draining"}`) {
		return
	}
	s, ok := engine.ParseStatus(in.Status)
	if !ok || in.Status == "" {
		http.Error(w, fmt.Sprintf("status %q: give ready, draining or unavailable", in.Status), http.StatusBadRequest)
		return
	}
	if err := a.watch.monitor.SetAdmin(in.Endpoint, s); err != nil {
		http.Error(w, fmt.Sprintf("endpoint %q: %v; GET /pool lists the names", in.Endpoint, err), http.StatusNotFound)
		return
	}
	writeJSON(w, newView(a.b, a.watch))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// The client may be gone; there is nobody to tell.
	_ = enc.Encode(v)
}
