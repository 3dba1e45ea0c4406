package probe

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// world is an engine around a pool and its model.
type world struct {
	engine.Base
	pool Pool
	m    *model
	e    *engine.Engine
	look func() // during a decision
	left int
	now  engine.Instant // of the last call
}

func newWorld(t testing.TB, pool, minimum, fleet int) *world {
	w := &world{m: &model{limit: pool, min: minimum, max: pool, threshold: engine.NoThreshold}}
	w.pool.Init(pool, minimum, hotFirst)
	w.e = engine.New(w, engine.Config{})
	cs := make([]engine.Candidate, fleet)
	for i := range cs {
		cs[i].ID = engine.ID(i)
	}
	require.NoError(t, w.e.SetCandidates(-1000, cs))
	return w
}

func (w *world) Name() string          { return "pool" }
func (w *world) Spec() string          { return "pool" }
func (w *world) Layout() engine.Layout { return engine.Layout{Fixed: w.pool.Words()} }
func (w *world) Bind(fixed []uint64, s *engine.Set, fresh bool) {
	w.Set, w.m.set = s, s
	w.pool.Bind(fixed, s, fresh)
	w.pool.SetThreshold(w.m.threshold)
}
func (w *world) Moved(remap []int32) {
	w.left += w.pool.Moved(remap)
	w.m.es = slices.DeleteFunc(w.m.es, func(e held) bool { return remap[e.slot] < 0 })
	for i := range w.m.es {
		w.m.es[i].slot = uint32(remap[w.m.es[i].slot])
	}
}
func (w *world) Changed() { w.pool.Changed() }
func (w *world) Decide(engine.Instant, engine.Key) error {
	w.Set.Out = engine.Decision{Index: w.Set.OpenAt(0)} // what Serve does not fill in stays so
	if w.look != nil {
		w.look()
	}
	return nil
}

// audit works out everything that the pool derives, and finds what differs.
func (w *world) audit(t require.TestingT) {
	p := &w.pool
	used, cold, unknown, odd := uint64(0), 0, 0, 0
	if p.max > packedRoom {
		odd++
	}
	first := never
	where := make([]uint8, w.Set.Len())
	for h := range uint32(MaxPool) {
		if int(h) >= p.max || p.rec(h)[recSlot] == 0 {
			require.True(t, h >= packedRoom || p.key[h] == blank, "no entry")
			continue
		}
		r := p.rec(h)
		used |= 1 << h
		slot, rif := uint32(r[recSlot]), uint32(r[recRIF])
		where[slot] = uint8(h + 1)
		require.True(t, !p.packs() || p.key[h] == hotFirst(rif, r[recLat], p.threshold), "key of %+v", r)
		if rif <= p.threshold {
			cold++
		}
		if r[recLat] == unknownLat {
			unknown++
			odd++
		}
		if !w.Set.IsEligible(slot) {
			odd++
		}
		first = min(first, engine.Instant(r[recAt]))
	}
	require.Equal(t, where, p.where)
	require.Equal(t, used, p.used())
	require.Equal(t, blank>>(MaxPool-p.max)&^used, p.free)
	require.Equal(t, bits.OnesCount64(used), p.Len())
	require.Equal(t, []int{cold, unknown, odd}, []int{p.cold, p.unknown, p.odd})
	if p.packs() && unknown == 0 {
		for i, e := range w.m.sorted(w.m.es) {
			require.Equal(t, e.slot, uint32(p.rec(p.order.at(i))[recSlot]), "place %d in the order", i)
		}
	}
	require.Zero(t, p.order>>(4*p.Len()), "nothing above the last")
	require.Zero(t, p.ages>>(4*p.Len()), "nothing above the last")
	for i := 1; i < p.Len() && p.packs(); i++ {
		require.Less(t, p.rec(p.ages.at(i - 1))[recSeq], p.rec(p.ages.at(i))[recSeq])
	}
	if p.Len() > 0 {
		require.LessOrEqual(t, p.oldest, first)
		require.LessOrEqual(t, p.Due(100), first+100)
	} else {
		require.Equal(t, never, p.Due(100))
	}
	require.True(t, p.Valid(w.now))
	require.Equal(t, w.m.seq, p.head[poolSeq])
	require.Equal(t, w.m.limit, p.Limit())

	fresh := Pool{} // what is derived anew from the same words is what was kept up
	fresh.Init(p.max, p.minimum, hotFirst)
	words := slices.Concat(p.head[:], p.recs)
	fresh.Bind(words, w.Set, false)
	if oldest := fresh.oldest; p.Len() > 0 {
		require.Equal(t, first, oldest)
	}
	fresh.SetThreshold(p.threshold)
	require.Equal(t, []any{p.where, p.free, p.cold, p.unknown, p.odd, p.order, p.ages, p.key},
		[]any{fresh.where, fresh.free, fresh.cold, fresh.unknown, fresh.odd, fresh.order, fresh.ages, fresh.key})
}

func (w *world) entries(es []held, now engine.Instant, age engine.Duration) (out []engine.Entry) {
	for _, e := range w.m.sorted(es) {
		if engine.Duration(now-e.at) < age {
			out = append(out, engine.Entry{
				ID: w.Set.ID(e.slot), At: e.at, Asked: e.asked, Latency: e.lat, RawLatency: e.rawLat, RIF: e.rif, RawRIF: e.raw,
				Uses: e.uses, Eligible: w.Set.IsEligible(e.slot), Hot: e.rif > w.m.threshold,
			})
		}
	}
	return out
}

// shown compares what the pool shows with the model.
func (w *world) shown(t require.TestingT, now engine.Instant) {
	require.Equal(t, w.entries(w.m.es, now, 50), w.pool.Entries(now, 50, nil))
	require.Equal(t, w.entries(w.m.open(), now, 1<<40), w.pool.Offers(now, 1<<40, nil))
	open := w.m.open()
	o := w.pool.Offered()
	require.Equal(t, []any{len(open), w.m.cold(open), lowerMedian(open)}, []any{o.Entries, o.Cold, o.Median})
	if len(open) > 0 {
		require.Equal(t, w.m.sorted(open)[0].slot, uint32(w.pool.rec(o.Best)[recSlot]))
	}
}

// step makes one call on both.
func (w *world) step(t require.TestingT, r *rand.Rand, now engine.Instant) {
	slot := uint32(r.IntN(w.Set.Len()))
	switch r.IntN(14) {
	case 0, 1, 2, 3, 4:
		in := Incoming{
			Slot: slot, Uses: 1 + uint32(r.IntN(3)), RIF: uint32(r.IntN(6)), RawRIF: uint32(r.IntN(9)),
			Latency: engine.Duration(r.IntN(8) - r.IntN(30)/29), RawLatency: engine.Duration(r.IntN(9) - 1), Asked: now - engine.Instant(r.IntN(20)),
		}
		switch r.IntN(30) {
		case 0:
			in.RIF += 1<<24 - 4
		case 1:
			in.Latency += 1<<33 - 4
		case 2:
			in.RIF = engine.NoThreshold - uint32(r.IntN(3))
		case 3:
			in.Latency = engine.MaxLatency
		}
		require.Equal(t, w.m.record(now, &in), w.pool.Record(now, &in))
	case 5, 6, 7, 8:
		turn := uint64(r.IntN(3))
		tried := []engine.ID{}
		if r.IntN(4) == 0 {
			tried = append(tried, w.Set.ID(slot))
		}
		w.look = func() {
			w.shown(t, now)
			want, ok := w.m.serve(now, turn)
			require.Equal(t, ok, w.pool.Serve(now, turn))
			if !ok {
				return
			}
			require.Equal(t, want, w.Set.Out)
		}
		require.NoError(t, w.e.Attach(now, tried, nil))
		if err := w.e.Place(now, 0); err != nil {
			require.ErrorIs(t, err, engine.ErrNoneEligible)
		}
		w.look = nil
	case 9:
		if o := w.pool.Offered(); o.Entries > 0 {
			open := w.m.open()
			want := w.m.take(now, w.m.sorted(open)[0].slot, len(open), w.m.cold(open))
			w.pool.Take(now, o.Best, o.Entries, o.Cold)
			require.Equal(t, want, w.Set.Out)
		}
	case 10:
		if len(w.m.es) > 0 && r.IntN(2) == 0 {
			w.m.drop(w.m.worst())
			w.pool.RemoveWorst()
		} else if len(w.m.es) > 0 {
			w.m.drop(0)
			w.pool.RemoveOldest()
		}
	case 11:
		asked := now - engine.Instant(r.IntN(20))
		i := w.m.at(slot)
		gone := i >= 0 && w.m.es[i].asked <= asked
		if gone {
			w.m.drop(i)
		}
		require.Equal(t, gone, w.pool.Drop(slot, asked))
		w.m.compensate(slot)
		w.pool.Compensate(slot)
	case 12:
		w.m.threshold = uint32(r.IntN(7))
		if r.IntN(9) == 0 {
			w.m.threshold = engine.NoThreshold
		}
		w.pool.SetThreshold(w.m.threshold)
		require.Equal(t, w.m.expire(now, 50), w.pool.Expire(now, 50))
	case 13:
		w.churn(t, r, now)
	}
}

func (w *world) churn(t require.TestingT, r *rand.Rand, now engine.Instant) {
	switch r.IntN(4) {
	case 0:
		require.NoError(t, w.e.SetStatus(now, w.Set.ID(uint32(r.IntN(w.Set.Len()))), engine.Status(max(0, r.IntN(4)-1))))
	case 1:
		limit := 1 + r.IntN(w.m.max)
		w.m.limit = limit
		evicted := max(0, len(w.m.es)-limit)
		w.m.es = w.m.es[evicted:]
		require.Equal(t, evicted, w.pool.SetLimit(limit))
	case 2:
		block, err := w.e.Snapshot(nil)
		require.NoError(t, err)
		require.NoError(t, w.e.Restore(block))
	case 3:
		cs := make([]engine.Candidate, 0, w.Set.Len())
		for _, i := range r.Perm(w.Set.Len()) {
			cs = append(cs, engine.Candidate{ID: w.Set.ID(uint32(i))})
		}
		stranger := engine.Candidate{ID: engine.ID(1000 + r.Uint64N(1<<40))}
		switch n := r.IntN(4); {
		case n == 0: // a replica makes way for another
			cs[0] = stranger
		case n == 1 && len(cs) > 2:
			cs = cs[1:]
		case n == 2 && len(cs) < 100:
			cs = append(cs, stranger)
		}
		was := len(w.m.es)
		w.left = 0
		require.NoError(t, w.e.SetCandidates(now, cs))
		require.Equal(t, was-len(w.m.es), w.left)
	}
}

func TestThePoolIsItsModel(t *testing.T) {
	for seed, c := range [][3]int{{1, 1, 3}, {2, 1, 5}, {4, 2, 7}, {16, 2, 30}, {16, 3, 40}, {17, 2, 30}, {40, 2, 60}, {64, 1, 100}} {
		for walk := range uint64(3) {
			w := newWorld(t, c[0], c[1], c[2])
			r := rand.New(rand.NewPCG(uint64(seed), walk))
			now := engine.Instant(-300) // an origin of clocks means nothing
			for range 400 {
				now += engine.Instant(r.IntN(4))
				if r.IntN(30) == 0 {
					now += 40
				}
				w.now = now
				w.step(t, r, now)
				w.audit(t)
				w.shown(t, now)
				if t.Failed() {
					return
				}
			}
		}
	}
}
