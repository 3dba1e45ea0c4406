package discovery_test

import (
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

// ear is a sink that remembers.
type ear struct {
	mu        sync.Mutex
	snapshots []discovery.Snapshot
	reports   []error
	refuse    error
}

func (e *ear) Update(s discovery.Snapshot) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshots = append(e.snapshots, s)
	return e.refuse
}

func (e *ear) Report(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reports = append(e.reports, err)
}

// heard is the number of snapshots, the names of the last, and the last report.
func (e *ear) heard() (int, []string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.snapshots) == 0 {
		return 0, nil, e.reports[len(e.reports)-1]
	}
	return len(e.snapshots), names(e.snapshots[len(e.snapshots)-1].Endpoints), e.reports[len(e.reports)-1]
}

func names(eps []host.Endpoint) []string {
	out := []string{}
	for _, ep := range eps {
		out = append(out, ep.Name)
	}
	return out
}

func fleet(names ...string) []host.Endpoint {
	var eps []host.Endpoint
	for _, name := range names {
		eps = append(eps, host.Endpoint{Name: name, Addr: "http://" + name})
	}
	return eps
}

// double is a balancer that shows what it was told, and holds it to what a real one demands.
type double struct {
	t      require.TestingT
	mu     sync.Mutex
	eps    []host.Endpoint
	calls  int
	refuse func([]host.Endpoint) error
}

func (d *double) SetEndpoints(eps []host.Endpoint) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.refuse != nil {
		if err := d.refuse(eps); err != nil {
			return err
		}
	}
	for i, ep := range eps {
		require.NotEmpty(d.t, ep.Name)
		if i > 0 {
			require.Less(d.t, eps[i-1].Name, ep.Name)
		}
	}
	d.eps = slices.Clone(eps)
	return nil
}

// refuses lets f refuse what follows; nil refuses nothing.
func (d *double) refuses(f func([]host.Endpoint) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = f
}

// told is how often it was told anything.
func (d *double) told() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

func (d *double) fleet() []host.Endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.eps
}

func (d *double) has() map[string]engine.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]engine.Status{}
	for _, ep := range d.eps {
		out[ep.Name] = ep.Status
	}
	return out
}
