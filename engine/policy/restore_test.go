package policy_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

func walked(tb testing.TB, spec string, seed uint64, steps int) (*engine.Engine, *enginetest.Walker) {
	p, err := policy.Parse(spec)
	require.NoError(tb, err)
	e := engine.New(p, engine.Config{})
	w := enginetest.NewWalker(seed)
	require.NoError(tb, w.Begin(e))
	for range steps {
		w.Step(e)
	}
	return e, w
}

func TestRestoreRefusesWhatIsNotItsOwn(t *testing.T) {
	e, _ := walked(t, "prequal seed=7", 1, 500)
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	for name, other := range map[string]func() *engine.Engine{
		"another spec":   func() *engine.Engine { o, _ := walked(t, "prequal seed=8", 1, 500); return o },
		"another fleet":  func() *engine.Engine { o, _ := walked(t, "prequal seed=7", 2, 500); return o },
		"another policy": func() *engine.Engine { o, _ := walked(t, "random seed=7", 1, 500); return o },
		"another salt": func() *engine.Engine {
			p, _ := policy.Parse("prequal seed=7")
			return engine.New(p, engine.Config{Salt: 1})
		},
	} {
		o := other()
		before, _ := o.Snapshot(nil)
		assert.ErrorIs(t, o.Restore(block), engine.ErrBlock, name)
		after, _ := o.Snapshot(nil)
		assert.Equal(t, before, after, "%s: a refused block changes nothing", name)
	}
	assert.ErrorIs(t, e.Restore(block[:len(block)-8]), engine.ErrBlock)
	assert.ErrorIs(t, e.Restore(nil), engine.ErrBlock)
	assert.NoError(t, e.Restore(block))
}

// Whatever the words of a block, a machine refuses it or serves on: it never panics, which in
// a guest would be a trap.
func FuzzRestore(f *testing.F) {
	f.Add(uint64(1), uint16(9), uint64(0), uint16(30), uint64(1<<63))
	f.Add(uint64(2), uint16(12), uint64(1), uint16(40), ^uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64, at1 uint16, v1 uint64, at2 uint16, v2 uint64) {
		for _, spec := range []string{
			"prequal seed=7", "round_robin seed=7", "least_loaded seed=7", "locality seed=7 zone=zone-a",
			"prequal seed=7 pool=40 fit=auto max_age=20us", "prequal seed=7 mode=sync window=9", "prequal seed=7 variant=keen window=9",
		} {
			e, w := walked(t, spec, seed%16, 300)
			block, err := e.Snapshot(nil)
			require.NoError(t, err)
			binary.LittleEndian.PutUint64(block[int(at1)*8%len(block):], v1)
			binary.LittleEndian.PutUint64(block[int(at2)*8%len(block):], v2)
			if err := e.Restore(block); err != nil {
				require.ErrorIs(t, err, engine.ErrBlock)
			}
			for range 100 {
				w.Step(e)
			}
		}
	})
}

// Zero is an instant like any other: what a machine holds of a replica that is not eligible must
// not read as dated after a clock that is still below it.
func TestAMachineOnANegativeClockTakesItsOwnSnapshot(t *testing.T) {
	cs := []engine.Candidate{{ID: 1}, {ID: 2, Weight: 3}, {ID: 3, Status: engine.StatusDraining}}
	for _, name := range policy.Names() {
		p, err := policy.Parse(name)
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		require.NoError(t, e.SetCandidates(-5e9, cs))
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Now: -4e9}, &d))
		block, err := e.Snapshot(nil)
		require.NoError(t, err)
		assert.NoError(t, e.Restore(block), name)
	}
}
