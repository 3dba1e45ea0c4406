package hosttest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// note adds a line to what was done, for laws that make no generated calls.
func (w *world) note(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// specsRefused tries lines that are hardly a spec; what is taken must serve.
func specsRefused(t *trial) error {
	name, _, _ := strings.Cut(t.spec, " ")
	for _, spec := range []string{
		"", " ", "\x00", "\xff\xfe", "=", "= =", name + " =", name + " no_such_setting=1", name + " seed", name + " seed=",
		name + " seed=-1", name + " seed=99999999999999999999999", name + " seed=NaN", name + " seed=1e400", name + " seed=1 seed=2",
		"no_such_policy", name + "\n" + name, strings.Repeat("x", abi.MaxSpec), name + strings.Repeat(" ", abi.MaxSpec-len(name)),
	} {
		g, err := t.start(spec)
		if err == nil {
			w := &world{guest: g}
			t.worlds = append(t.worlds, w)
			w.note("the spec %q is taken", spec)
			if err := w.serves(); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, engine.ErrConfig) {
			return fmt.Errorf("the spec %q: want the code of bad_config, got: %w", spec, err)
		}
		if err.Error() == engine.ErrConfig.Error() {
			return fmt.Errorf("the spec %q is refused without a reason in lb_text", spec)
		}
	}
	return nil
}

// serves sees a query through.
func (w *world) serves() error {
	if err := w.SetCandidates(w.now, candidates([]row{{who: 0}, {who: 1}})); err != nil {
		return fmt.Errorf("a fleet of two: %w", err)
	}
	var d engine.Decision
	if err := w.Decide(&engine.Query{Now: w.now}, &d); err != nil {
		return fmt.Errorf("a query to a fleet of two: %w", err)
	}
	return w.Report(w.now, engine.Report{ID: d.ID, Latency: 1})
}

func canonicalSpec(t *trial) error {
	a, err := t.world()
	if err != nil {
		return err
	}
	a.note("the spec %q is told as %q", t.spec, a.Spec())
	if a.Spec() == "" {
		return errors.New("lb_text tells no spec after lb_configure")
	}
	g, err := t.start(a.Spec())
	if err != nil {
		return fmt.Errorf("its own spec %q: %w", a.Spec(), err)
	}
	b := &world{guest: g}
	t.worlds = append(t.worlds, b)
	if b.Spec() != a.Spec() {
		return fmt.Errorf("%q becomes %q", a.Spec(), b.Spec())
	}
	for _, c := range generate(1, 60) {
		if one, two := a.do(&c), b.do(&c); !one.broken() && one.text() != two.text() {
			return fmt.Errorf("the guest of the canonical spec says %q", two.text())
		}
	}
	return nil
}

func arenaHolds(t *trial) error {
	w, err := t.world()
	if err != nil {
		return err
	}
	g, ok := w.guest.(raw)
	if !ok {
		return nil
	}
	for _, size := range []int64{0, 1, abi.ArenaMin, abi.ArenaMin + 1, 1 << 20, 100, abi.ArenaMax, 1<<31 - 1, -1, -1 << 31} {
		v, err := g.Call(abi.FuncArena, uint64(uint32(size)))
		if err != nil {
			w.note("an arena of %d bytes", size)
			return err
		}
		at := int64(uint32(v))
		w.note("an arena of %d bytes → %d", size, at)
		switch {
		case at == 0 && size >= 0 && size <= abi.ArenaMin:
			return fmt.Errorf("an arena of %d bytes is refused, and must be had", size)
		case at == 0:
		case size < 0 || size > abi.ArenaMax:
			return fmt.Errorf("an arena of %d bytes is promised, at most %d may be", uint32(size), abi.ArenaMax)
		case at+max(size, abi.ArenaMin) > int64(w.MemorySize()):
			return fmt.Errorf("an arena of %d bytes at %d lies outside a memory of %d", size, at, w.MemorySize())
		}
	}
	return nil
}

// countsRefused asks for more than the arena holds. What comes back must be a refusal.
func countsRefused(t *trial) error {
	w, err := t.world()
	if err != nil {
		return err
	}
	g, ok := w.guest.(raw)
	if !ok {
		return nil
	}
	if err := w.serves(); err != nil {
		return err
	}
	minus := uint64(1<<32 - 1)
	for _, c := range []struct {
		name string
		args []uint64
	}{
		{abi.FuncConfigure, []uint64{minus, 0}}, {abi.FuncConfigure, []uint64{abi.MaxSpec + 1, 0}}, {abi.FuncConfigure, []uint64{1<<31 - 1, 0}},
		{abi.FuncCandidates, []uint64{0, minus}}, {abi.FuncCandidates, []uint64{0, 1 << 26}}, {abi.FuncCandidates, []uint64{0, 1<<27 + 1}}, {abi.FuncCandidates, []uint64{0, 1<<31 - 1}},
		{abi.FuncDecide, []uint64{0, 0, minus}}, {abi.FuncDecide, []uint64{0, 0, abi.MaxTried + 1}}, {abi.FuncDecide, []uint64{0, 0, 1 << 29}},
		{abi.FuncStatus, []uint64{0, uint64(identities[0]), 3}}, {abi.FuncStatus, []uint64{0, uint64(identities[0]), 256}}, {abi.FuncStatus, []uint64{0, uint64(identities[0]), minus}},
		{abi.FuncAnswers, []uint64{minus}}, {abi.FuncAnswers, []uint64{abi.MaxAnswers + 1}}, {abi.FuncAnswers, []uint64{1 << 27}},
		{abi.FuncInFlight, []uint64{minus}}, {abi.FuncInFlight, []uint64{1 << 28}}, {abi.FuncInFlight, []uint64{1<<31 - 1}},
		{abi.FuncRestore, []uint64{minus}}, {abi.FuncRestore, []uint64{1<<31 - 1}}, {abi.FuncRestore, []uint64{0}},
	} {
		v, err := g.Call(c.name, c.args...)
		if errors.Is(err, host.ErrModule) {
			continue // an optional export that is not there
		}
		last := int32(c.args[len(c.args)-1])
		if c.name == abi.FuncConfigure {
			last = int32(c.args[0])
		}
		if err != nil {
			w.note("%s with %d", c.name, last)
			return err
		}
		w.note("%s with %d → %d", c.name, last, int32(v))
		if int32(v) >= 0 {
			return fmt.Errorf("%s with %d is taken, and says %d", c.name, last, int32(v))
		}
		if abi.ErrorOf(abi.Code(int32(v))) == abi.ErrInternal && abi.Code(int32(v)) != abi.CodeInternal {
			return fmt.Errorf("%s with %d says %d, which is no code of the interface", c.name, last, int32(v))
		}
	}
	return w.serves()
}

func largeFleet(t *trial) error {
	w, err := t.world()
	if err != nil {
		return err
	}
	cs := make([]engine.Candidate, 4096)
	for i := range cs {
		cs[i].ID = engine.ID(i + 1)
	}
	err = w.SetCandidates(0, cs)
	w.note("a fleet of %d → %v", len(cs), err)
	if errors.Is(err, engine.ErrCapacity) {
		return w.serves()
	}
	if err != nil {
		return err
	}
	var d engine.Decision
	for i := range 100 {
		if err := w.Decide(&engine.Query{Now: engine.Instant(i), Key: engine.Key(i)}, &d); err != nil {
			return err
		}
	}
	block, err := w.Snapshot(nil)
	if err == nil && len(block) > abi.ArenaMax {
		err = fmt.Errorf("a state block of %d bytes for %d candidates, at most %d", len(block), len(cs), abi.ArenaMax)
	}
	if err != nil {
		return err
	}
	if err := w.Restore(block); err != nil {
		return fmt.Errorf("its own block of %d bytes: %w", len(block), err)
	}
	return w.serves()
}

// memoryBounded makes many calls, changes of the fleet among them, until memory has stood still for
// a good while. A collector may take a few rounds to find its level.
func memoryBounded(t *trial) error {
	const calls, rounds, still = 6000, 12, 3
	w, err := t.world()
	if err != nil {
		return err
	}
	fleet := []row{{who: 0}, {who: 1, weight: 2}, {who: 2}, {who: 3}, {who: 4}}
	stood, size, length := 0, 0, -1
	for round := range rounds {
		s := newSource(uint64(round))
		for range calls {
			c := s.call(5)
			if c.op == opFleet {
				c.fleet = fleet
			}
			if len(w.said) == 0 {
				c = call{op: opFleet, fleet: fleet}
			}
			if r := w.do(&c); r.broken() {
				return nil
			}
			w.said = w.said[:1]
		}
		block, err := w.Snapshot(nil)
		if err != nil {
			return err
		}
		if length < 0 {
			length = len(block)
		}
		if len(block) != length {
			return fmt.Errorf("the state block has %d bytes after %d calls and had %d: the fleet is the same", len(block), (round+1)*calls, length)
		}
		if now := w.MemorySize(); now == size {
			stood++
		} else {
			stood, size = 0, now
		}
		if stood == still {
			return nil
		}
	}
	return fmt.Errorf("after %d calls the memory is %d bytes and grows still", rounds*calls, size)
}
