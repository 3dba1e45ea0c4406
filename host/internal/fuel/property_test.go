package fuel

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"
)

const (
	typeOne = 3 // (i32 i32) -> (i32)
	typeTwo = 4 // (i32 i32) -> (i32 i32)
)

// program draws the body of a function that ends for sure: it may set its two parameters as it
// likes, its loops count locals of their own, and it calls later functions only.
type program struct {
	t     *rapid.T
	self  int
	types []int // of all functions
	loops int   // so far, each with a counter
	out   []byte
}

func (p *program) draw(label string, n int) int { return rapid.IntRange(0, n-1).Draw(p.t, label) }

func (p *program) put(b ...byte) { p.out = append(p.out, b...) }

// value leaves an i32 on the stack.
func (p *program) value(depth int) {
	kinds := 7
	if depth == 0 {
		kinds = 2
	}
	switch p.draw("value", kinds) {
	case 0:
		p.put(opLocalGet, byte(p.draw("local", 2)))
	case 1:
		p.put(append([]byte{const32}, appendS64(nil, int64(rapid.Int32().Draw(p.t, "constant")))...)...)
	case 2:
		if p.self+1 == len(p.types) {
			p.value(0)
			return
		}
		callee := p.self + 1 + p.draw("callee", len(p.types)-p.self-1)
		p.value(depth - 1)
		p.value(depth - 1)
		p.put(opCall, byte(callee))
		if p.types[callee] == typeTwo {
			p.put(add32)
		}
	case 3: // a loop that carries a value
		p.value(depth - 1)
		p.loop(2, func() { p.put(opLocalGet, 0, 0x73) })
	case 4: // a byte of memory
		p.value(depth - 1)
		p.put(const32, 0xff, 1, 0x71, 0x2d, 0, 0)
	default:
		p.value(depth - 1)
		p.value(depth - 1)
		p.put([]byte{0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x74, 0x76, 0x78, 0x4b, 0x6e, 0x70}[p.draw("operator", 12)]) // the last two trap on 0
	}
}

// loop runs a body one to four times.
func (p *program) loop(typ byte, body func()) {
	counter := byte(2 + p.loops)
	p.loops++
	p.put(const32, byte(1+p.draw("rounds", 4)), set, counter, opLoop, typ)
	body()
	p.put(opLocalGet, counter, const32, 1, 0x6b, opLocalTee, counter, brIf, 0, opEnd)
}

// statement leaves the stack as it was. open is how many blocks may be left: none across the
// head of a loop, so that the counters bound them all.
func (p *program) statement(depth, open int) {
	kinds := 7
	if depth == 0 {
		kinds = 3
	}
	body := func(open int) {
		for range 1 + p.draw("length", 3) {
			p.statement(depth-1, open)
		}
	}
	switch p.draw("statement", kinds) {
	case 0:
		p.value(1)
		p.put(set, byte(p.draw("local", 2)))
	case 1:
		p.value(1)
		p.put(const32, 0xff, 1, 0x71)
		p.value(1)
		p.value(0)
		p.put(const32, 0xff, 1, 0x71, opMisc, miscMemoryFill, 0)
	case 2:
		if open > 0 {
			p.value(1)
			p.put(brIf, byte(p.draw("label", open)))
		}
	case 3:
		p.put(opBlock, typeNone)
		body(open + 1)
		p.put(opEnd)
	case 4:
		p.value(depth)
		p.put(opIf, typeNone)
		body(open + 1)
		p.put(opElse)
		body(open + 1)
		p.put(opEnd)
	case 5:
		p.loop(typeNone, func() { body(0) })
	default:
		p.put(opBlock, typeNone, opBlock, typeNone)
		p.value(1)
		p.put(brTable, 2, 0, 1, byte(p.draw("label", open+2)), opEnd)
		body(open + 1)
		p.put(opEnd)
	}
}

func drawProgram(t *rapid.T) []byte {
	types := rapid.SliceOfN(rapid.SampledFrom([]int{typeOne, typeTwo}), 1, 4).Draw(t, "types")
	var fs []fn
	for self := range types {
		p := &program{t: t, self: self, types: types}
		for range 1 + p.draw("length", 4) {
			p.statement(2, 0)
		}
		for range types[self] - typeOne + 1 {
			p.value(2)
		}
		fs = append(fs, fn{types[self], p.loops, p.out})
	}
	return small([][]byte{plainTypes[0], plainTypes[1], plainTypes[2], funcType(vI32+vI32, vI32), funcType(vI32+vI32, vI32+vI32)}, fs...)
}

// effect is all that can be seen of a call.
type effect struct {
	values []uint64
	trap   string
	memory string
	left   int64
}

func run(t *rapid.T, r wazero.Runtime, bin []byte, args []uint64) (out effect) {
	m := start(t, r, bin)
	defer m.Close(context.Background())
	got, err := m.ExportedFunction("f0").Call(context.Background(), args...)
	if err != nil {
		out.trap, _, _ = strings.Cut(err.Error(), "\n")
	}
	for _, v := range got {
		out.values = append(out.values, uint64(uint32(v)))
	}
	data, _ := m.Memory().Read(0, 1024)
	out.memory = string(data)
	if g := m.ExportedGlobal(Global); g != nil {
		out.left = int64(g.Get())
	}
	return out
}

// With fuel enough a program does what it does without: results, traps and memory. What it uses
// is exact: one unit less, and it runs out.
func TestFuelChangesNothingElse(t *testing.T) {
	r := newRuntime(t)
	ends := 0
	rapid.Check(t, func(t *rapid.T) {
		bin := drawProgram(t)
		args := []uint64{uint64(rapid.Uint32().Draw(t, "first")), uint64(rapid.Uint32().Draw(t, "second"))}
		want := run(t, r, bin, args)
		with := func(n int64) effect {
			out, err := Inject(bin, allow(n))
			require.NoError(t, err)
			return run(t, r, out, args)
		}
		const plenty = 1 << 40
		got := with(plenty)
		used := plenty - got.left
		got.left = 0
		require.Equal(t, want, got)
		if want.trap != "" {
			return
		}
		ends++
		got = with(used)
		require.Zero(t, got.left)
		require.Equal(t, want, got)
		if used > 0 {
			got = with(used - 1)
			assert.Equal(t, "wasm error: unreachable", got.trap)
			assert.Negative(t, got.left)
		}
	})
	assert.Positive(t, ends, "every program trapped")
}
