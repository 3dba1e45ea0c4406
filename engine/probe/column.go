package probe

// column holds a word for each handle, blank where there is no entry. Its scans have no
// branch, because a guest pays dearly for jumps. Two oddities serve the compiler: a guest
// keeps a pointer that it loaded in a register, but loads an argument at each use, hence
// self; and a scan that was copied into a caller which indexes with its result would be made
// of branches after all, hence noinline.
type column struct {
	self *column
	size int // words in use
	w    [MaxPool]uint64
}

const chunk = 16 // the usual pool, which is scanned without a loop

func (c *column) init(size int) {
	c.self, c.size = c, size
	for i := range c.w {
		c.w[i] = blank
	}
}

// least is the smallest of the first chunk; only such pools are scanned for it.
//
//go:noinline
func (c *column) least() uint64 {
	k := c.self
	a := min(min(k.w[0], k.w[1]), min(k.w[2], k.w[3]))
	b := min(min(k.w[4], k.w[5]), min(k.w[6], k.w[7]))
	d := min(min(k.w[8], k.w[9]), min(k.w[10], k.w[11]))
	e := min(min(k.w[12], k.w[13]), min(k.w[14], k.w[15]))
	return min(min(a, b), min(d, e))
}

// most is the largest word that is not blank: adding one turns a blank into zero.
//
//go:noinline
func (c *column) most() uint64 {
	k := c.self
	a := max(max(k.w[0]+1, k.w[1]+1), max(k.w[2]+1, k.w[3]+1))
	b := max(max(k.w[4]+1, k.w[5]+1), max(k.w[6]+1, k.w[7]+1))
	d := max(max(k.w[8]+1, k.w[9]+1), max(k.w[10]+1, k.w[11]+1))
	e := max(max(k.w[12]+1, k.w[13]+1), max(k.w[14]+1, k.w[15]+1))
	m := max(max(a, b), max(d, e))
	if k.size > chunk {
		return k.mostBeyond(m)
	}
	return m - 1
}

func (c *column) mostBeyond(m uint64) uint64 {
	for _, v := range c.w[chunk:] {
		m = max(m, v+1)
	}
	return m - 1
}

// ends are the largest and the smallest of the first chunk, of at least two that are not
// blank.
//
//go:noinline
func (c *column) ends() (most, least uint64) {
	k := c.self
	v := k.w[0]
	w := k.w[1]
	most, least = max(v+1, w+1), min(v, w)
	v, w = k.w[2], k.w[3]
	most, least = max(most, max(v+1, w+1)), min(least, min(v, w))
	v, w = k.w[4], k.w[5]
	most, least = max(most, max(v+1, w+1)), min(least, min(v, w))
	v, w = k.w[6], k.w[7]
	most, least = max(most, max(v+1, w+1)), min(least, min(v, w))
	v, w = k.w[8], k.w[9]
	most, least = max(most, max(v+1, w+1)), min(least, min(v, w))
	v, w = k.w[10], k.w[11]
	most, least = max(most, max(v+1, w+1)), min(least, min(v, w))
	v, w = k.w[12], k.w[13]
	most, least = max(most, max(v+1, w+1)), min(least, min(v, w))
	v, w = k.w[14], k.w[15]
	return max(most, max(v+1, w+1)) - 1, min(least, min(v, w))
}

// count is how many words equal v.
//
//go:noinline
func (c *column) count(v uint64) uint64 {
	k := c.self
	a := is(k.w[0], v) + is(k.w[1], v) + is(k.w[2], v) + is(k.w[3], v)
	b := is(k.w[4], v) + is(k.w[5], v) + is(k.w[6], v) + is(k.w[7], v)
	d := is(k.w[8], v) + is(k.w[9], v) + is(k.w[10], v) + is(k.w[11], v)
	e := is(k.w[12], v) + is(k.w[13], v) + is(k.w[14], v) + is(k.w[15], v)
	n := a + b + d + e
	if k.size > chunk {
		return k.countBeyond(n, v)
	}
	return n
}

func (c *column) countBeyond(n, v uint64) uint64 {
	for _, w := range c.w[chunk:] {
		n += is(w, v)
	}
	return n
}

func is(a, b uint64) (one uint64) {
	if a == b {
		one = 1
	}
	return one
}
