package probe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every place of a column counts: the extreme stands at each in turn, and blanks are no words.
func TestScansFindTheirWordWhereverItStands(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{16, 17, 40, 64} {
		for at := range size {
			for blanks := range 3 {
				var c column
				c.init(size)
				for i := range size {
					if r.IntN(4) >= blanks || i == at || i == (at+1)%size {
						c.w[i] = 100 + r.Uint64N(1<<40)
					}
				}
				plain := func() (least, most uint64) {
					least, most = blank, 0
					for i, v := range c.w {
						if v != blank {
							most = max(most, v)
							if i < chunk {
								least = min(least, v)
							}
						}
					}
					return least, most
				}
				for _, v := range []uint64{7, blank - 1} {
					c.w[at] = v
					least, most := plain()
					require.Equal(t, most, c.most())
					if size == chunk {
						require.Equal(t, least, c.least())
						m, l := c.ends()
						require.Equal(t, []uint64{most, least}, []uint64{m, l})
					}
				}
				for _, v := range []uint64{7, blank, c.w[at]} {
					n := uint64(0)
					for i, w := range c.w {
						if w == v && (size > chunk || i < chunk) {
							n++
						}
					}
					require.Equal(t, n, c.count(v))
				}
			}
		}
	}
}

// What keys tell apart fits them: 24 bits of RIF and 33 of latency above a handle, and the
// greatest key of an entry is below a blank's.
func TestKeysFitTheirWord(t *testing.T) {
	require.Equal(t, 1<<24-2, ToldRIF)
	require.Equal(t, 1<<33-1, ToldLatency)
	require.Less(t, hotFirst(1<<31, 1<<50, 0)|(MaxPool-1), blank)
}

// ranked equals a sorted list, of whatever size and with the largest numbers.
func TestRankedIsASortedList(t *testing.T) {
	for _, room := range []int{1, 2, 3, 5, 16, 64, 65, 100, 127, 128, 129, 200, 256} {
		r := rand.New(rand.NewPCG(uint64(room), 9))
		number := func() uint32 {
			switch r.IntN(4) {
			case 0:
				return ^uint32(0) - 1 - uint32(r.IntN(4))
			case 1:
				return r.Uint32() - r.Uint32()>>31
			}
			return uint32(r.IntN(2 * room))
		}
		k := newRanked(room)
		var list []uint32
		sound := func() {
			require.Equal(t, len(list), k.n)
			require.Equal(t, list, k.at[:k.n:k.n])
			require.False(t, slices.ContainsFunc(k.at[k.n:], func(v uint32) bool { return v != ^uint32(0) }), "filled up")
			for _, v := range append([]uint32{0, number(), ^uint32(0)}, list...) {
				if i, _ := slices.BinarySearch(list, v); uint32(i) != k.below(v) {
					t.Fatalf("%d of %v are below %d, not %d", i, list, v, k.below(v))
				}
			}
		}
		list = make([]uint32, 0, room)
		for len(list) < room { // all the way up
			v := number()
			i, _ := slices.BinarySearch(list, v)
			list = slices.Insert(list, i, v)
			k.insert(v)
			sound()
		}
		for range 3 * room {
			v, old := number(), list[r.IntN(len(list))]
			i, _ := slices.BinarySearch(list, old)
			list = slices.Delete(list, i, i+1)
			i, _ = slices.BinarySearch(list, v)
			list = slices.Insert(list, i, v)
			k.swap(old, v)
			sound()
		}
		for len(list) > 0 {
			i := r.IntN(len(list))
			k.remove(list[i])
			list = slices.Delete(list, i, i+1)
			sound()
		}
		k.insert(5)
		k.clear()
		sound()
	}
}
