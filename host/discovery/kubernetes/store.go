package kubernetes

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// The methods of a cache.ReflectorStore.

// Add takes a slice in.
func (w *watcher) Add(obj any) error {
	return w.change(obj, func(name string, s *discoveryv1.EndpointSlice) { w.slices[name] = s })
}

// Update takes a slice in.
func (w *watcher) Update(obj any) error { return w.Add(obj) }

// Delete drops a slice.
func (w *watcher) Delete(obj any) error {
	return w.change(obj, func(name string, _ *discoveryv1.EndpointSlice) { delete(w.slices, name) })
}

// Replace takes in what a list, or the beginning of a watch, found: all there is.
func (w *watcher) Replace(all []any, _ string) error {
	w.mu.Lock()
	w.listed = true
	clear(w.slices)
	w.mu.Unlock()
	for _, obj := range all {
		if err := w.Add(obj); err != nil {
			return err
		}
	}
	w.signal()
	return nil
}

// Resync has nothing to do.
func (w *watcher) Resync() error { return nil }

func (w *watcher) change(obj any, f func(string, *discoveryv1.EndpointSlice)) error {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return fmt.Errorf("%T is not an EndpointSlice", obj)
	}
	w.mu.Lock()
	f(slice.Name, slice)
	w.mu.Unlock()
	w.signal()
	return nil
}

func (w *watcher) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// tell merges the slices, once all are known.
func (w *watcher) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listed {
		w.changes.Tell(w.source.merge(w.slices))
	}
}
