package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

var yes, no = true, false

func ports(named ...any) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for i := 0; i < len(named); i += 2 {
		name, number := named[i].(string), int32(named[i+1].(int))
		out = append(out, discoveryv1.EndpointPort{Name: &name, Port: &number})
	}
	return out
}

func a(family discoveryv1.AddressType, p []discoveryv1.EndpointPort, eps ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: "orders"}},
		AddressType: family, Ports: p, Endpoints: eps,
	}
}

func at(addr string, c discoveryv1.EndpointConditions) discoveryv1.Endpoint {
	zone := "z-" + addr
	return discoveryv1.Endpoint{Addresses: []string{addr, "203.0.113.9"}, Conditions: c, Zone: &zone}
}

type conditions = discoveryv1.EndpointConditions

func merged(s *Source, slices ...*discoveryv1.EndpointSlice) (map[string]host.Endpoint, error) {
	all := map[string]*discoveryv1.EndpointSlice{}
	for i, slice := range slices {
		all[string(rune('a'+i))] = slice
	}
	eps, err := s.merge(all)
	out := map[string]host.Endpoint{}
	for _, ep := range eps {
		out[ep.Name] = ep
	}
	return out, err
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		conditions
		want engine.Status
	}{
		{conditions{}, engine.StatusReady},
		{conditions{Ready: &yes}, engine.StatusReady},
		{conditions{Ready: &yes, Serving: &yes, Terminating: &yes}, engine.StatusReady}, // publishNotReadyAddresses
		{conditions{Ready: &no}, engine.StatusUnavailable},
		{conditions{Ready: &no, Serving: &yes}, engine.StatusUnavailable},
		{conditions{Ready: &no, Serving: &yes, Terminating: &no}, engine.StatusUnavailable},
		{conditions{Ready: &no, Serving: &yes, Terminating: &yes}, engine.StatusDraining},
		{conditions{Ready: &no, Serving: &no, Terminating: &yes}, engine.StatusUnavailable},
		{conditions{Ready: &no, Terminating: &yes}, engine.StatusUnavailable},
	} {
		require.Equal(t, c.want, status(c.conditions), "%+v", c.conditions)
	}
}

func TestMerge(t *testing.T) {
	v4, v6 := discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	web := ports("web", 80, "metrics", 90)
	s := &Source{Service: "orders", Port: "web"}

	// Two families, ports by name that differ by slice, zones, the first of several addresses.
	eps, err := merged(s, a(v4, web, at("10.0.0.1", conditions{})), a(v6, web, at("fd00::1", conditions{})),
		a(v4, ports("web", 81), at("10.0.0.2", conditions{}), discoveryv1.Endpoint{}))
	require.NoError(t, err)
	require.Equal(t, map[string]host.Endpoint{
		"10.0.0.1:80": {Name: "10.0.0.1:80", Addr: "10.0.0.1:80", Locality: "z-10.0.0.1"},
		"10.0.0.2:81": {Name: "10.0.0.2:81", Addr: "10.0.0.2:81", Locality: "z-10.0.0.2"},
	}, eps)
	eps, err = merged(&Source{Service: "orders", Port: "web", Family: v6, Scheme: "https"}, a(v6, web, at("fd00::1", conditions{})))
	require.NoError(t, err)
	require.Equal(t, "https://[fd00::1]:80", eps["[fd00::1]:80"].Addr)

	// The same endpoint in two slices counts once, at its best.
	for range 20 { // in whatever order the map gives them
		eps, err = merged(s, a(v4, web, at("10.0.0.1", conditions{Ready: &no})), a(v4, web, at("10.0.0.1", conditions{})),
			a(v4, web, at("10.0.0.1", conditions{Ready: &no, Serving: &yes, Terminating: &yes})))
		require.NoError(t, err)
		require.Len(t, eps, 1)
		require.Equal(t, engine.StatusReady, eps["10.0.0.1:80"].Status)
	}

	// The last pod of a roll-out that has no successor yet gets the queries.
	ending := at("10.0.0.1", conditions{Ready: &no, Serving: &yes, Terminating: &yes})
	eps, err = merged(s, a(v4, web, ending, at("10.0.0.2", conditions{Ready: &no})))
	require.NoError(t, err)
	require.Equal(t, engine.StatusReady, eps["10.0.0.1:80"].Status)
	require.Equal(t, engine.StatusUnavailable, eps["10.0.0.2:80"].Status)
	eps, _ = merged(s, a(v4, web, ending, at("10.0.0.2", conditions{})))
	require.Equal(t, engine.StatusDraining, eps["10.0.0.1:80"].Status)

	// Ports that are not there are said; a slice without endpoints has none and needs none.
	eps, err = merged(s, a(v4, web, at("10.0.0.1", conditions{})), a(v4, ports("http", 80, "m", 90), at("10.0.0.2", conditions{})), a(v4, nil))
	require.EqualError(t, err, `left out: slice s: it has no port named "web" ("http", "m")`)
	require.Len(t, eps, 1)
	only := &Source{Service: "orders"}
	eps, err = merged(only, a(v4, ports("", 80), at("10.0.0.1", conditions{})))
	require.NoError(t, err)
	require.Len(t, eps, 1)
	_, err = merged(only, a(v4, web, at("10.0.0.1", conditions{})))
	require.EqualError(t, err, `left out: slice s: it has 2 ports ("web", "metrics"): say which`)
	_, err = merged(only, a(v4, []discoveryv1.EndpointPort{{}}, at("10.0.0.1", conditions{})))
	require.EqualError(t, err, `left out: slice s: port "" has no number`)
	eps, err = merged(only)
	require.ErrorContains(t, err, "no EndpointSlice has the label")
	require.Empty(t, eps)
}
