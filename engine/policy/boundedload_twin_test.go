package policy

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/internal/fixed"
	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// boundedTwin is the rule told slowly: it keeps its own books by identity, sorts, divides in
// whole numbers without bounds, and walks down the ranking.
type boundedTwin struct {
	factor int64 // parts per 10,000
	loads  map[engine.ID]int64
}

func newBoundedTwin(factor uint64) *boundedTwin {
	return &boundedTwin{int64(factor), map[engine.ID]int64{}}
}

func (b *boundedTwin) ranked(cs []engine.Candidate, key engine.Key) []engine.Candidate {
	times := map[engine.ID]*big.Rat{}
	for _, c := range cs {
		log := fixed.NegLog(rank.Score(rank.Key(uint64(key)), rank.Replica(uint64(c.ID))))
		times[c.ID] = new(big.Rat).SetFrac(new(big.Int).SetUint64(log), big.NewInt(int64(max(1, c.Weight))))
	}
	order := slices.Clone(cs)
	slices.SortFunc(order, func(x, y engine.Candidate) int { return times[x.ID].Cmp(times[y.ID]) })
	return order
}

// capacity is ceil(factor * (total + 1) * w / W) over a fleet.
func (b *boundedTwin) capacity(fleet []engine.Candidate, c engine.Candidate) *big.Int {
	inFlight, weights := int64(1), int64(0)
	for _, c := range fleet {
		inFlight += b.loads[c.ID]
		weights += int64(max(1, c.Weight))
	}
	x := new(big.Int).Mul(big.NewInt(b.factor), big.NewInt(inFlight))
	x.Mul(x, big.NewInt(int64(max(1, c.Weight))))
	unit := new(big.Int).Mul(big.NewInt(10000), big.NewInt(weights))
	return x.Add(x, unit).Sub(x, big.NewInt(1)).Quo(x, unit)
}

// decide returns the winner and its regime, and that some candidate had room.
func (b *boundedTwin) decide(cs []engine.Candidate, q *engine.Query) (engine.ID, engine.Regime, bool) {
	eligible := slices.DeleteFunc(slices.Clone(cs), func(c engine.Candidate) bool { return !c.Status.Eligible() })
	open := slices.DeleteFunc(slices.Clone(eligible), func(c engine.Candidate) bool { return slices.Contains(q.Tried, c.ID) })
	ranked := b.ranked(open, q.Key)
	for _, fleet := range [][]engine.Candidate{eligible, open} {
		for depth, c := range ranked {
			if big.NewInt(b.loads[c.ID]).Cmp(b.capacity(fleet, c)) < 0 {
				if depth == 0 && len(fleet) == len(eligible) {
					return c.ID, engine.RegimeDirect, true
				}
				return c.ID, engine.RegimeSpill, true
			}
		}
	}
	return 0, 0, false
}

// keep follows the engine's books through a step of a walk.
func (b *boundedTwin) keep(e *engine.Engine, w *enginetest.Walker) {
	clear(b.loads)
	for _, c := range w.Fleet {
		b.loads[c.ID] = int64(e.InFlight(c.ID))
	}
}

// against walks a machine beside its twin. meddle may plant a fault before each call.
func (b *boundedTwin) against(p *BoundedLoad, seed uint64, steps int, meddle func(e *engine.Engine, w *enginetest.Walker)) (spilled, moved int, err error) {
	e, w := engine.New(p, engine.Config{}), enginetest.NewWalker(seed)
	if err := w.Begin(e); err != nil {
		return 0, 0, err
	}
	for i := range steps {
		meddle(e, w)
		b.keep(e, w)
		s := w.Step(e)
		if s.Op == "fleet" {
			moved++
		}
		if s.Decision == nil || s.Query.Key == 0 {
			continue
		}
		id, regime, ok := b.decide(w.Fleet, s.Query)
		if !ok {
			return 0, 0, fmt.Errorf("call %d: no candidate has room", i)
		}
		if s.Decision.ID != id || s.Decision.Regime != regime {
			return 0, 0, fmt.Errorf("call %d: %d by %s, want %d by %s", i, s.Decision.ID, s.Decision.Regime, id, regime)
		}
		if regime == engine.RegimeSpill {
			spilled++
		}
	}
	return spilled, moved, nil
}

func none(*engine.Engine, *enginetest.Walker) {}

func boundedLoad(t testing.TB, factor uint64) *BoundedLoad {
	p, err := NewBoundedLoad(7, factor)
	require.NoError(t, err)
	return p
}

func TestBoundedLoadEqualsItsSlowTwin(t *testing.T) {
	for _, factor := range []uint64{10000, 10001, 12500, 15000, 30000, 1000000} {
		spills := 0
		for seed := range uint64(4) {
			spilled, moved, err := newBoundedTwin(factor).against(boundedLoad(t, factor), seed, 2000, none)
			require.NoError(t, err, "factor %d, walk %d", factor, seed)
			require.NotZero(t, moved)
			spills += spilled
		}
		require.True(t, spills > 50 || factor > 100000, "%d spills at factor %d", spills, factor)
	}
}

// Whatever counts a restored block holds, the rule goes on from them.
func TestBoundedLoadServesAnyRestoredCounts(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		_, _, err := newBoundedTwin(15000).against(boundedLoad(t, 15000), seed, 2000, func(e *engine.Engine, w *enginetest.Walker) {
			if n := len(w.Fleet); n > 0 && r.IntN(20) == 0 {
				block, err := e.Snapshot(nil)
				require.NoError(t, err)
				row := block[len(block)-8*(1+r.IntN(n)):]
				binary.LittleEndian.PutUint32(row, []uint32{0, 1, uint32(r.IntN(100)), 1<<32 - 1, 1<<32 - 2, r.Uint32()}[r.IntN(6)])
				require.NoError(t, e.Restore(block))
			}
		})
		require.NoError(t, err)
	}
}

// The total is kept and not summed: it must never drift, and the twin must notice if it did.
func TestTheTwinNoticesABoundedLoadThatMiscounts(t *testing.T) {
	for name, fault := range map[string]func(p *BoundedLoad){
		"a total that drifts":         func(p *BoundedLoad) { p.fleet.inFlight += 3 },
		"a weight left out":           func(p *BoundedLoad) { p.fleet.weights = max(2, p.fleet.weights) - 1 },
		"the last decision forgotten": func(p *BoundedLoad) { p.last = 0 },
		"a stale ranking":             func(p *BoundedLoad) { slices.Reverse(p.race.lanes) },
	} {
		noticed := false
		for seed := range uint64(6) {
			p := boundedLoad(t, 12500)
			_, _, err := newBoundedTwin(12500).against(p, seed, 3000, func(e *engine.Engine, _ *enginetest.Walker) { fault(p) })
			noticed = noticed || err != nil
		}
		require.True(t, noticed, name)
	}
}
