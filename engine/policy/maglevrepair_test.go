package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// history changes a fleet step by step: mostly one candidate, sometimes several or none.
type history struct {
	*rand.Rand
	fleet []engine.Candidate
}

func newHistory(seed uint64, size int) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 5))}
	for range 1 + h.IntN(min(size/2+1, 200)) {
		h.join()
	}
	return h
}

func (h *history) join() {
	h.fleet = append(h.fleet, engine.Candidate{ID: engine.ID(h.Uint64()), Weight: engine.Weight(h.IntN(4))})
}

func (h *history) step() {
	h.fleet = slices.Clone(h.fleet)
	for range max(1, h.IntN(8)-4) {
		i := h.IntN(len(h.fleet))
		switch h.IntN(8) {
		case 0:
			if len(h.fleet) > 1 {
				h.fleet = slices.Delete(h.fleet, i, i+1)
			}
		case 1:
			h.join()
		case 2:
			h.fleet[i].Weight++
		case 3:
			h.Shuffle(len(h.fleet), func(i, j int) { h.fleet[i], h.fleet[j] = h.fleet[j], h.fleet[i] })
		default: // drains, or comes back
			h.fleet[i].Status = 1 - h.fleet[i].Status
		}
	}
}

// repairLaw: after every step of a history each entry is that of a table filled afresh, and of the
// twin's. What spoils a table between the steps is a planted fault.
func repairLaw(seed uint64, spoil func(t *maglevTable)) error {
	size, weighted := []int{2, 7, 31, 101, 307, 1009, 2003}[seed%7], seed%8 == 7
	h := newHistory(seed, size)
	p := plainMaglev(size, weighted)
	e := engine.New(p, engine.Config{})
	for i := range 14 {
		if len(h.fleet) > size { // would be refused
			h.fleet = h.fleet[:size]
		}
		if err := e.SetCandidates(0, h.fleet); err != nil {
			return err
		}
		if p.Set.Eligible() > 0 {
			what := fmt.Sprintf("step %d, %d in %d", i, len(h.fleet), size)
			q := plainMaglev(size, weighted)
			if err := engine.New(q, engine.Config{}).SetCandidates(0, h.fleet); err != nil {
				return err
			}
			if err := differ(owners(p), owners(q), what); err != nil {
				return err
			}
			if err := differ(owners(p), slowTable(slowMembers(h.fleet, size, weighted), size), what+", the twin"); err != nil {
				return err
			}
		}
		if t := &p.table; t.kept > 0 {
			spoil(t)
		}
		h.step()
	}
	return nil
}

func TestAMaglevTableWithAHistoryIsThatOfTheTwin(t *testing.T) {
	underChurn(t, func(seed uint64) error { return repairLaw(seed, func(*maglevTable) {}) })
	for fault, spoil := range map[string]func(t *maglevTable){
		"a step too far":     func(t *maglevTable) { t.row(t.members[0].number)[t.kept-1]++ },
		"a visit of nobody":  func(t *maglevTable) { m := &t.members[0]; t.forget(m); t.reach[m.number] = 0 },
		"an entry too free":  func(t *maglevTable) { t.early[0] |= -t.early[0] },
		"a claim too early":  func(t *maglevTable) { t.entries[t.size/2] += 1 << t.shift },
		"a claim of another": func(t *maglevTable) { t.entries[t.size/2] ^= 1 },
		"a wrong order":      func(t *maglevTable) { slices.Reverse(t.members) },
	} {
		noticed(t, fault, func(seed uint64) error { return repairLaw(seed, spoil) })
	}
}

// repaired says whether a change was followed without filling, which begins with batches.
func repaired(p *Maglev, change func()) bool {
	p.table.waiting = nil
	change()
	return p.table.waiting == nil
}

func TestALargeFleetIsRepairedAndEqualsAFreshOne(t *testing.T) {
	for _, n := range []int{257, 512, 4096} {
		h := newHistory(uint64(n), 2)
		for len(h.fleet) < n {
			h.join()
		}
		p := plainMaglev(65537, false)
		e := engine.New(p, engine.Config{})
		require.NoError(t, e.SetCandidates(0, h.fleet))
		for i := range 12 {
			h.fleet[i].Status = engine.StatusDraining
			if i%3 == 2 {
				h.fleet[i-1].Status, h.fleet[i].ID = engine.StatusReady, engine.ID(h.Uint64())
			}
			several := i%3 == 2
			assert.True(t, repaired(p, func() { require.NoError(t, e.SetCandidates(0, h.fleet)) }) || several, "%d of %d", i, n)
		}
		q := plainMaglev(65537, false)
		require.NoError(t, engine.New(q, engine.Config{}).SetCandidates(0, h.fleet))
		require.NoError(t, differ(owners(p), owners(q), "afresh"))
		require.NoError(t, differ(owners(p), slowTable(slowMembers(h.fleet, 65537, false), 65537), "the twin"))
	}
}

// What would be more work than filling is filled.
func TestManyChangesAreFilled(t *testing.T) {
	for _, c := range []struct {
		n, size, drained int
		weighted, want   bool
	}{
		{512, 65537, 1, false, true}, {512, 65537, 4, false, true}, {512, 65537, 5, false, false},
		{512, 65537, 1, true, false}, {64, 65537, 1, false, false}, {238, 65537, 1, false, false},
		{239, 65537, 1, false, true}, {2000, 65537, 17, false, true}, {2000, 65537, 126, false, false},
		{10, 101, 1, false, true}, {10, 101, 2, false, false}, {600, 1009, 1, false, false},
	} {
		cs, _ := fixture(c.n)
		p := plainMaglev(c.size, c.weighted)
		e := engine.New(p, engine.Config{})
		require.NoError(t, e.SetCandidates(0, cs))
		less := slices.Clone(cs)
		for i := range c.drained {
			less[i].Status = engine.StatusDraining
		}
		for _, fleet := range [][]engine.Candidate{less, cs} {
			assert.Equal(t, c.want, repaired(p, func() { require.NoError(t, e.SetCandidates(0, fleet)) }), c)
		}
	}
}

// With 18 members there are fewer rounds than were kept with 16.
func TestAFleetThatOutgrowsItsRoundsIsFilled(t *testing.T) {
	cs, _ := fixture(18)
	p := plainMaglev(193, false)
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, cs[:16]))
	for _, n := range []int{17, 18} {
		assert.Equal(t, n == 17, repaired(p, func() { require.NoError(t, e.SetCandidates(0, cs[:n])) }), n)
		require.NoError(t, differ(owners(p), slowTable(slowMembers(cs[:n], 193, false), 193), "the twin"))
	}
}

// Whoever chooses identities may make permutations alike, so that each change leads to many more.
func TestARepairThatWouldBeLongIsGivenUp(t *testing.T) {
	cs, _ := fixture(64)
	for _, c := range []struct {
		size, alike    int
		first          engine.Status // of one of them, which then turns it, and turns it back
		kept, repaired bool
	}{
		{1009, 64, engine.StatusReady, false, false}, {1009, 7, engine.StatusReady, true, false},
		{2003, 4, engine.StatusDraining, true, false}, {1009, 3, engine.StatusReady, true, true},
	} {
		hashes := func(id engine.ID) (uint64, uint64, uint64) {
			o, s, _ := maglevHashes(id)
			if slices.IndexFunc(cs, func(c engine.Candidate) bool { return c.ID == id }) < c.alike {
				o, s = 1, 2
			}
			return o, s, uint64(id)
		}
		p, q := plainMaglev(c.size, false), plainMaglev(c.size, false)
		p.table.hashes, q.table.hashes = hashes, hashes
		e, fleet := engine.New(p, engine.Config{}), slices.Clone(cs)
		fleet[1].Status = c.first
		require.NoError(t, e.SetCandidates(0, fleet))
		assert.Equal(t, c.kept, p.table.kept > 0, c)
		for range 2 {
			fleet[1].Status = 1 - fleet[1].Status
			assert.Equal(t, c.repaired, repaired(p, func() { require.NoError(t, e.SetCandidates(0, fleet)) }), c)
			require.NoError(t, engine.New(q, engine.Config{}).SetCandidates(0, fleet))
			require.NoError(t, differ(owners(p), owners(q), fmt.Sprint(c)))
		}
	}
}

func TestARepairAllocatesNothing(t *testing.T) {
	flipsAllocateNothing(t, maglevOf(1009, false))
	cs, _ := fixture(64)
	p := plainMaglev(1009, false)
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, cs))
	swap := func() { // a stranger for one of them, and back
		for _, id := range []engine.ID{7, 8, 9} {
			cs[5].ID = id
			_ = e.SetCandidates(0, cs)
		}
	}
	swap()
	assert.True(t, repaired(p, func() {
		for range 100 {
			swap()
		}
	}), "what those who went leave is used again")
	assert.Zero(t, testing.AllocsPerRun(50, swap))
}
