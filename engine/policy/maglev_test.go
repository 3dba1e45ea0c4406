package policy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/internal/hash"
)

func maglevOf(size int, weighted bool) tableMaker {
	return func() engine.Policy {
		p, err := NewMaglev(7, size, weighted)
		if err != nil {
			panic(err)
		}
		return p
	}
}

// slowMember is a member of the slow twin.
type slowMember struct {
	id             engine.ID
	order, credit  uint64
	at, skip, size int
	weight         uint64
}

func slowMembers(fleet []engine.Candidate, size int, weighted bool) (ms []*slowMember) {
	for _, c := range fleet {
		if c.Status != engine.StatusReady {
			continue
		}
		m := &slowMember{id: c.ID, order: hash.Mix(uint64(c.ID) ^ 0x6d61676c65766f72), size: size, weight: 1}
		m.at = int(hash.Mix(uint64(c.ID)^0x6d61676c65766f66) % uint64(size))
		m.skip = int(hash.Mix(uint64(c.ID)^0x6d61676c6576736b)%uint64(size-1)) + 1
		if weighted {
			m.weight = uint64(max(1, c.Weight))
		}
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b *slowMember) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id, b.id))
	})
	return ms
}

// slowTable takes the turns one after the other, as the rule is written.
func slowTable(ms []*slowMember, size int) []engine.ID {
	table, taken, total := make([]engine.ID, size), make([]bool, size), uint64(0)
	for _, m := range ms {
		total += m.weight
	}
	turn := func(m *slowMember) {
		for taken[m.at] {
			m.at = (m.at + m.skip) % size
		}
		taken[m.at], table[m.at] = true, m.id
	}
	n := uint64(len(ms))
	gains := slices.Repeat([]uint64{n}, size/len(ms))
	for _, gain := range append(gains, uint64(size)%n) {
		for _, m := range ms {
			m.credit += gain * m.weight
		}
		for again := true; again; {
			again = false
			for _, m := range ms {
				if m.credit >= total {
					again = true
					m.credit -= total
					turn(m)
				}
			}
		}
	}
	rest := 0
	for _, t := range taken {
		if !t {
			rest++
		}
	}
	first := slices.Clone(ms)
	slices.SortStableFunc(first, func(a, b *slowMember) int { return cmp.Compare(b.credit, a.credit) })
	for _, m := range ms {
		if slices.Contains(first[:rest], m) {
			turn(m)
		}
	}
	return table
}

func maglevTwin(size int, weighted bool) func([]engine.Candidate, engine.Key, []engine.ID) engine.ID {
	return func(fleet []engine.Candidate, key engine.Key, tried []engine.ID) engine.ID {
		ms := slowMembers(fleet, size, weighted)
		if len(ms) == 0 {
			return 0
		}
		table := slowTable(ms, size)
		h := hash.Mix(uint64(key) ^ 0x6d61676c65766b65)
		for range 64 {
			if id := table[(h>>24)*uint64(size)>>40]; !slices.Contains(tried, id) {
				return id
			}
			h = hash.Mix(h + 0x9e3779b97f4a7c15)
		}
		from := int(h >> 32 * uint64(len(ms)) >> 32)
		for i := range ms {
			if m := ms[(from+i)%len(ms)]; !slices.Contains(tried, m.id) {
				return m.id
			}
		}
		return 0
	}
}

// owners is a machine's whole table.
func owners(p *Maglev) (ids []engine.ID) {
	for i := range p.table.entries {
		ids = append(ids, p.Set.ID(p.table.at(uint32(i))))
	}
	return ids
}

var maglevKinds = []struct {
	size     int
	weighted bool
}{{101, false}, {101, true}, {1009, false}, {1009, true}}

func TestAMaglevTableDecidesAsItsTwin(t *testing.T) {
	for _, k := range maglevKinds {
		underChurn(t, func(seed uint64) error {
			return twinLaw(maglevOf(k.size, k.weighted), seed, maglevTwin(k.size, k.weighted))
		})
	}
}

func TestAnAgedMaglevTableEqualsAFreshOne(t *testing.T) {
	for _, k := range maglevKinds {
		underChurn(t, func(seed uint64) error { return agedLaw(maglevOf(k.size, k.weighted), seed) })
	}
}

func TestMaglevDoesNotDependOnTheOrderOfCandidates(t *testing.T) {
	for _, k := range maglevKinds {
		underChurn(t, func(seed uint64) error { return orderLaw(maglevOf(k.size, k.weighted), seed) })
	}
}

// wholeLaw compares every entry with the twin's: random fleets, skewed weights, tables that are
// nearly all members.
func wholeLaw(seed uint64, mk func(size int, weighted bool) *Maglev) error {
	r := rand.New(rand.NewPCG(seed, 3))
	size := []int{2, 3, 7, 31, 127, 521, 4099}[r.IntN(7)]
	var fleet []engine.Candidate
	for range 1 + r.IntN(min(size, 200)) {
		fleet = append(fleet, engine.Candidate{ID: engine.ID(r.Uint64()), Weight: engine.Weight(r.Uint32() >> r.IntN(32))})
	}
	p := mk(size, seed%2 == 0)
	if err := engine.New(p, engine.Config{}).SetCandidates(0, fleet); err != nil {
		return err
	}
	return differ(owners(p), slowTable(slowMembers(fleet, size, seed%2 == 0), size), fmt.Sprint(len(fleet), " in ", size))
}

func plainMaglev(size int, weighted bool) *Maglev { return maglevOf(size, weighted)().(*Maglev) }

func TestEveryEntryIsThatOfTheTwin(t *testing.T) {
	underChurn(t, func(seed uint64) error { return wholeLaw(seed, plainMaglev) })
	for _, weighted := range []bool{false, true} {
		cs, _ := fixture(512)
		p := plainMaglev(65537, weighted)
		require.NoError(t, engine.New(p, engine.Config{}).SetCandidates(0, cs))
		require.NoError(t, differ(owners(p), slowTable(slowMembers(cs, 65537, weighted), 65537), "512 of the fixture"))
	}
}

// proportionLaw: a member's entries differ from exact proportion by less than one.
func proportionLaw(fleet []engine.Candidate, p *Maglev) error {
	total, count := uint64(0), map[engine.ID]uint64{}
	for _, id := range owners(p) {
		count[id]++
	}
	weight := func(c engine.Candidate) uint64 {
		if !p.table.weighted {
			return 1
		}
		return uint64(max(1, c.Weight))
	}
	for _, c := range fleet {
		total += weight(c)
	}
	for _, c := range fleet {
		exact := weight(c) * uint64(p.table.size) // in parts of the total weight
		if got := count[c.ID] * total; got >= exact+total || got+total <= exact {
			return fmt.Errorf("%d of weight %d owns %d of %d entries", c.ID, c.Weight, count[c.ID], p.table.size)
		}
	}
	return nil
}

func TestSharesAreWithinOneEntryOfExactProportion(t *testing.T) {
	law := func(seed uint64, mk func(bool) *Maglev) error {
		c := newChurn(seed)
		for i := range c.fleet {
			c.fleet[i].Status = engine.StatusReady
			c.fleet[i].Weight = engine.Weight(c.Uint32() >> c.IntN(32))
		}
		p := mk(seed%2 == 0)
		if err := engine.New(p, engine.Config{}).SetCandidates(0, c.fleet); err != nil {
			return err
		}
		return proportionLaw(c.fleet, p)
	}
	underChurn(t, func(seed uint64) error {
		return law(seed, func(weighted bool) *Maglev { return plainMaglev(1009, weighted) })
	})
	noticed(t, "weights in vain", func(seed uint64) error {
		return law(seed*2, func(bool) *Maglev {
			p := plainMaglev(1009, true)
			p.table.hashes = func(id engine.ID) (uint64, uint64, uint64) {
				for i := range p.table.members {
					p.table.members[i].weight = 1
				}
				return maglevHashes(id)
			}
			return p
		})
	})
}

func TestEqualWeightsGiveTheTableWithoutWeights(t *testing.T) {
	cs, _ := fixture(37)
	for i := range cs {
		cs[i].Weight = 3
	}
	a, b := plainMaglev(1009, false), plainMaglev(1009, true)
	require.NoError(t, engine.New(a, engine.Config{}).SetCandidates(0, cs))
	require.NoError(t, engine.New(b, engine.Config{}).SetCandidates(0, cs))
	assert.Equal(t, owners(a), owners(b))
}

func TestTheMaglevLawsNoticePlantedFaults(t *testing.T) {
	twin := func(mk tableMaker) func(uint64) error {
		return func(s uint64) error { return twinLaw(mk, s, maglevTwin(101, true)) }
	}
	aged := func(mk tableMaker) func(uint64) error { return func(s uint64) error { return agedLaw(mk, s) } }
	order := func(mk tableMaker) func(uint64) error { return func(s uint64) error { return orderLaw(mk, s) } }

	renamed := func() engine.Policy { // slots of before the change
		p := plainMaglev(101, true)
		return &wrapped{Policy: p, changed: func() {
			slots := slices.Clone(p.table.slots)
			p.Changed()
			if len(slots) == len(p.table.slots) {
				for i, slot := range slots {
					p.table.slots[i] = min(slot, uint32(p.Set.Len()-1))
				}
			}
		}}
	}
	noticed(t, "slots of before", aged(renamed))
	deaf := func() engine.Policy { // to a change of weight
		p := plainMaglev(101, true)
		return &wrapped{Policy: p, changed: func() {
			for i, m := range p.table.members {
				if slot, ok := p.Set.Slot(m.id); ok {
					p.table.members[i].weight = p.Set.Weight(slot)
				}
			}
			p.Changed()
		}}
	}
	noticed(t, "a weight that is not followed", aged(deaf))
	noticed(t, "a weight that is not followed", twin(deaf))
	bySlot := func() engine.Policy {
		p := plainMaglev(101, true)
		p.table.hashes = func(id engine.ID) (uint64, uint64, uint64) {
			slot, _ := p.Set.Slot(id)
			return maglevHashes(engine.ID(slot))
		}
		return p
	}
	noticed(t, "turns by slot", order(bySlot))
	noticed(t, "an entry that is wrong", func(seed uint64) error {
		return wholeLaw(seed, func(size int, weighted bool) *Maglev {
			p := plainMaglev(size, weighted)
			p.table.hashes = func(id engine.ID) (uint64, uint64, uint64) {
				o, s, n := maglevHashes(id)
				return o + 1, s, n
			}
			return p
		})
	})
	shortRetry := func() engine.Policy {
		p := plainMaglev(101, true)
		return &wrapped{Policy: p, decide: func(key engine.Key) error {
			slot, n, _ := p.retry(maglevKey(key))
			if n > 1 {
				slot = p.Set.OpenAt(0)
			}
			p.Set.Choose(slot, engine.RegimeDirect)
			return nil
		}}
	}
	noticed(t, "a retry that gives up", twin(shortRetry))
}
