//go:build !wasip1

// No guest has an estimator, so that the module need not change with this.

package probe

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// Clone is a second estimator with the same memory, for a replica that is run twice from here on.
func (e *Estimator) Clone() *Estimator {
	c := *e
	c.tags, c.samples = slices.Clone(e.tags), slices.Clone(e.samples)
	c.marked, c.scratch = slices.Clone(e.marked), make([]engine.Duration, cap(e.scratch))
	return &c
}
