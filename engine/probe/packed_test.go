package probe

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// A packed sequence does what a slice of the same handles does.
func TestAPackedSequenceIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s packed
		var want []uint32
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(want) > 0 && (len(want) == packedRoom || rapid.Bool().Draw(t, "cut")) {
				i := rapid.IntRange(0, len(want)-1).Draw(t, "at")
				at := s.find(want[i])
				if at != uint(i)<<2 {
					t.Fatalf("%x: handle %d is at %d, found at %d", uint64(s), want[i], i, at>>2)
				}
				s, want = s.cut(at), slices.Delete(want, i, i+1)
			} else {
				h := rapid.Uint32Range(0, 15).Filter(func(h uint32) bool { return !slices.Contains(want, h) }).Draw(t, "handle")
				i := rapid.IntRange(0, len(want)).Draw(t, "to")
				s, want = s.put(uint(i)<<2, h), slices.Insert(want, i, h)
			}
			for i, h := range want {
				if s.at(i) != h {
					t.Fatalf("%x is not %v", uint64(s), want)
				}
			}
			if rest := uint64(s) >> (len(want) * 4 & 63); len(want) < packedRoom && rest != 0 {
				t.Fatalf("%x has %d handles and something above them", uint64(s), len(want))
			}
		}
	})
}

// The window's rank is the one that sorting would give, whatever comes, ages or is bound anew.
func TestTheWindowRanksAsSortingWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(t, "size")
		q := rapid.Uint64Range(0, Unit).Draw(t, "quantile")
		most := rapid.SampledFrom([]uint32{2, 9, 1<<32 - 1}).Draw(t, "most")
		var w Window
		w.Init(size, 100, q)
		words := make([]uint64, w.Words())
		w.Bind(words)
		type reading struct {
			at  engine.Instant
			rif uint32
		}
		var held []reading
		now := engine.Instant(0)
		for range 80 {
			now += engine.Instant(rapid.IntRange(0, 12).Draw(t, "later"))
			held = slices.DeleteFunc(held, func(r reading) bool { return now-r.at >= 100 })
			switch rapid.IntRange(0, 9).Draw(t, "call") {
			case 0:
				w.Expire(now)
			case 1:
				w.Expire(now)
				w.Bind(words)
			default:
				v := rapid.Uint32Range(0, most).Draw(t, "rif")
				w.Add(now, v)
				if held = append(held, reading{now, min(v, engine.NoThreshold-1)}); len(held) > size {
					held = held[1:]
				}
			}
			want := engine.NoThreshold
			if len(held) > 0 && q < Unit {
				rifs := make([]uint32, len(held))
				for i, r := range held {
					rifs[i] = r.rif
				}
				slices.Sort(rifs)
				want = rifs[max((q*uint64(len(rifs))+Unit-1)/Unit, 1)-1]
			}
			if w.Threshold() != want || w.Len() != len(held) {
				t.Fatalf("threshold %d of %d readings, want %d of %d", w.Threshold(), w.Len(), want, len(held))
			}
		}
		assert.True(t, w.Valid(now))
	})
}

// Every place of the keys counts, once, and only for what is less.
func TestKeysBelowCountEveryPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k keys
		want, v := 0, rapid.Uint64Range(0, 20).Draw(t, "than")
		for i := range k {
			if k[i] = rapid.SampledFrom([]uint64{0, 5, 10, 19, 20, blank}).Draw(t, "key"); k[i] < v {
				want++
			}
		}
		if got := k.below(v); got != want {
			t.Fatalf("%d of %v are below %d, not %d", want, k, v, got)
		}
	})
	for i := range packedRoom {
		k := keys{}
		for j := range k {
			k[j] = blank
		}
		k[i] = 7
		assert.Equal(t, 1, k.below(8), "place %d", i)
		assert.Zero(t, k.below(7), "place %d", i)
	}
}

// Among entries of one latency the lower RIF is better, so an entry that takes a query may have
// to give way, wherever it stands.
func TestCompensationKeepsTheOrderAmongEquals(t *testing.T) {
	w := newWorld(t, 16, 1, 16)
	for slot := range uint32(12) {
		in := Incoming{Slot: slot, Uses: 9, RIF: slot % 3, Latency: engine.Duration(5 + slot%2), Asked: engine.Instant(slot)}
		assert.Equal(t, w.m.record(engine.Instant(slot), &in), w.pool.Record(engine.Instant(slot), &in))
		w.now = engine.Instant(slot)
	}
	for _, slot := range []uint32{0, 11, 5, 5, 6, 1, 2, 3, 3, 3, 10, 9, 8, 0, 4, 7, 11, 6} {
		w.m.compensate(slot)
		w.pool.Compensate(slot)
		w.audit(t)
	}
}

// A window that is bound anew knows nothing of the words it had before.
func TestAWindowBoundToOtherWordsForgets(t *testing.T) {
	var w Window
	w.Init(4, 100, Unit/2)
	full, empty := make([]uint64, w.Words()), make([]uint64, w.Words())
	w.Bind(full)
	for i := range 4 {
		w.Add(engine.Instant(i), uint32(7+i))
	}
	w.Bind(empty)
	assert.Equal(t, engine.NoThreshold, w.Threshold())
	for i, want := range []uint32{3, 1, 3} {
		w.Add(engine.Instant(10+i), []uint32{3, 1, 9}[i])
		assert.Equal(t, want, w.Threshold())
	}
}
