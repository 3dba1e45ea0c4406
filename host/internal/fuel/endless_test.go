package fuel

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// collecting lets the collector run all the time: a guest that held it up would hold this up.
func collecting(t *testing.T) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

const (
	nop     = 0x01
	brIf    = 0x0d
	brTable = 0x0e
	drop    = 0x1a
	opElse  = 0x05
	set     = 0x21
	const32 = 0x41
	add32   = 0x6a
)

// Whatever a guest does without end, it is ended.
func TestNothingIsEndless(t *testing.T) {
	loop := func(body ...byte) []byte { return cat([]byte{opLoop, typeNone}, body, []byte{opEnd}) }
	again := []byte{opBr, 0}
	fs := func(bodies ...[]byte) (out []fn) {
		for _, b := range bodies {
			out = append(out, fn{body: b})
		}
		return out
	}
	chain := func() (out []fn) { // each calls the next twice: 2^9 to the power of 8 without a loop
		for i := range 8 {
			var b []byte
			for range 512 {
				b = append(b, opCall, byte(i+1))
			}
			out = append(out, fn{body: b})
		}
		return append(out, fn{body: []byte{nop}})
	}
	for name, c := range map[string]struct {
		fs    []fn
		types [][]byte
	}{
		"loop":                {fs: fs(loop(again...))},
		"loop with a body":    {fs: fs(loop(cat([]byte{const32, 1, drop}, again)...))},
		"nested loops":        {fs: fs(loop(cat([]byte{opLoop, typeNone, opBlock, typeNone, const32, 1, brIf, 1, opEnd, opEnd}, again)...))},
		"to the outer loop":   {fs: fs(loop(opBlock, typeNone, opBlock, typeNone, opBr, 2, opEnd, opEnd))},
		"br_table":            {fs: fs(loop(opBlock, typeNone, const32, 5, brTable, 2, 0, 1, 1, opEnd))},
		"br_if":               {fs: fs(loop(const32, 1, brIf, 0))},
		"if":                  {fs: fs(loop(const32, 1, opIf, typeNone, opBr, 1, opElse, opBr, 1, opEnd))},
		"loop with operands":  {fs: []fn{{body: []byte{const32, 7, opLoop, 2, const32, 1, add32, opBr, 0, opEnd, drop}}}},
		"loop of two results": {fs: []fn{{typ: 3, body: []byte{opLoop, typeNone, opBr, 0, opEnd, opUnreachable}}}},
		"recursion":           {fs: fs([]byte{opCall, 0})},
		"recursion late":      {fs: fs([]byte{opBlock, typeNone, const32, 0, brIf, 0, opCall, 0, opEnd})},
		"mutual recursion":    {fs: fs([]byte{opCall, 1}, []byte{opCall, 2}, []byte{opCall, 0})},
		"indirect recursion":  {fs: fs([]byte{const32, 0, opCallIndirect, 0, 0})},
		"indirect cycle":      {fs: fs([]byte{const32, 1, opCallIndirect, 0, 0}, []byte{const32, 0, opCallIndirect, 0, 0})},
		"recursion in a loop": {fs: fs(loop(cat([]byte{opCall, 0}, again)...))},
		"a chain of calls":    {fs: chain()},
		"memory.fill":         {fs: fs(loop(cat([]byte{const32, 0, const32, 1, const32, 0x80, 0x80, 4, opMisc, miscMemoryFill, 0}, again)...))},
		"memory.copy":         {fs: fs(loop(cat([]byte{const32, 0, const32, 1, const32, 0xff, 0xff, 3, opMisc, miscMemoryCopy, 0, 0}, again)...))},
		"memory.grow":         {fs: fs(loop(cat([]byte{const32, 0, opMemoryGrow, 0, drop}, again)...))},
		"table.grow":          {fs: fs(loop(cat([]byte{0xd0, typeFunc, const32, 1, opMisc, miscTableGrow, 0, drop}, again)...))},
		"table.fill":          {fs: fs(loop(cat([]byte{const32, 0, 0xd0, typeFunc, const32, 15, opMisc, miscTableFill, 0}, again)...))},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t)
			collecting(t)
			types := slices.Concat(plainTypes, [][]byte{funcType("", vI32+vI64)})
			m := guest(t, r, small(types, c.fs...), 1_000_000)
			for range 2 { // a call starts full whatever the one before left
				_, err := m.ExportedFunction("f0").Call(context.Background())
				require.ErrorContains(t, err, "unreachable")
				assert.Negative(t, left(m))
			}
		})
	}
}

// The host is called by name and through a table, and never without end.
func TestCallsOfTheHostCost(t *testing.T) {
	yield := importFunc("wasi_snapshot_preview1", "sched_yield", 0)
	for name, body := range map[string][]byte{
		"by name":       {opLoop, typeNone, opCall, 0, drop, opBr, 0, opEnd},
		"through table": {opLoop, typeNone, const32, 0, opCallIndirect, 0, 0, drop, opBr, 0, opEnd},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t)
			m := guest(t, r, wasm(
				section(secType, vec(funcType("", vI32), funcType("", ""))), section(secImport, vec(yield)),
				section(secFunction, vec(u(1))), section(secTable, vec([]byte{typeFunc, 0, 1})),
				section(secGlobal, vec([]byte{typeI64, 1, opI64Const, 0, opEnd})),
				section(secExport, vec(exportFunc("f", 1), cat(text("n"), []byte{3, 0}))),
				section(secElement, vec([]byte{0, const32, 0, opEnd, 1, 0})),
				section(secCode, vec(code(0, cat([]byte{opLoop, typeNone, opGlobalGet, 0, opI64Const, 1, 0x7c, opGlobalSet, 0}, body[2:])...))),
			), 1_000_000)
			_, err := m.ExportedFunction("f").Call(context.Background())
			require.ErrorContains(t, err, "unreachable")
			assert.InDelta(t, 1_000_000/(hostCall+1), m.ExportedGlobal("n").Get(), 2)
		})
	}
}

// A start function runs before any call.
func TestAStartFunctionIsEnded(t *testing.T) {
	bin := wasm(
		section(secType, vec(funcType("", ""))), section(secFunction, vec(u(0))), section(secStart, u(0)),
		section(secCode, vec(code(0, opLoop, typeNone, opBr, 0, opEnd))),
	)
	out, err := Inject(bin, func(export string) int64 {
		assert.Empty(t, export)
		return 1000
	})
	require.NoError(t, err)
	_, err = newRuntime(t).Instantiate(context.Background(), out)
	require.ErrorContains(t, err, "unreachable")
}

// A call spends nothing of the next one's, and exports have what was asked for each.
func TestEveryCallStartsFull(t *testing.T) {
	r := newRuntime(t)
	// counts down from its argument
	down := []byte{opLoop, typeNone, opLocalGet, 0, const32, 1, 0x6b, opLocalTee, 0, brIf, 0, opEnd, opLocalGet, 0}
	bin := small(plainTypes, fn{typ: 2, body: down}, fn{typ: 2, body: []byte{opLocalGet, 0, opCall, 0}})
	out, err := Inject(bin, func(export string) int64 { return map[string]int64{"": 1, "f0": 100, "f1": 1000}[export] })
	require.NoError(t, err)
	m := start(t, r, out)
	call := func(f string, n uint64) error {
		_, err := m.ExportedFunction(f).Call(context.Background(), n)
		return err
	}
	assert.Equal(t, int64(1), left(m))
	for range 20 {
		require.NoError(t, call("f0", 100), "a hundred iterations take a hundred")
		assert.Zero(t, left(m))
	}
	require.Error(t, call("f0", 101))
	require.NoError(t, call("f1", 900))
	assert.Equal(t, int64(99), left(m), "the entry of f1 took one")
}
