package replica

import "net/http"

// Middleware counts what next serves. It has the form that routers expect of a middleware.
//
// The response writer it hands on keeps http.Flusher, http.Hijacker and io.ReaderFrom where the
// one it received had them, and unwraps for http.ResponseController. HTTP/2 server push is not
// passed on.
func (m *Monitor) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == m.probePath && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			next.ServeHTTP(w, r)
			return
		}
		t := &tracked{ResponseWriter: w, m: m, query: m.Begin()}
		// Deferred, so that a panic or a Goexit counts out too; it is not recovered here.
		defer t.end(r)
		next.ServeHTTP(t.dressed(), r)
		t.returned = true
	})
}

// end counts the query out, by how it went.
func (t *tracked) end(r *http.Request) {
	switch {
	case t.hijacked:
		t.query.Withdraw()
	case !t.returned:
		t.query.Fail()
	default:
		t.commit(http.StatusOK) // what net/http sends for a handler that wrote nothing
		if t.status >= 500 || t.status == http.StatusTooManyRequests || r.Context().Err() != nil {
			t.query.Fail()
		} else {
			t.query.Finish()
		}
	}
}

// discount withdraws the query that this monitor's middleware counted for the writer, if any.
func (m *Monitor) discount(w http.ResponseWriter) {
	for w != nil {
		if t, ok := w.(interface{ tracker() *tracked }); ok && t.tracker().m == m {
			t.tracker().query.Withdraw()
			return
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = u.Unwrap()
	}
}
