package probe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

type seen struct {
	at  engine.Instant
	rif uint32
}

// nearest is the quantile by exact nearest rank.
func nearest(list []seen, q int) uint32 {
	if len(list) == 0 || q == 10000 {
		return engine.NoThreshold
	}
	var v []uint32
	for _, s := range list {
		v = append(v, s.rif)
	}
	slices.Sort(v)
	for i := range v { // the least of which at least q are not above
		if 10000*(i+1) >= q*len(v) {
			return v[i]
		}
	}
	return v[len(v)-1]
}

func newWindow(max int, age engine.Duration, q uint64) (*Window, []uint64) {
	w := &Window{}
	w.Init(max, age, q)
	words := make([]uint64, w.Words())
	w.Bind(words)
	return w, words
}

func TestTheWindowIsAListOfTheLastReadings(t *testing.T) {
	for _, size := range []int{1, 2, 5, 128, 200} {
		for _, q := range []int{0, 1, 3333, 5000, 6667, 8400, 9999, 10000} {
			r := rand.New(rand.NewPCG(uint64(size), uint64(q)))
			const age = 40
			w, words := newWindow(size, age, uint64(q))
			var list []seen
			now := engine.Instant(-1000)
			for i := range 400 {
				pause := 3
				if i%100 > 80 {
					pause = 30
				}
				now += engine.Instant(r.IntN(pause))
				shed := func() {
					list = slices.DeleteFunc(list, func(s seen) bool { return now-s.at >= age })
				}
				if r.IntN(5) > 0 {
					rif := uint32(r.IntN(20))
					if r.IntN(10) == 0 {
						rif = engine.NoThreshold - uint32(r.IntN(3))
					}
					w.Add(now, rif)
					shed()
					list = append(list, seen{now, min(rif, engine.NoThreshold-1)})
					list = list[max(0, len(list)-size):]
				} else {
					w.Expire(now)
					shed()
				}
				require.Equal(t, len(list), w.Len())
				require.Equal(t, nearest(list, q), w.Threshold(), "%v", list)
				soon := now + engine.Instant(r.IntN(50))
				rest := slices.DeleteFunc(slices.Clone(list), func(s seen) bool { return soon-s.at >= age })
				require.Equal(t, nearest(rest, q), w.At(soon), "%v at %d", list, soon)
				require.True(t, w.Valid(now))
				if len(list) > 0 {
					require.Equal(t, list[0].at+age, w.Due())
				} else {
					require.Equal(t, never, w.Due())
				}
				again := &Window{}
				again.Init(size, age, uint64(q))
				again.Bind(slices.Clone(words))
				require.Equal(t, []any{w.threshold, w.due}, []any{again.threshold, again.due})
				if r.IntN(20) == 0 {
					w.Bind(words)
				}
			}
		}
	}
}

func TestBlocksThatNoWindowMadeAreNotValid(t *testing.T) {
	const first, length, at, rif = 0, 1, 2, 6 // of four
	for name, c := range map[string]struct {
		valid bool
		spoil func(w []uint64)
	}{
		"as it is":               {true, func([]uint64) {}},
		"starts at its end":      {false, func(w []uint64) { w[first] = 4 }},
		"longer than its room":   {false, func(w []uint64) { w[length] = 5 }},
		"out of order":           {false, func(w []uint64) { w[at+2] = 100 }},
		"at one instant":         {true, func(w []uint64) { w[at+1] = 102 }},
		"received in the future": {false, func(w []uint64) { w[at] = 111 }},
		"received now":           {true, func(w []uint64) { w[at] = 110 }},
		"no such RIF":            {false, func(w []uint64) { w[rif+1] = 1<<32 - 1 }},
		"the greatest RIF":       {true, func(w []uint64) { w[rif+1] = 1<<32 - 2 }},
		"far beyond":             {false, func(w []uint64) { w[rif+1] = 1 << 40 }},
		"leftovers":              {true, func(w []uint64) { w[length], w[at], w[rif] = 3, 1<<64-1, 1<<64-1 }},
		"empty":                  {true, func(w []uint64) { w[length] = 0 }},
	} {
		w, words := newWindow(4, 1000, 5000)
		for i := range 5 { // the ring has gone round: it starts at 1
			w.Add(engine.Instant(100+i), uint32(i))
		}
		require.Equal(t, []uint64{1, 4, 104, 101, 102, 103, 4, 1, 2, 3}, words)
		c.spoil(words)
		again := &Window{}
		again.Init(4, 1000, 5000)
		again.Bind(words) // without harm, whatever the words
		assert.Equal(t, c.valid, again.Valid(110), name)
		w.Bind(words) // over a window that had a threshold
		assert.Equal(t, again.Threshold(), w.Threshold(), name)
	}
}

func TestWhatExpiredLeavesNothingInTheBlock(t *testing.T) {
	w, words := newWindow(3, 100, 5000)
	w.Add(5, 3)
	w.Add(6, 4)
	for range 2 { // the second time there is nothing to forget, at the last instant there is
		w.Expire(never)
		assert.Equal(t, []uint64{2, 0, 0, 0, 0, 0, 0, 0}, words)
		assert.Equal(t, engine.NoThreshold, w.Threshold())
	}
}

func TestAnAgeNearTheEndOfTimeNeverComes(t *testing.T) {
	w, _ := newWindow(2, 100, 5000)
	w.Add(-never, 2) // nor is the beginning of time too early
	assert.True(t, w.Valid(-never))
	w.Add(never-50, 3)
	assert.Equal(t, never, w.Due())
}

// D10 of the seed library: a threshold ranked over the pool's own entries leaves its least RIF
// cold for ever. The window's comes from elsewhere: every entry of a pool may be above it.
func TestD10EveryEntryCanBeHot(t *testing.T) {
	win, _ := newWindow(8, 1000, 5000)
	for range 8 {
		win.Add(0, 2)
	}
	w := newWorld(t, 4, 1, 4)
	w.m.threshold = win.Threshold()
	w.pool.SetThreshold(win.Threshold())
	w.fill(1, [2]int{5, 1}, [2]int{4, 9}, [2]int{7, 1})
	o := w.pool.Offered()
	assert.Equal(t, []int{3, 0}, []int{o.Entries, o.Cold})
	w.pool.Take(1, o.Best, o.Entries, o.Cold)
	assert.Equal(t, engine.RegimeHot, w.Set.Out.Regime)
	assert.Equal(t, uint32(4), w.Set.Out.RIF, "the least, however slow")
}
