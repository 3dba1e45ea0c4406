package sim

// never is later than every instant of a run.
const never = int64(1)<<62 - 1

// timers holds one alarm per replica, as a tournament tree: setting one costs a walk to the
// root, reading the first is free, and nothing is ever stale. Ties go to the lower index.
type timers struct {
	size int     // leaves, a power of two
	at   []int64 // by replica
	tree []int32 // winner of each node; the root is 1
}

func newTimers(n int) *timers {
	t := &timers{size: 1}
	for t.size < n {
		t.size *= 2
	}
	t.at = make([]int64, t.size)
	t.tree = make([]int32, 2*t.size)
	for i := range t.at {
		t.at[i] = never
		t.tree[t.size+i] = int32(i)
	}
	for i := t.size - 1; i > 0; i-- {
		t.tree[i] = t.tree[2*i]
	}
	return t
}

func (t *timers) clone() *timers {
	return &timers{t.size, append([]int64(nil), t.at...), append([]int32(nil), t.tree...)}
}

// first is the earliest alarm and its replica.
func (t *timers) first() (int64, int32) {
	i := t.tree[1]
	return t.at[i], i
}

func (t *timers) set(i int32, at int64) {
	if t.at[i] == at {
		return
	}
	t.at[i] = at
	for n := (t.size + int(i)) / 2; n > 0; n /= 2 {
		l, r := t.tree[2*n], t.tree[2*n+1]
		if t.at[r] < t.at[l] {
			l = r
		}
		t.tree[n] = l
	}
}
