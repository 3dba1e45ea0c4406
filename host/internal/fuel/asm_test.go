package fuel

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// What follows writes modules byte by byte, so that the tests depend on no assembler and can
// write wrong ones.

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func u(v int) []byte { return appendU32(nil, uint32(v)) }

func text(s string) []byte { return append(u(len(s)), s...) }

func vec(elements ...[]byte) []byte { return append(u(len(elements)), cat(elements...)...) }

func section(id byte, body []byte) []byte { return cat([]byte{id}, u(len(body)), body) }

func wasm(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), cat(sections...)...)
}

func funcType(params, results string) []byte {
	return cat([]byte{0x60}, text(params), text(results))
}

// The value types as the text of a signature.
const (
	vI32 = "\x7f"
	vI64 = "\x7e"
)

func exportFunc(name string, index int) []byte { return cat(text(name), []byte{0}, u(index)) }

func importFunc(module, name string, typ int) []byte {
	return cat(text(module), text(name), []byte{0}, u(typ))
}

// code is a function's entry in the code section; locals are of i32, and the end is added.
func code(locals int, body ...byte) []byte {
	b := []byte{0}
	if locals > 0 {
		b = cat([]byte{1}, u(locals), []byte{0x7f})
	}
	b = append(append(b, body...), opEnd)
	return append(u(len(b)), b...)
}

// fn is a function of a small module.
type fn struct {
	typ    int
	locals int
	body   []byte
}

// small is a module of functions of the types given, each exported as f0, f1 and so on, with a
// page of memory, a table that holds all of them, and a global.
func small(types [][]byte, fs ...fn) []byte {
	var funcs, exports, refs, bodies [][]byte
	for i, f := range fs {
		funcs = append(funcs, u(f.typ))
		exports = append(exports, exportFunc("f"+string(rune('0'+i)), i))
		refs = append(refs, u(i))
		bodies = append(bodies, code(f.locals, f.body...))
	}
	return wasm(
		section(secType, vec(types...)), section(secFunction, vec(funcs...)),
		section(secTable, vec([]byte{typeFunc, 0, 16})), section(secMemory, vec([]byte{1, 1, 4})),
		section(secGlobal, vec([]byte{typeI32, 1, 0x41, 0, opEnd})),
		section(secExport, vec(exports...)),
		section(secElement, vec(cat([]byte{0, 0x41, 0, opEnd}, vec(refs...)))),
		section(secCode, vec(bodies...)),
	)
}

var plainTypes = [][]byte{funcType("", ""), funcType("", vI32), funcType(vI32, vI32)}

func allow(n int64) func(string) int64 { return func(string) int64 { return n } }

// guest starts a module with n units of fuel a call.
func guest(t require.TestingT, r wazero.Runtime, bin []byte, n int64) api.Module {
	out, err := Inject(bin, allow(n))
	require.NoError(t, err)
	return start(t, r, out)
}

func start(t require.TestingT, r wazero.Runtime, bin []byte) api.Module {
	mod, err := r.InstantiateWithConfig(context.Background(), bin, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	require.NoError(t, err)
	return mod
}

func newRuntime(tb testing.TB) wazero.Runtime {
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfig().WithMemoryLimitPages(64))
	wasi_snapshot_preview1.MustInstantiate(context.Background(), r)
	tb.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

func left(m api.Module) int64 { return int64(m.ExportedGlobal(Global).Get()) }
