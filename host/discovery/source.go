package discovery

import (
	"cmp"
	"context"
	"slices"

	"github.com/headroom-lb/headroom/host"
)

// Snapshot is all endpoints at one moment, sorted by name.
type Snapshot struct {
	Revision  uint64 // one more with each change, from 1 on
	Endpoints []host.Endpoint
}

// Source says where replicas are.
type Source interface {
	// Watch tells the sink of the endpoints as soon as they are known and after each change, one
	// call at a time, until the context ends; then it returns the context's error. It returns for
	// no other reason but a source that can never be read.
	Watch(ctx context.Context, sink Sink) error
}

// Sink hears from a source. [Keeper] is one.
type Sink interface {
	// Update takes a snapshot in. On an error the one before it stands.
	Update(s Snapshot) error
	// Report says how the last look at the source went; nil is well. It changes no endpoint.
	Report(err error)
}

// Changes stands between a source and its sink: it puts the endpoints of each look in order,
// numbers those that differ from the last, and passes on nothing else. For the writers of
// sources; not for concurrent use.
type Changes struct {
	sink     Sink
	place    string
	last     []host.Endpoint
	revision uint64
	refused  error
}

// NewChanges passes on to a sink. The place, such as a file's name, stands before every error.
func NewChanges(sink Sink, place string) *Changes { return &Changes{sink: sink, place: place} }

// Tell gives the endpoints that a look found, in any order. A warning is reported although they
// count, such as that a name does not exist where there are none.
func (c *Changes) Tell(eps []host.Endpoint, warning error) {
	next := slices.Clone(eps)
	slices.SortFunc(next, compare)
	if c.revision == 0 || !slices.Equal(c.last, next) {
		c.revision++
		c.last = next
		c.refused = c.sink.Update(Snapshot{c.revision, slices.Clone(next)})
	}
	c.Fail(cmp.Or(c.refused, warning))
}

// Fail says that a look found out nothing: what was told last stands. Nil says that it found the
// same again.
func (c *Changes) Fail(err error) {
	if err = cmp.Or(err, c.refused); err != nil {
		err = placed(c.place, err)
	}
	c.sink.Report(err)
}

// compare is a total order, so that endpoints with the same name have one too.
func compare(a, b host.Endpoint) int {
	return cmp.Or(
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Locality, b.Locality),
		cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Status, b.Status),
	)
}

// Static is a source that never changes.
type Static []host.Endpoint

// Watch implements [Source].
func (s Static) Watch(ctx context.Context, sink Sink) error {
	NewChanges(sink, "static endpoints").Tell(s, nil)
	<-ctx.Done()
	return ctx.Err()
}
