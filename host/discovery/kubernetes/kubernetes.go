// Package kubernetes is a source of endpoints: the EndpointSlices of a service. It is a module of
// its own, for it needs Kubernetes' client library.
//
//	config, err := rest.InClusterConfig()
//	clients, err := clientset.NewForConfig(config) // of k8s.io/client-go/kubernetes
//	slices := clients.DiscoveryV1().EndpointSlices("shop")
//	source := &kubernetes.Source{Client: slices, Service: "orders", Scheme: "http"}
//	err = discovery.NewKeeper(balancer, discovery.Config{}).Follow(ctx, source)
//
// An endpoint is named by its address and port, so a pod that is started anew is a new endpoint.
// Its locality is its zone. Topology hints are not looked at: how much stays in a zone is a
// policy's business, which sees the zones of all endpoints.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/headroom-lb/headroom/host/discovery"
)

// Client reads the EndpointSlices of one namespace, as a clientset's
// DiscoveryV1().EndpointSlices(namespace) does.
type Client interface {
	List(ctx context.Context, opts metav1.ListOptions) (*discoveryv1.EndpointSliceList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Source watches the EndpointSlices of one service.
type Source struct {
	Client  Client
	Service string // its name
	// Port is the name of the service's port. Empty: the only one there is.
	Port string
	// Family is discoveryv1.AddressTypeIPv4 or AddressTypeIPv6. A dual-stack service lists each pod
	// once for each, so one is chosen. Empty is IPv4.
	Family discoveryv1.AddressType
	// Scheme stands before addresses, such as http. Empty: an address is host:port alone.
	Scheme string
}

// settle is how long changes are gathered: a roll-out changes several slices at once.
const settle = 50 * time.Millisecond

// Watch implements [discovery.Source]. It fails at once if a setting is wrong; what the API server
// refuses is reported and tried again.
func (s *Source) Watch(ctx context.Context, sink discovery.Sink) error {
	if s.Client == nil || s.Service == "" {
		return errors.New("kubernetes source: Client and Service must be set")
	}
	switch s.Family {
	case "", discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
	default:
		return fmt.Errorf("kubernetes source: family %q: use %s or %s", s.Family, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	}
	w := &watcher{
		source: s, slices: map[string]*discoveryv1.EndpointSlice{}, changed: make(chan struct{}, 1),
		changes: discovery.NewChanges(sink, "service "+s.Service),
	}
	silent := klog.New(nil) // what it would log is reported
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(w.listWatch(), listFirst{}), &discoveryv1.EndpointSlice{}, w,
		cache.ReflectorOptions{Name: s.Service, Logger: &silent})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { reflector.RunWithContext(klog.NewContext(ctx, silent)) })
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.changed:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settle):
		}
		w.tell()
	}
}

// watcher is the reflector's store: the slices as last heard of.
type watcher struct {
	source  *Source
	changed chan struct{}

	mu      sync.Mutex
	listed  bool // all slices have been heard of
	slices  map[string]*discoveryv1.EndpointSlice
	changes *discovery.Changes
}

func (w *watcher) listWatch() *cache.ListWatch {
	selector := labels.Set{discoveryv1.LabelServiceName: w.source.Service}.String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := w.source.Client.List(ctx, o)
			return list, w.went("list", err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			events, err := w.source.Client.Watch(ctx, o)
			return events, w.went("watch", err)
		},
	}
}

// listFirst asks for a list and then a watch, instead of one watch that begins with all there is: a
// service has few slices, and this works with every server and with the fakes of client-go.
type listFirst struct{}

// IsWatchListSemanticsUnSupported is what client-go asks.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// went reports how a call to the API server went. One that went well is reported with the slices,
// or, of a watch that goes on from where the last one ended, here.
func (w *watcher) went(what string, err error) error {
	if err == nil {
		w.signal()
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !errors.Is(err, context.Canceled) {
		w.changes.Fail(fmt.Errorf("%s of EndpointSlices: %w", what, err))
	}
	return err
}
