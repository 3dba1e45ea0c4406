package fuel

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/wasm/dist"
)

// The module inside this repository is two thousand functions of Go.
func TestARealModule(t *testing.T) {
	out, err := Inject(dist.Engine, allow(1<<40))
	require.NoError(t, err)
	m, err := parse(dist.Engine)
	require.NoError(t, err)
	_, err = m.code()
	require.NoError(t, err)
	assert.Greater(t, m.loops, 1000)
	grown := float64(len(out)) / float64(len(dist.Engine))
	t.Logf("%d loops in %d functions, %d bytes grown to %d", m.loops, len(m.functions), len(dist.Engine), len(out))
	assert.Less(t, grown, 1.05)
	again, err := Inject(dist.Engine, allow(1<<40))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(out, again), "the same bytes each time, so that compiled code can be kept")
	_, err = Inject(out, allow(1))
	require.ErrorContains(t, err, "an export named headroom_fuel, which is the host's")
	if testing.Short() {
		return // compiling it takes most of the time
	}
	guest := start(t, newRuntime(t), out)
	_, err = guest.ExportedFunction("_initialize").Call(context.Background())
	require.NoError(t, err)
	assert.Positive(t, 1<<40-left(guest), "starting a Go runtime takes loops")
}

// Segments of all eight kinds, references and imports keep what they name.
func TestIndexesStay(t *testing.T) {
	expr := []byte{opRefFunc, 2, opEnd}
	null := []byte{0xd0, typeFunc, opEnd}
	offset := func(n byte) []byte { return []byte{const32, n, opEnd} }
	bin := wasm(
		section(0, cat(text("before"), []byte{1, 2, 3})),
		section(secType, vec(append(plainTypes[:3:3], funcType(vI32, ""))...)),
		section(secImport, vec(
			importFunc("wasi_snapshot_preview1", "sched_yield", 1),
			importFunc("wasi_snapshot_preview1", "proc_exit", 3),
		)),
		section(secFunction, vec(u(1), u(1), u(1))),
		section(secTable, vec([]byte{typeFunc, 0, 8}, []byte{typeFunc, 1, 4, 9})),
		section(secMemory, vec([]byte{0, 1})),
		section(secGlobal, vec(cat([]byte{typeFunc, 1}, expr), []byte{typeI32, 1, const32, 9, opEnd})),
		section(secExport, vec(exportFunc("two", 2), exportFunc("three", 3), exportFunc("four", 4), exportFunc("again", 2),
			cat(text("memory"), []byte{2, 0}), cat(text("nine"), []byte{3, 1}))),
		section(secElement, vec(
			cat([]byte{0}, offset(0), vec(u(2), u(3))),
			cat([]byte{1, 0}, vec(u(2))),
			cat([]byte{2, 1}, offset(1), []byte{0}, vec(u(3))),
			cat([]byte{3, 0}, vec(u(2))),
			cat([]byte{4}, offset(2), vec(expr, null)),
			cat([]byte{5, typeFunc}, vec(expr)),
			cat([]byte{6, 1}, offset(0), []byte{typeFunc}, vec(expr)),
			cat([]byte{7, typeFunc}, vec(expr, null)),
		)),
		section(secDataCount, u(1)),
		section(secCode, vec(
			code(0, const32, 2),
			// Function 4 may be made a reference of only because it is exported.
			code(0, const32, 0, opRefFunc, 4, 0x26, 1, const32, 0, opCallIndirect, 1, 1, const32, 0, opCallIndirect, 1, 0, add32),
			code(0, opCall, 0, drop, const32, 40, opGlobalGet, 1, add32),
		)),
		section(secData, vec(cat([]byte{0}, offset(0), text("data")))),
		section(0, cat(text(".debug_line"), []byte{1, 2, 3})),
		section(0, cat(text("name"), []byte{1, 6, 1, 2, 3, 't', 'w', 'o'})),
	)
	ctx := context.Background()
	r := newRuntime(t)
	_, err := r.CompileModule(ctx, bin)
	require.NoError(t, err, "the module itself")
	m := guest(t, r, bin, 100_000)
	for name, want := range map[string]uint64{"two": 2, "again": 2, "three": 51, "four": 49} {
		got, err := m.ExportedFunction(name).Call(ctx)
		require.NoError(t, err, name)
		assert.Equal(t, []uint64{want}, got, name)
	}
	assert.Equal(t, uint64(9), m.ExportedGlobal("nine").Get())
	data, _ := m.Memory().Read(0, 4)
	assert.Equal(t, "data", string(data))
	out, err := Inject(bin, allow(1))
	require.NoError(t, err)
	assert.NotContains(t, string(out), "debug_line", "it holds offsets into the code")
	assert.Contains(t, string(out), "\x03two", "names for traces")
}

// Tables are bounded: the runtime's memory limit does not count them.
func TestTablesAreBounded(t *testing.T) {
	grow := []byte{0xd0, typeFunc, const32, 0xff, 0xff, 0x3f, opMisc, miscTableGrow, 0} // 2^20-1
	bin := small(plainTypes, fn{typ: 1, body: grow})
	r := newRuntime(t)
	m := guest(t, r, bin, 1<<40)
	got, err := m.ExportedFunction("f0").Call(context.Background())
	require.NoError(t, err)
	assert.Equal(t, uint32(1<<32-1), uint32(got[0]), "16 and as many more are too many")
	_, err = Inject(bytes.Replace(bin, []byte{typeFunc, 0, 16}, []byte{typeFunc, 0, 17, 17}, 1), allow(1))
	require.Error(t, err, "a planted length")
	big := wasm(section(secTable, vec([]byte{typeFunc, 0, 0x81, 0x80, 0x40})))
	_, err = Inject(big, allow(1))
	require.ErrorIs(t, err, ErrMalformed)
	assert.ErrorContains(t, err, "table of 1048577 elements")
}

func TestModulesThatAreNone(t *testing.T) {
	types := section(secType, vec(plainTypes...))
	for name, c := range map[string]struct {
		bin  []byte
		kind error
		want string
	}{
		"nothing":               {nil, ErrMalformed, "no header of version 1"},
		"component":             {[]byte("\x00asm\x0d\x00\x01\x00"), ErrMalformed, "no header of version 1"},
		"cut":                   {wasm(types)[:12], ErrMalformed, "it ends too soon"},
		"twice":                 {wasm(types, types), ErrMalformed, "section 1 out of order"},
		"order":                 {wasm(section(secMemory, vec([]byte{0, 1})), types), ErrMalformed, "section 1 out of order"},
		"tags":                  {wasm(section(13, vec())), ErrUnknown, "section 13"},
		"recursive types":       {wasm(section(secType, cat([]byte{1, 0x4e, 1}, funcType("", "")))), ErrUnknown, "type 0x4e at offset 0xc"},
		"typed references":      {wasm(section(secType, vec(funcType("\x63\x70", "")))), ErrUnknown, "value type 0x63"},
		"many types":            {wasm(section(secType, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})), ErrMalformed, "4294967295 elements in 0 bytes"},
		"many imports":          {wasm(section(secImport, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})), ErrMalformed, "4294967295 elements in 0 bytes"},
		"many pieces of data":   {wasm(section(secData, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})), ErrMalformed, "4294967295 elements in 0 bytes"},
		"import of a tag":       {wasm(section(secImport, vec(cat(text("a"), text("b"), []byte{4, 0, 0})))), ErrUnknown, "import of kind 4"},
		"import of a type":      {wasm(types, section(secImport, vec(importFunc("a", "b", 3)))), ErrMalformed, "type 3 of 3"},
		"shared memory":         {wasm(section(secImport, vec(cat(text("a"), text("b"), []byte{2, 3, 1, 1})))), ErrUnknown, "limits 0x3"},
		"bodies missing":        {wasm(types, section(secFunction, vec(u(0)))), ErrMalformed, "0 bodies for 1 functions"},
		"a body too many":       {wasm(types, section(secCode, vec(code(0)))), ErrMalformed, "1 bodies for 0 functions"},
		"many locals":           {wasm(types, section(secFunction, vec(u(0))), section(secCode, vec(code(50_001)))), ErrMalformed, "function of 50001 locals"},
		"many locals in all":    {wasm(types, section(secFunction, vec(slices.Repeat([][]byte{u(0)}, 168)...)), section(secCode, vec(slices.Repeat([][]byte{code(50_000)}, 168)...))), ErrMalformed, "too many locals"},
		"many parameters":       {wasm(section(secType, vec(funcType(strings.Repeat(vI32, 1001), "")))), ErrMalformed, "function of 1001 values"},
		"many wrapped":          {wasm(section(secType, vec(funcType(strings.Repeat(vI32, 1000), ""))), section(secFunction, vec(u(0))), section(secExport, vec(slices.Repeat([][]byte{exportFunc("f", 0)}, 1049)...))), ErrMalformed, "too many parameters of exported functions"},
		"start of nothing":      {wasm(section(secStart, u(0))), ErrMalformed, "function 0 of 0"},
		"export of the counter": {wasm(section(secExport, vec(cat(text("x"), []byte{3, 0})))), ErrMalformed, "global 0 of 0"},
		"export of a wrapper":   {wasm(section(secExport, vec(exportFunc("x", 0)))), ErrMalformed, "function 0 of 0"},
		"export of a tag":       {wasm(section(secExport, vec(cat(text("x"), []byte{4, 0})))), ErrUnknown, "export of kind 4"},
		"element of a wrapper":  {wasm(section(secElement, vec([]byte{1, 0, 1, 0}))), ErrMalformed, "function 0 of 0"},
		"element of no kind":    {wasm(section(secElement, vec([]byte{8, 0}))), ErrUnknown, "element segment 8"},
		"constant that loops":   {wasm(section(secGlobal, vec([]byte{typeI32, 0, opLoop, 0x40, opEnd, opEnd}))), ErrUnknown, "instruction 0x3 in a constant"},
		"constant that adds":    {wasm(section(secGlobal, vec([]byte{typeI32, 0, const32, 1, const32, 1, add32, opEnd}))), ErrUnknown, "instruction 0x6a in a constant"},
		"table with a start":    {wasm(section(secTable, vec([]byte{0x40, 0, typeFunc, 0, 1, 0xd0, typeFunc, opEnd}))), ErrUnknown, "reference type 0x40"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Inject(c.bin, allow(1))
			require.ErrorIs(t, err, c.kind)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// The least module has no functions, and an import may be exported as it is.
func TestSmallModules(t *testing.T) {
	for name, bin := range map[string][]byte{
		"empty": wasm(),
		"export of an import": wasm(section(secType, vec(funcType("", vI32))),
			section(secImport, vec(importFunc("wasi_snapshot_preview1", "sched_yield", 0))), section(secExport, vec(exportFunc("f", 0)))),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t)
			m := guest(t, r, bin, 7)
			assert.Equal(t, int64(7), left(m))
			if f := m.ExportedFunction("f"); f != nil {
				got, err := f.Call(context.Background())
				require.NoError(t, err)
				assert.Equal(t, []uint64{0}, got)
			}
		})
	}
}
