package policy_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

// agedAgainstFresh walks a machine through churn, gives its block to a machine that has seen
// nothing but the last fleet, and wants the same decisions of both from there on. It returns
// how many were compared.
func agedAgainstFresh(spec string, seed uint64, steps int, age func(*engine.Engine)) (compared int, err error) {
	made := func() *engine.Engine {
		p, _ := policy.Parse(spec)
		return engine.New(p, engine.Config{})
	}
	aged, w := made(), enginetest.NewWalker(seed)
	if err := w.Begin(aged); err != nil {
		return 0, err
	}
	for range steps {
		w.Step(aged)
	}
	fresh := made()
	if err := fresh.SetCandidates(w.Now, w.Fleet); err != nil {
		return 0, err
	}
	block, _ := aged.Snapshot(nil)
	if err := fresh.Restore(block); err != nil {
		return 0, err
	}
	age(aged)
	var a, b engine.Decision
	for i := range 300 {
		q := engine.Query{Now: w.Now + engine.Instant(i)*engine.Instant(engine.Millisecond)}
		if i%5 == 4 {
			q.Tried = []engine.ID{a.ID}
		}
		one, two := aged.Decide(&q, &a), fresh.Decide(&q, &b)
		if fmt.Sprint(one) != fmt.Sprint(two) || one == nil && a != b {
			return compared, fmt.Errorf("decision %d: aged %+v (%v), fresh %+v (%v)", i, a, one, b, two)
		}
		if one == nil {
			compared++
		}
	}
	return compared, nil
}

// theTablesFollowTheFleet is the law for a policy with derived tables, and shows that it can fail.
func theTablesFollowTheFleet(t *testing.T, spec string) {
	t.Helper()
	compared := 0
	for seed := range uint64(12) {
		n, err := agedAgainstFresh(spec, seed, 2000, func(*engine.Engine) {})
		require.NoError(t, err)
		compared += n
	}
	require.Greater(t, compared, 1000)
	noticed := false
	for seed := range uint64(12) {
		_, err := agedAgainstFresh(spec, seed, 2000, func(e *engine.Engine) {
			var d engine.Decision
			_ = e.Decide(&engine.Query{Now: 1 << 60}, &d)
		})
		noticed = noticed || err != nil
	}
	require.True(t, noticed, "a machine one decision ahead must be noticed")
}

// servesOrRefuses overwrites words of a block: a machine refuses it, or serves on.
func servesOrRefuses(t *testing.T, spec string) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		e, w := engine.New(p, engine.Config{}), enginetest.NewWalker(rapid.Uint64Range(0, 15).Draw(t, "walk"))
		require.NoError(t, w.Begin(e))
		for range 200 {
			w.Step(e)
		}
		block, err := e.Snapshot(nil)
		require.NoError(t, err)
		words := len(block) / 8
		for range rapid.IntRange(1, 6).Draw(t, "words") {
			at := rapid.IntRange(7, words-1).Draw(t, "at")
			old := binary.LittleEndian.Uint64(block[8*at:])
			word := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 9), rapid.Just(^uint64(0)), rapid.Just(uint64(1)<<63), rapid.Just(old^1)).Draw(t, "word")
			binary.LittleEndian.PutUint64(block[8*at:], word)
		}
		if err := e.Restore(block); err != nil {
			require.ErrorIs(t, err, engine.ErrBlock)
		}
		for range 100 {
			w.Step(e)
		}
	})
}
