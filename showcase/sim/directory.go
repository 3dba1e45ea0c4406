package sim

import "github.com/headroom-lb/headroom/engine"

// directory finds replicas by identity. Identities are well mixed, so that their low bits will do.
type directory struct {
	ids   []engine.ID
	slots []int32 // replica, or -1
}

func newDirectory(n int) directory {
	size := 4
	for size < 2*n {
		size *= 2
	}
	d := directory{make([]engine.ID, size), make([]int32, size)}
	for i := range d.slots {
		d.slots[i] = -1
	}
	return d
}

// at is where an identity stands, or the free place where it would.
func (d *directory) at(id engine.ID) int {
	mask := len(d.slots) - 1
	k := int(id) & mask
	for d.slots[k] >= 0 && d.ids[k] != id {
		k = (k + 1) & mask
	}
	return k
}

func (d *directory) add(id engine.ID, i int32) {
	k := d.at(id)
	d.ids[k], d.slots[k] = id, i
}

// find is the replica of an identity, or -1.
func (d *directory) find(id engine.ID) int32 { return d.slots[d.at(id)] }
