package policy

import (
	"cmp"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
)

// field is a fleet whose scores under key 1 are given.
type field struct {
	weights []uint32
	scores  []uint64
}

// anyField has close finishes, hopeless ones, and weights from one end of their range to the other.
func anyField(t *rapid.T) field {
	n := rapid.IntRange(1, 12).Draw(t, "candidates")
	near := rapid.SampledFrom([]uint64{0, 1, 1 << 32, 1 << 63, 1<<64 - 1<<34, 1<<64 - 1}).Draw(t, "near")
	score := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Uint64Range(0, 1<<20), func(d uint64) uint64 { return near + d }),
		rapid.Map(rapid.Uint64Range(1<<40, 1<<42), func(d uint64) uint64 { return ^d }), rapid.Just(near))
	weight := rapid.OneOf(rapid.Uint32Range(1, 4), rapid.Uint32Min(1), rapid.SampledFrom([]uint32{1<<32 - 1, 1<<32 - 2, 1 << 31}))
	return field{rapid.SliceOfN(weight, n, n).Draw(t, "weights"), rapid.SliceOfN(score, n, n).Draw(t, "scores")}
}

// order is the rule told slowly: by time as a fraction of whole numbers, by score, by ID.
func (f field) order() []int {
	time := func(i int) *big.Rat {
		return new(big.Rat).SetFrac(new(big.Int).SetUint64(fixed.NegLog(f.scores[i])), big.NewInt(int64(f.weights[i])))
	}
	places := make([]int, len(f.scores))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(time(a).Cmp(time(b)), cmp.Compare(f.scores[b], f.scores[a]), cmp.Compare(a, b))
	})
	return places
}

// run decides among the candidates but the tried; spoil may plant a fault in the table.
func (f field) run(tried []int, spoil func(lanes []lane)) int {
	p := NewWeightedRendezvous(0)
	e := engine.New(p, engine.Config{})
	cs := make([]engine.Candidate, len(f.scores))
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(f.weights[i])}
	}
	if err := e.SetCandidates(0, cs); err != nil {
		panic(err)
	}
	for i, score := range f.scores {
		p.race.lanes[i].hash = hashFor(1, score)
	}
	spoil(p.race.lanes)
	q := engine.Query{Key: 1}
	for _, i := range tried {
		q.Tried = append(q.Tried, engine.ID(i))
	}
	var d engine.Decision
	if err := e.Decide(&q, &d); err != nil {
		panic(err)
	}
	return int(d.Index)
}

func TestTheRaceFindsTheFirstOfTheField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyField(t)
		order := f.order()
		for k := range order {
			require.Equal(t, order[k], f.run(order[:k], func([]lane) {}), "place %d", k)
		}
	})
}

// The comparison must notice a table that lets the bar stop a candidate that could still win.
func TestTheRaceNoticesAFaultyTable(t *testing.T) {
	noticed := 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		f := field{[]uint32{1, 2, 3, 4}, []uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}}
		if f.run(nil, func(lanes []lane) { lanes[2].pace += lanes[2].pace / 2 }) != f.order()[0] {
			noticed++
		}
	}
	require.NotZero(t, noticed)
}

// A bound that cut off a true time by one part would let the order of the set matter.
func TestBoundsHoldTheTimeBetweenThem(t *testing.T) {
	between := func(l *lane, score, weight, least uint64) bool {
		scaled := func(x uint64, by ...uint64) *big.Int {
			n := new(big.Int).SetUint64(x)
			for _, y := range by {
				n.Mul(n, new(big.Int).SetUint64(y))
			}
			return n
		}
		log := fixed.NegLog(score)
		time := scaled(log, least, 1<<32)
		holds := func(high uint64) bool { return high == noTime || time.Cmp(scaled(high, weight, 1<<26)) < 0 }
		return scaled(l.low(score), weight, 1<<26).Cmp(time) <= 0 && holds(l.high(score)) && holds(l.closer(log))
	}
	rapid.Check(t, func(t *rapid.T) {
		f := anyField(t)
		least := uint64(slices.Min(f.weights))
		for i, score := range f.scores {
			weight := uint64(f.weights[i])
			require.True(t, between(&lane{pace: least << 32 / weight}, score, weight, least), "%#x at %d of %d", score, weight, least)
		}
	})
	require.False(t, between(&lane{pace: 1<<32/3 + 1<<18}, 0xffff<<48, 3, 1), "a low that is too high")
	require.False(t, between(&lane{pace: 1<<32/3 - 1<<18}, 0xffff<<48, 3, 1), "a high that is too low")
}

func FuzzTheRaceFindsTheFirstOfTheField(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x80"))
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c field
		for ; len(b) >= 12 && len(c.scores) < 12; b = b[12:] {
			c.weights = append(c.weights, max(1, binary.LittleEndian.Uint32(b)))
			c.scores = append(c.scores, binary.LittleEndian.Uint64(b[4:]))
		}
		if len(c.scores) == 0 {
			return
		}
		order := c.order()
		require.Equal(t, order[0], c.run(nil, func([]lane) {}))
		require.Equal(t, order[len(order)-1], c.run(order[:len(order)-1], func([]lane) {}))
	})
}
