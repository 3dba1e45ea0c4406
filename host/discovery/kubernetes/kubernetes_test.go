package kubernetes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	faketest "k8s.io/client-go/testing"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
	"github.com/headroom-lb/headroom/host/discovery/kubernetes"
)

var resource = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")

type client = gentype.FakeClientWithList[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]

// newClient is client-go's fake of one resource: what its fake clientset is made of, without the other hundreds.
func newClient(t *testing.T) (*client, *faketest.Fake) {
	scheme := runtime.NewScheme()
	require.NoError(t, discoveryv1.AddToScheme(scheme))
	tracker := faketest.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	fake := &faketest.Fake{}
	fake.AddReactor("*", "*", faketest.ObjectReaction(tracker))
	fake.AddWatchReactor("*", func(a faketest.Action) (bool, watch.Interface, error) {
		w, err := tracker.Watch(a.GetResource(), a.GetNamespace())
		return true, w, err
	})
	return gentype.NewFakeClientWithList(fake, "shop", resource, discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
		func() *discoveryv1.EndpointSliceList { return &discoveryv1.EndpointSliceList{} },
		func(dst, src *discoveryv1.EndpointSliceList) { dst.ListMeta = src.ListMeta },
		func(l *discoveryv1.EndpointSliceList) []*discoveryv1.EndpointSlice {
			return gentype.ToPointerSlice(l.Items)
		},
		func(l *discoveryv1.EndpointSliceList, items []*discoveryv1.EndpointSlice) {
			l.Items = gentype.FromPointerSlice(items)
		}), fake
}

func slice(name string, eps ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	http, port, metrics, other := "http", int32(8080), "metrics", int32(9090)
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "orders"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &metrics, Port: &other}, {Name: &http, Port: &port}},
		Endpoints:   eps,
	}
}

var yes, no = true, false

func pod(addr string, conditions ...*bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{addr}}
	for i, c := range conditions {
		*[]**bool{&e.Conditions.Ready, &e.Conditions.Serving, &e.Conditions.Terminating}[i] = c
	}
	return e
}

// ear is a sink that remembers the last snapshot and report, and counts the snapshots.
type ear struct {
	mu     sync.Mutex
	n      int
	eps    []host.Endpoint
	report error
	heard  int
}

func (e *ear) Update(s discovery.Snapshot) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	e.eps = s.Endpoints
	return nil
}

func (e *ear) Report(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report = err
	e.heard++
}

func (e *ear) has(t *testing.T, want map[string]engine.Status) {
	t.Helper()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		have := map[string]engine.Status{}
		for _, ep := range e.eps {
			have[ep.Name] = ep.Status
		}
		if len(have) != len(want) || e.n == 0 {
			return false
		}
		for name, s := range want {
			if got, ok := have[name]; !ok || got != s {
				return false
			}
		}
		return true
	}, 10*time.Second, 5*time.Millisecond, "want %v", want)
}

func (e *ear) reports(t *testing.T, want string) {
	t.Helper()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if want == "" {
			return e.heard > 0 && e.report == nil
		}
		return e.report != nil && e.report.Error() == want
	}, 20*time.Second, 5*time.Millisecond, "want %q", want)
}

func watchIt(t *testing.T, s *kubernetes.Source) *ear {
	e := &ear{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(ctx, e) }()
	t.Cleanup(func() { cancel(); require.ErrorIs(t, <-ended, context.Canceled) })
	return e
}

const (
	ready       = engine.StatusReady
	draining    = engine.StatusDraining
	unavailable = engine.StatusUnavailable
)

type want = map[string]engine.Status

func TestSlicesAreFollowed(t *testing.T) {
	c, _ := newClient(t)
	ctx, create, change := t.Context(), metav1.CreateOptions{}, metav1.UpdateOptions{}
	_, err := c.Create(ctx, slice("orders-1", pod("10.0.0.1"), pod("10.0.0.2", &no)), create)
	require.NoError(t, err)
	e := watchIt(t, &kubernetes.Source{Client: c, Service: "orders", Port: "http", Scheme: "http"})
	e.has(t, want{"10.0.0.1:8080": ready, "10.0.0.2:8080": unavailable})
	e.reports(t, "")
	require.Equal(t, "http://10.0.0.1:8080", e.eps[0].Addr)

	_, err = c.Create(ctx, slice("orders-2", pod("10.0.0.3")), create)
	require.NoError(t, err)
	other := slice("carts-1", pod("10.9.9.9"))
	other.Labels[discoveryv1.LabelServiceName] = "carts"
	_, err = c.Create(ctx, other, create)
	require.NoError(t, err)
	e.has(t, want{"10.0.0.1:8080": ready, "10.0.0.2:8080": unavailable, "10.0.0.3:8080": ready})

	// A roll-out: the first pod ends, the second begins.
	_, err = c.Update(ctx, slice("orders-1", pod("10.0.0.1", &no, &yes, &yes), pod("10.0.0.2", &yes)), change)
	require.NoError(t, err)
	e.has(t, want{"10.0.0.1:8080": draining, "10.0.0.2:8080": ready, "10.0.0.3:8080": ready})

	// What says the same is not passed on: another slice, another order.
	n := e.n
	require.NoError(t, c.Delete(ctx, "orders-2", metav1.DeleteOptions{}))
	_, err = c.Update(ctx, slice("orders-1", pod("10.0.0.3"), pod("10.0.0.2"), pod("10.0.0.1", &no, &yes, &yes)), change)
	require.NoError(t, err)
	time.Sleep(300 * time.Millisecond)
	e.mu.Lock()
	got := e.n
	e.mu.Unlock()
	require.LessOrEqual(t, got, n+2, "at most the moment between the two")
	e.has(t, want{"10.0.0.1:8080": draining, "10.0.0.2:8080": ready, "10.0.0.3:8080": ready})

	require.NoError(t, c.Delete(ctx, "orders-1", metav1.DeleteOptions{}))
	e.has(t, want{})
	e.reports(t, "service orders: no EndpointSlice has the label kubernetes.io/service-name=orders: is there such a service?")
}

// TestTheServerRefuses lets lists fail as they do without the right to list, and then succeed.
func TestTheServerRefuses(t *testing.T) {
	c, fake := newClient(t)
	_, err := c.Create(t.Context(), slice("orders-1", pod("10.0.0.1")), metav1.CreateOptions{})
	require.NoError(t, err)
	var mu sync.Mutex
	refuse := true
	fake.PrependReactor("list", "*", func(faketest.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		return refuse, nil, apierrors.NewForbidden(resource.GroupResource(), "", nil)
	})
	e := watchIt(t, &kubernetes.Source{Client: c, Service: "orders", Port: "http"})
	e.reports(t, "service orders: list of EndpointSlices: endpointslices.discovery.k8s.io is forbidden: <nil>")
	require.Zero(t, e.n, "nothing is known, and nothing is said to be there")
	mu.Lock()
	refuse = false
	mu.Unlock()
	e.has(t, want{"10.0.0.1:8080": ready})
	e.reports(t, "")
}

func TestSettings(t *testing.T) {
	c, _ := newClient(t)
	for _, s := range []kubernetes.Source{{}, {Client: c}, {Service: "orders"}, {Client: c, Service: "orders", Family: discoveryv1.AddressTypeFQDN}} {
		require.ErrorContains(t, s.Watch(t.Context(), &ear{}), "kubernetes source: ")
	}
}
