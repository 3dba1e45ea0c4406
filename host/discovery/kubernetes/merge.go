package kubernetes

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// merge makes endpoints of slices. The warning says why slices were left out, or that there are none.
func (s *Source) merge(all map[string]*discoveryv1.EndpointSlice) ([]host.Endpoint, error) {
	found := map[string]host.Endpoint{}
	var mine int
	var left []string
	for _, slice := range all {
		// The API server selects by label; test doubles of it do not when they are watched.
		if slice.Labels[discoveryv1.LabelServiceName] != s.Service {
			continue
		}
		mine++
		if slice.AddressType != cmp.Or(s.Family, discoveryv1.AddressTypeIPv4) {
			continue
		}
		port, err := s.port(slice.Ports)
		if err != nil {
			if len(slice.Endpoints) > 0 { // one without endpoints has no ports either
				left = append(left, fmt.Sprintf("slice %s: %v", slice.Name, err))
			}
			continue
		}
		for i := range slice.Endpoints {
			if ep, ok := s.endpoint(&slice.Endpoints[i], port); ok {
				// While an endpoint moves from one slice to another it may stand in both, and one may be stale.
				if was, twice := found[ep.Name]; !twice || ep.Status < was.Status {
					found[ep.Name] = ep
				}
			}
		}
	}
	eps := make([]host.Endpoint, 0, len(found))
	usable := false
	for _, ep := range found {
		eps = append(eps, ep)
		usable = usable || ep.Status.Eligible()
	}
	for i := range eps {
		// As kube-proxy does: where nothing else is left, what is terminating but still serves gets the queries.
		if !usable && eps[i].Status == engine.StatusDraining {
			eps[i].Status = engine.StatusReady
		}
	}
	slices.Sort(left) // the same words for the same trouble
	switch {
	case len(left) > 0:
		return eps, fmt.Errorf("left out: %s", strings.Join(left, "; "))
	case mine == 0:
		return eps, fmt.Errorf("no EndpointSlice has the label %s=%s: is there such a service?", discoveryv1.LabelServiceName, s.Service)
	}
	return eps, nil
}

// port finds the number of the port in a slice.
func (s *Source) port(ports []discoveryv1.EndpointPort) (int32, error) {
	var names []string
	for _, p := range ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		if s.Port != "" && s.Port == name || s.Port == "" && len(ports) == 1 {
			if p.Port == nil {
				return 0, fmt.Errorf("port %q has no number", name)
			}
			return *p.Port, nil
		}
		names = append(names, strconv.Quote(name))
	}
	if s.Port == "" {
		return 0, fmt.Errorf("it has %d ports (%s): say which", len(ports), strings.Join(names, ", "))
	}
	return 0, fmt.Errorf("it has no port named %q (%s)", s.Port, strings.Join(names, ", "))
}

// endpoint reads one endpoint; false if it has no address. Those with several are interchangeable
// behind any of them, and kube-proxy takes the first.
func (s *Source) endpoint(e *discoveryv1.Endpoint, port int32) (host.Endpoint, bool) {
	if len(e.Addresses) == 0 {
		return host.Endpoint{}, false
	}
	name := net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(port)))
	ep := host.Endpoint{Name: name, Addr: name, Status: status(e.Conditions)}
	if s.Scheme != "" {
		ep.Addr = s.Scheme + "://" + name
	}
	if e.Zone != nil {
		ep.Locality = *e.Zone
	}
	return ep, true
}

// status reads conditions as their documentation says: unset ready is ready, unset serving is as
// ready, unset terminating is not.
func status(c discoveryv1.EndpointConditions) engine.Status {
	ready := c.Ready == nil || *c.Ready
	serving := ready
	if c.Serving != nil {
		serving = *c.Serving
	}
	switch {
	case ready:
		return engine.StatusReady
	case serving && c.Terminating != nil && *c.Terminating:
		return engine.StatusDraining
	}
	return engine.StatusUnavailable
}
