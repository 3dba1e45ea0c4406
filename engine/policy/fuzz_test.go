package policy_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

// fuzzed are the machines that scripts are played on: every policy by name, and Prequal where
// everything is near an edge.
func fuzzed() []string {
	return append(policy.Names(),
		"prequal pool=2 min_pool=1 max_age=1us window=3 reuse=1", "prequal pool=20 quantile=0 remove_rate=2.5 probe_rate=0.3 max_age=3us",
		"prequal fit=strict pool=3 window_age=2us idle=1us", "prequal quantile=1 aversion=off pool=64 reuse=1.5",
		"prequal variant=keen", "prequal variant=keen pool=40 window=9 max_age=9us probe_rate=7")
}

// lineOf is a spec line that makes a policy: the given one, or one that its length chooses.
func lineOf(spec string) string {
	if p, err := policy.Parse(spec); err == nil {
		return p.Spec()
	}
	specs := fuzzed()
	return specs[len(spec)%len(specs)] + " seed=7"
}

// Whatever the calls, every policy keeps the laws, a second machine says the same, a block goes
// from one to the other, and no instant or count drives anything to panic.
func FuzzCalls(f *testing.F) {
	for _, spec := range fuzzed() {
		f.Add(spec, []byte("some calls or others, enough to come around"))
	}
	f.Fuzz(func(t *testing.T, spec string, script []byte) {
		if len(script) > 4096 {
			return
		}
		spec = lineOf(spec)
		mk := enginetest.Native(policy.Parse, spec)
		one, _, err := mk()
		require.NoError(t, err, spec)
		two, _, _ := mk()
		w, v := enginetest.NewScript(script), enginetest.NewScript(script)
		if err := w.Begin(one); err != nil { // fit=strict may refuse the first fleet
			require.ErrorIs(t, err, engine.ErrConfig)
			return
		}
		require.NoError(t, v.Begin(two))
		for i := 0; !w.Done(); i++ {
			said, again := w.Step(one), v.Step(two)
			if !said.Same(again) {
				t.Fatalf("%s: one says %q, the other %q", spec, said.Text(), again.Text())
			}
			require.NoError(t, w.Check(said), spec)
			if i%5 != 0 {
				continue
			}
			block, err := one.Snapshot(nil)
			require.NoError(t, err)
			if said.Op == "decide" {
				q := *said.Query
				require.NoError(t, w.Foretell(two, &q), spec) // it goes its own way, to be brought back
			}
			require.NoError(t, two.Restore(block), spec)
		}
	})
}

// FuzzBlock overwrites the policy's words of a block: it is refused, or serves on.
func FuzzBlock(f *testing.F) {
	for i, spec := range fuzzed() {
		f.Add(spec, uint8(i), uint16(8+i), []byte{0, 0, 0, 0, 0, 0, 0, 128, 1})
	}
	f.Fuzz(func(t *testing.T, spec string, seed uint8, at uint16, words []byte) {
		p, err := policy.Parse(lineOf(spec))
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		w := enginetest.NewWalker(uint64(seed % 16))
		if w.Begin(e) != nil {
			return
		}
		for range 200 {
			w.Step(e)
		}
		block, err := e.Snapshot(nil)
		require.NoError(t, err)
		const head = 4 * 8 // what identifies a block; the rest is state
		copy(block[head+int(at)*8%(len(block)-head):], words)
		if err := e.Restore(block); err != nil {
			require.ErrorIs(t, err, engine.ErrBlock)
		} else {
			again, err := e.Snapshot(nil)
			require.NoError(t, err)
			require.Equal(t, binary.LittleEndian.Uint64(block), binary.LittleEndian.Uint64(again))
			require.Equal(t, block, again)
		}
		for range 100 {
			require.NoError(t, w.Check(w.Step(e)))
		}
	})
}
