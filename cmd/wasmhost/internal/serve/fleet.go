package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// placed is a route with the requests that it has.
type placed struct {
	Match
	*running
}

// fleet is the routes that are served, in the order in which they are asked whether a request is theirs.
type fleet struct {
	log     *slog.Logger
	reg     *prometheus.Registry
	several bool // the config has routes: metrics are named by them

	table    atomic.Pointer[[]placed]
	retiring sync.WaitGroup
}

func newFleet(log *slog.Logger, reg *prometheus.Registry, several bool) *fleet {
	f := &fleet{log: log, reg: reg, several: several}
	f.table.Store(&[]placed{})
	return f
}

// routes are those that are served now.
func (f *fleet) routes() []placed { return *f.table.Load() }

func (f *fleet) named(name string) *running {
	for _, p := range f.routes() {
		if p.name == name {
			return p.running
		}
	}
	return nil
}

func (f *fleet) names() (out []string) {
	for _, p := range f.routes() {
		out = append(out, p.name)
	}
	slices.Sort(out)
	return out
}

// serve makes these the routes. Those that are new are measured from now on; those that are gone are closed, and end when
// their requests have, or after so long.
func (f *fleet) serve(next []placed, within time.Duration) {
	was, next := f.routes(), slices.Clone(next)
	slices.SortStableFunc(next, func(a, b placed) int { return a.before(b.Match) })
	among := func(list []placed, rt *running) bool {
		return slices.ContainsFunc(list, func(p placed) bool { return p.running == rt })
	}
	// A name that comes again has the metrics of one that is gone.
	for _, p := range was {
		if !among(next, p.running) {
			for _, m := range p.metrics {
				f.registerer(p.name).Unregister(m)
			}
		}
	}
	for _, p := range next {
		if !among(was, p.running) {
			f.registerer(p.name).MustRegister(p.metrics...)
		}
	}
	f.table.Store(&next)
	for _, p := range was {
		if !among(next, p.running) {
			p.closed.Store(true)
			f.retiring.Go(func() {
				if err := p.retire(within); err != nil {
					f.log.Warn("a route that was removed did not end in peace", "route", p.name, "error", err)
				}
			})
		}
	}
}

// end ends all routes at once, and says what did not end in peace.
func (f *fleet) end() (err error) {
	for _, p := range f.routes() {
		err = errors.Join(err, p.retire(0))
	}
	f.retiring.Wait()
	return err
}

func (f *fleet) registerer(route string) prometheus.Registerer {
	if !f.several {
		return f.reg
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"route": route}, f.reg)
}

// logOf is the log of a route.
func (f *fleet) logOf(name string) *slog.Logger {
	if !f.several {
		return f.log
	}
	return f.log.With("route", name)
}

// ServeHTTP gives a request to the first route that takes it.
func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.several && climbs(r.URL.Path) {
		http.Error(w, "the path has a segment . or .., which would be another route's to some: ask for the path that is meant", http.StatusBadRequest)
		return
	}
	for {
		rt := f.find(r)
		if rt == nil {
			http.Error(w, "no route has this host and path", http.StatusNotFound)
			return
		}
		if rt.enter() {
			defer rt.leave()
			rt.serve(w, r)
			return
		}
	}
}

func (f *fleet) find(r *http.Request) *running {
	for _, p := range f.routes() {
		if p.takes(r) {
			return p.running
		}
	}
	return nil
}

// inFlight is the queries of all routes that are open.
func (f *fleet) inFlight() (n int64) {
	for _, p := range f.routes() {
		n += p.b.InFlight()
	}
	return n
}

// policies says what is served, for people.
func (f *fleet) policies() string {
	if !f.several {
		return f.routes()[0].policy()
	}
	var out []string
	for _, p := range f.routes() {
		out = append(out, p.name+" for "+p.Match.String()+" with "+p.policy())
	}
	return strings.Join(out, ", ")
}
