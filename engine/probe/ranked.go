package probe

// ranked is an ascending column of numbers with room for a power of two, the rest of it the
// largest number, so that a search has always the same steps.
type ranked struct {
	at []uint32
	n  int
}

const usualWindow = 128

func newRanked(max int) ranked {
	room := 1
	for room < max {
		room *= 2
	}
	r := ranked{at: make([]uint32, room)}
	r.clear()
	return r
}

func (r *ranked) clear() {
	r.n = 0
	for i := range r.at {
		r.at[i] = 1<<32 - 1
	}
}

// below is how many numbers are less than v. Comparisons become arithmetic, because RIFs come
// in no order that a processor could learn.
func (r *ranked) below(v uint32) (i uint32) {
	if len(r.at) != usualWindow {
		for step := uint32(len(r.at)) / 2; step > 0; step /= 2 {
			i += step * less(r.at[i+step-1], v)
		}
		return i + less(r.at[i], v)
	}
	k := (*[usualWindow]uint32)(r.at)
	i = 64 * less(k[63], v)
	i += 32 * less(k[(i+31)%usualWindow], v)
	i += 16 * less(k[(i+15)%usualWindow], v)
	i += 8 * less(k[(i+7)%usualWindow], v)
	i += 4 * less(k[(i+3)%usualWindow], v)
	i += 2 * less(k[(i+1)%usualWindow], v)
	i += less(k[i%usualWindow], v)
	return i + less(k[i%usualWindow], v)
}

func less(a, b uint32) (one uint32) {
	if a < b {
		one = 1
	}
	return one
}

func (r *ranked) insert(v uint32) {
	i := int(r.below(v))
	copy(r.at[i+1:r.n+1], r.at[i:r.n])
	r.at[i] = v
	r.n++
}

func (r *ranked) remove(v uint32) {
	i := int(r.below(v))
	r.n--
	copy(r.at[i:r.n], r.at[i+1:r.n+1])
	r.at[r.n] = 1<<32 - 1
}

// swap takes one number out and puts another in, moving only what lies between.
func (r *ranked) swap(old, v uint32) {
	from, to := int(r.below(old)), int(r.below(v))
	if v > old {
		to--
		copy(r.at[from:to], r.at[from+1:to+1])
	} else {
		copy(r.at[to+1:from+1], r.at[to:from])
	}
	r.at[to] = v
}
