package probe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// fill puts entries into a pool: RIF and latency by slot.
func (w *world) fill(now engine.Instant, of ...[2]int) {
	w.now = now
	for slot, e := range of {
		in := Incoming{Slot: uint32(slot), Uses: 2, RIF: uint32(e[0]), RawRIF: uint32(e[0]), Latency: engine.Duration(e[1]), RawLatency: engine.Duration(e[1]), Asked: now}
		w.m.record(now, &in)
		w.pool.Record(now, &in)
	}
}

func TestAPoolThatWasToldNoThresholdHasNone(t *testing.T) {
	w := newWorld(t, 2, 1, 2)
	p := &Pool{}
	p.Init(2, 1, hotFirst)
	p.Bind(make([]uint64, p.Words()), w.Set, true)
	p.Record(0, &Incoming{Slot: 0, Uses: 1, RIF: 99, Latency: -5})
	assert.Equal(t, 1, p.Offered().Cold)
	assert.Equal(t, uint64(1<<57-1), p.rec(0)[recLat], "unknown is one beyond the greatest latency")
}

// A full pool keeps what it has from an answer that was asked before all of it.
func TestTheEarliestAskedIsFoundAmongTheLatestInstants(t *testing.T) {
	w := newWorld(t, 2, 1, 3)
	for slot := range uint32(2) {
		w.pool.Record(never, &Incoming{Slot: slot, Uses: 1, Asked: never})
	}
	assert.Equal(t, engine.DroppedStale, w.pool.Record(never, &Incoming{Slot: 2, Uses: 1, Asked: never - 1}))
	assert.Equal(t, engine.EvictedOldest, w.pool.Record(never, &Incoming{Slot: 2, Uses: 1, Asked: never}))
}

// D5 of the seed library: allocations that its documents denied.
func TestD5AChangeOfStatusDoesNotAllocate(t *testing.T) {
	w := newWorld(t, 4, 1, 64)
	w.fill(0, [2]int{1, 2}, [2]int{3, 4})
	assert.Zero(t, testing.AllocsPerRun(100, w.pool.Changed))
}

func TestBlocksThatNoPoolMadeAreNotValid(t *testing.T) {
	base := func() *world {
		w := newWorld(t, 4, 1, 5)
		w.fill(10, [2]int{1, 5}, [2]int{2, 6}, [2]int{3, 7})
		_, _ = w.e.Probes(20, nil)
		return w
	}
	for name, c := range map[string]struct {
		valid bool
		spoil func(p *Pool)
	}{
		"as it is":                {true, func(*Pool) {}},
		"no room at all":          {false, func(p *Pool) { p.head[poolLimit] = 0 }},
		"more room than storage":  {false, func(p *Pool) { p.head[poolLimit] = 5 }},
		"as much room as storage": {true, func(p *Pool) { p.head[poolLimit] = 4 }},
		"as much room as entries": {true, func(p *Pool) { p.head[poolLimit] = 3 }},
		"more entries than room":  {false, func(p *Pool) { p.head[poolLimit] = 2 }},
		"too many admissions":     {false, func(p *Pool) { p.head[poolSeq] = 1 << 57 }},
		"as many as there may be": {true, func(p *Pool) { p.head[poolSeq] = 1<<57 - 1 }},
		"leftovers":               {true, func(p *Pool) { p.rec(3)[recRIF], p.rec(3)[recLat], p.rec(3)[recSpare] = 1<<64-1, 1<<64-1, 9 }},
		"no room for none": {false, func(p *Pool) {
			for h := range uint32(3) {
				p.rec(h)[recSlot] = 0
			}
			p.head[poolLimit] = 0
		}},
		"wrong behind a free handle":    {false, func(p *Pool) { p.rec(0)[recSlot], p.rec(2)[recSpare] = 0, 1 }},
		"a slot without uses":           {false, func(p *Pool) { p.rec(3)[recSlot] = 4 }},
		"a used slot without uses":      {false, func(p *Pool) { p.rec(1)[recSlot] = 1 }},
		"no such candidate":             {false, func(p *Pool) { p.rec(1)[recSlot] = 1<<32 | 5 }},
		"the last candidate":            {true, func(p *Pool) { p.rec(1)[recSlot] = 1<<32 | 4 }},
		"two entries of one":            {false, func(p *Pool) { p.rec(1)[recSlot] = 1<<32 | 2 }},
		"admitted later than all":       {false, func(p *Pool) { p.rec(1)[recSeq] = 3 }},
		"two admitted as one":           {false, func(p *Pool) { p.rec(0)[recSeq] = 2 }},
		"two admitted as one, adjacent": {false, func(p *Pool) { p.rec(1)[recSeq] = 0 }},
		"received in the future":        {false, func(p *Pool) { p.rec(0)[recAt] = 21 }},
		"received now":                  {true, func(p *Pool) { p.rec(0)[recAt] = 20 }},
		"asked after receipt":           {false, func(p *Pool) { p.rec(2)[recAsked] = 11 }},
		"a RIF that none may have":      {false, func(p *Pool) { p.rec(2)[recRIF] = 1<<32 - 1 }},
		"the greatest RIF":              {true, func(p *Pool) { p.rec(2)[recRIF] = 1<<32 - 2 }},
		"a reported RIF of any size":    {true, func(p *Pool) { p.rec(2)[recRIF] |= (1<<32 - 1) << 32 }},
		"an unknown latency":            {true, func(p *Pool) { p.rec(2)[recLat], p.rec(2)[recRaw] = unknownLat, unknownLat }},
		"beyond unknown":                {false, func(p *Pool) { p.rec(2)[recLat] = unknownLat + 1 }},
		"beyond unknown, as reported":   {false, func(p *Pool) { p.rec(2)[recRaw] = unknownLat + 1 }},
		"a spare word in use":           {false, func(p *Pool) { p.rec(2)[recSpare] = 1 }},
	} {
		w := base()
		words := slices.Concat(w.pool.head[:], w.pool.recs)
		p := &Pool{}
		p.Init(4, 1, hotFirst)
		p.Bind(words, w.Set, false)
		c.spoil(p)
		p.Bind(words, w.Set, false)
		assert.Equal(t, c.valid, p.Valid(w.Set.Last()), name)
	}
}

// Valid compares every pair of entries, in the largest pool too.
func TestTwoEntriesOfOneAdmissionAreNotValid(t *testing.T) {
	w := newWorld(t, 64, 1, 64)
	for slot := range uint32(64) {
		w.pool.Record(5, &Incoming{Slot: slot, Uses: 1, Latency: engine.Duration(slot)})
	}
	require.True(t, w.pool.Valid(5))
	for i := range uint32(64) {
		was := w.pool.rec(i)[recSeq]
		w.pool.rec(i)[recSeq] = w.pool.rec((i + 17) % 64)[recSeq]
		require.False(t, w.pool.Valid(5), i)
		w.pool.rec(i)[recSeq] = was
	}
}

func TestLaterStopsAtTheLastInstant(t *testing.T) {
	assert.Equal(t, engine.Instant(7), Later(3, 4))
	assert.Equal(t, never, Later(never-4, 4))
	assert.Equal(t, never, Later(never-3, 4))
	assert.Equal(t, never-1, Later(never-5, 4))
	assert.Equal(t, engine.Instant(1<<63-1), never)
	assert.Zero(t, newWorld(t, 2, 1, 2).pool.Expire(never, 5), "an empty pool, at the last instant")
}

// An entry whose RIF is the greatest there is stays there.
func TestCompensationStopsBelowNoThreshold(t *testing.T) {
	w := newWorld(t, 2, 1, 2)
	w.fill(0, [2]int{1<<32 - 3, 4})
	for range 3 {
		w.pool.Compensate(0)
		w.m.compensate(0)
		w.audit(t)
	}
	assert.Equal(t, uint32(1<<32-2), w.pool.Entries(0, 9, nil)[0].RIF)
	w.pool.Compensate(1) // has no entry
	w.audit(t)
}

// Where keys stop telling RIFs apart, the pool knows that they may tie, and not before.
func TestCompensationReachesWhereKeysTie(t *testing.T) {
	w := newWorld(t, 2, 1, 2)
	w.fill(0, [2]int{ToldRIF - 2, 4})
	for range 4 {
		w.pool.Compensate(0)
		w.m.compensate(0)
		w.audit(t)
	}
}

// Whatever the words, nothing panics: a guest would trap.
func TestArbitraryWordsAreReadWithoutHarm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		size := 1 + r.IntN(20)
		w := newWorld(t, size, 1, 5)
		words := make([]uint64, w.pool.Words())
		for i := range words {
			words[i] = r.Uint64() >> r.IntN(64)
		}
		p := &Pool{}
		p.Init(size, 1, hotFirst)
		p.Bind(words, w.Set, false)
		if p.Valid(100) {
			t.Fatal(fmt.Sprint("valid by chance: ", words))
		}
	}
}

// A slot one beyond the fleet's last is nobody's: not even two such entries of one key are
// compared.
func TestASlotJustBeyondTheFleetIsReadWithoutHarm(t *testing.T) {
	w := newWorld(t, 2, 1, 5)
	w.fill(0, [2]int{1, 5}, [2]int{1, 5})
	words := slices.Concat(w.pool.head[:], w.pool.recs)
	p := &Pool{}
	p.Init(2, 1, hotFirst)
	for slot, valid := range map[uint64]bool{4: true, 5: false} {
		words[poolHead+recSlot] = 1<<32 | slot
		p.Bind(words, w.Set, false)
		assert.Equal(t, valid, p.Valid(0), slot)
	}
	words[poolHead+recWords+recSlot] = 1<<32 | 5
	p.Bind(words, w.Set, false)
	assert.False(t, p.Valid(0))
}

// One entry without a latency ranks as the lower median, not as the slowest.
func TestTheWorstIsFoundAroundOneUnknownLatency(t *testing.T) {
	w := newWorld(t, 3, 1, 3)
	w.fill(0, [2]int{1, 5}, [2]int{1, 9}, [2]int{1, -1})
	w.pool.RemoveWorst()
	var left []engine.ID
	for _, e := range w.pool.Entries(0, 9, nil) {
		left = append(left, e.ID)
	}
	assert.ElementsMatch(t, []engine.ID{0, 2}, left)
}

func TestClearTakesEveryEntryOut(t *testing.T) {
	for _, size := range []int{3, 64} { // packed, and not
		w := newWorld(t, size, 1, 64)
		for round := range 2 {
			for slot := range uint32(size) {
				require.Equal(t, engine.Admitted, w.pool.Record(1, &Incoming{Slot: slot, Uses: 1}), "round %d", round)
			}
			w.pool.Clear()
			w.m.es, w.m.seq = nil, uint64(size*(round+1))
			w.audit(t)
		}
		w.pool.Clear() // of nothing
		w.audit(t)
	}
}

// What rules outside this package build on: the widths of the fields that a key is packed of, and
// the bound that users are told.
func TestTheBoundsForCallers(t *testing.T) {
	assert.Equal(t, 1<<24-1, ToldRIF+1, "24 bits, and with all of them set it is no key")
	assert.Equal(t, 1<<33-1, ToldLatency, "33 bits")
	assert.Equal(t, 4096, MaxWindow)
}
