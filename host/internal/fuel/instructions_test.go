package fuel

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// holding is a module that has one of everything that an instruction may name, and one body.
func holding(body ...byte) []byte {
	return wasm(
		section(secType, vec(plainTypes...)), section(secFunction, vec(u(0))),
		section(secTable, vec([]byte{typeFunc, 0, 4})), section(secMemory, vec([]byte{0, 1})),
		section(secGlobal, vec([]byte{typeI32, 1, const32, 0, opEnd})), section(secExport, vec(exportFunc("f", 0))),
		section(secElement, vec([]byte{1, 0, 1, 0})), section(secDataCount, u(1)),
		section(secCode, vec(code(1, body...))), section(secData, vec([]byte{1, 0})),
	)
}

// operands are immediates of each kind, in more than one form where there is one.
var operands = map[kind][][]byte{
	plain:      {{}},
	block:      {{0x40, opEnd}, {0x7f, opUnreachable, opEnd}, {2, opUnreachable, opEnd}, {0x82, 0x80, 0x80, 0x80, 0, opUnreachable, opEnd}},
	label:      {{0}, {0x80, 0x80, 0x80, 0x80, 0}},
	table2:     {{0, 0}, {3, 0, 0x80, 0, 0, 0}},
	call:       {{0}, {0x80, 0}},
	indirect:   {{0, 0}, {2, 0x80, 0}},
	result:     {{1, 0x7f}, {1, 0x70}, {1, 0x7b}},
	local:      {{0}, {0x80, 0}},
	global:     {{0}},
	index:      {{0}, {0x80, 0}},
	indexes:    {{0, 0}},
	memory:     {{0, 0}, {0, 0xff, 0xff, 0xff, 0xff, 0x0f}, {0x80, 0, 1}},
	lane:       {{0}, {1}},
	memLane:    {{0, 0, 0}, {0, 0x80, 0, 1}},
	zero:       {{0}},
	zeros:      {{0, 0}},
	initMemory: {{0, 0}, {0x80, 0, 0}},
	i32:        {{0}, {0x80, 0x80, 0x80, 0x80, 0x78}, {0xff, 0x7f}, {0xff, 0xff, 0xff, 0xff, 0x07}},
	i64:        {{0}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, {0x80, 0x7f}},
	four:       {{opLoop, opLoop, opEnd, opEnd}},
	eight:      {{opLoop, opLoop, opLoop, opLoop, opEnd, opEnd, opEnd, opEnd}},
	sixteen:    {{opLoop, opLoop, opLoop, opLoop, opLoop, opLoop, opLoop, opLoop, opEnd, opEnd, opEnd, opEnd, opEnd, opEnd, opEnd, opEnd}},
	reference:  {{0x70}, {0x6f}},
	function:   {{0}},
}

// Every byte that can start an instruction, or follow a prefix, is known here exactly when
// wazero takes it, with the same length. Behind an unreachable, operands of any type are there.
func TestInstructionsAreThoseOfTheRuntime(t *testing.T) {
	r := newRuntime(t)
	known := 0
	for _, space := range []struct {
		prefix []byte
		kinds  [256]kind
	}{{nil, single}, {[]byte{opMisc}, misc}, {[]byte{opVector}, vector}} {
		for op, k := range space.kinds {
			if space.prefix == nil && (op == opElse || op == opEnd || k == prefixMisc || k == prefixVector) {
				continue
			}
			ins := append(space.prefix[:len(space.prefix):len(space.prefix)], byte(op))
			if len(space.prefix) > 0 && op >= 0x80 {
				ins = append(ins, 1)
			}
			if k == unknown {
				bin := holding(cat([]byte{opUnreachable}, ins, make([]byte, 20))...)
				_, err := r.CompileModule(context.Background(), bin)
				require.Error(t, err, "%x", ins)
				_, err = Inject(bin, allow(1))
				require.ErrorIs(t, err, ErrUnknown, "%x", ins)
				continue
			}
			forms := operands[k]
			if op == opIf && space.prefix == nil {
				forms = [][]byte{{0x40, opElse, opEnd}, {0x7f, opUnreachable, opElse, opUnreachable, opEnd}, {2, opEnd}}
			}
			require.NotEmpty(t, forms, "no operands for %x", ins)
			for _, form := range forms {
				known++
				bin := holding(cat([]byte{opUnreachable}, ins, form, []byte{opUnreachable})...)
				compiled, err := r.CompileModule(context.Background(), bin)
				require.NoError(t, err, "%x %x", ins, form)
				_ = compiled.Close(context.Background())
				out, err := Inject(bin, allow(1))
				require.NoError(t, err, "%x %x", ins, form)
				compiled, err = r.CompileModule(context.Background(), out)
				require.NoError(t, err, "%x %x", ins, form)
				_ = compiled.Close(context.Background())
				m, err := parse(bin)
				require.NoError(t, err)
				bodies, err := m.code()
				require.NoError(t, err)
				if m.loops == 0 && k != call && k != indirect && len(m.blocks) == 0 && !charged(ins) {
					require.Contains(t, string(bin), string(bodies[0]), "a body that owes nothing stays as it is")
				}
			}
		}
	}
	assert.Greater(t, known, 450)
}

// charged are instructions that cost fuel themselves.
func charged(ins []byte) bool {
	return ins[0] == opMemoryGrow || ins[0] == opMisc && ins[1] >= miscMemoryInit && ins[1] != 0x09 && ins[1] != 0x0d && ins[1] != 0x10
}

// What the two could read differently is refused, with its place.
func TestDoubtIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		body []byte
		kind error
		want string
	}{
		"threads":                {[]byte{0xfe, 0x00, 0, 0}, ErrUnknown, "instruction 0xfe at offset"},
		"tail call":              {[]byte{0x12, 0}, ErrUnknown, "instruction 0x12 at offset"},
		"exceptions":             {[]byte{0x1f, 0x40, 0, opEnd}, ErrUnknown, "instruction 0x1f at offset"},
		"long vector opcode":     {[]byte{opVector, 0x8c, 0}, ErrUnknown, "instruction 0xfd 0x8c at offset"},
		"loop behind a vector":   {[]byte{opVector, 0x80, opLoop, 0x40, opEnd}, ErrUnknown, "instruction 0xfd 0x80 at offset"},
		"misc beyond a byte":     {[]byte{opMisc, 0x80, 2}, ErrUnknown, "instruction 0xfc 0x100 at offset"},
		"long block type":        {[]byte{opBlock, 0xc0, 0x7f, opEnd}, ErrUnknown, "block type -64 at offset"},
		"typed block":            {[]byte{opBlock, 0x64, 0x70, opEnd}, ErrUnknown, "block type -28 at offset"},
		"second memory":          {[]byte{opMemoryGrow, 1}, ErrUnknown, "memory 0x1 at offset"},
		"long memory":            {[]byte{opMemoryGrow, 0x80, 0}, ErrUnknown, "memory 0x80 at offset"},
		"memory in an alignment": {[]byte{0x28, 0x40, 0, 0}, ErrUnknown, "alignment 0x40 at offset"},
		"select of two":          {[]byte{0x1c, 2, 0x7f, 0x7f}, ErrUnknown, "select of 2 types at offset"},
		"the counter":            {[]byte{opGlobalGet, 1, drop}, ErrMalformed, "global 1 of 1 at offset"},
		"filling the counter":    {[]byte{opI64Const, 1, opGlobalSet, 1}, ErrMalformed, "global 1 of 1 at offset"},
		"a wrapper":              {[]byte{opCall, 1}, ErrMalformed, "function 1 of 1 at offset"},
		"a wrapper's reference":  {[]byte{opRefFunc, 1, drop}, ErrMalformed, "function 1 of 1 at offset"},
		"a spare local":          {[]byte{opLocalGet, 1, drop}, ErrMalformed, "local 1 of 1 at offset"},
		"an added type":          {[]byte{opBlock, 3, opEnd}, ErrMalformed, "block type 3 of 3 at offset"},
		"an added type called":   {[]byte{const32, 0, opCallIndirect, 3, 0}, ErrMalformed, "type 3 of 3 at offset"},
		"number of 33 bits":      {[]byte{opBr, 0xff, 0xff, 0xff, 0xff, 0x1f}, ErrMalformed, "number of more than 32 bits at offset"},
		"number of six bytes":    {[]byte{opBr, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, ErrMalformed, "number of more than five bytes at offset"},
		"constant of 33 bits":    {[]byte{const32, 0xff, 0xff, 0xff, 0xff, 0x0f, drop}, ErrMalformed, "number of more than 32 bits at offset"},
		"labels without end":     {[]byte{brTable, 0xff, 0xff, 0x7f}, ErrMalformed, "elements in"},
		"code behind the end":    {[]byte{opEnd, opLoop, 0x40, opEnd}, ErrMalformed, "bytes too many at offset"},
		"an open block":          {[]byte{opBlock, 0x40}, ErrMalformed, "it ends too soon at offset"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Inject(holding(c.body...), allow(1))
			require.ErrorIs(t, err, c.kind)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// Numbers in LEB128 are those of the specification, at the edges.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		width int // 0: unsigned
		bytes []byte
		want  int64
		bad   bool
	}{
		{0, []byte{0x7f}, 127, false}, {0, []byte{0x80, 1}, 128, false}, {0, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 1<<32 - 1, false},
		{0, []byte{0x80, 0x80, 0x80, 0x80, 0}, 0, false}, {0, []byte{0xff, 0xff, 0xff, 0xff, 0x10}, 0, true}, {0, []byte{0x80}, 0, true},
		{32, []byte{0x40}, -64, false}, {32, []byte{0x3f}, 63, false}, {32, []byte{0xff, 0xff, 0xff, 0xff, 0x07}, 1<<31 - 1, false},
		{32, []byte{0x80, 0x80, 0x80, 0x80, 0x78}, -1 << 31, false}, {32, []byte{0x80, 0x80, 0x80, 0x80, 0x08}, 0, true},
		{32, []byte{0xff, 0xff, 0xff, 0xff, 0x77}, 0, true}, {33, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 1<<32 - 1, false},
		{33, []byte{0x80, 0x80, 0x80, 0x80, 0x70}, -1 << 32, false}, {33, []byte{0x80, 0x80, 0x80, 0x80, 0x10}, 0, true},
		{64, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}, 1<<63 - 1, false},
		{64, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, -1 << 63, false},
		{64, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, 0, true},
	} {
		t.Run(fmt.Sprintf("%d/%x", c.width, c.bytes), func(t *testing.T) {
			r := reader{b: c.bytes}
			got := int64(0)
			if c.width == 0 {
				got = int64(r.u32())
			} else {
				got = r.signed(c.width)
			}
			require.Equal(t, c.bad, r.err != nil, "%v", r.err)
			assert.Equal(t, c.want, got)
		})
	}
	for _, v := range []int64{0, 63, 64, -64, -65, 1 << 40, -1 << 63, 1<<63 - 1} {
		r := reader{b: appendS64(nil, v)}
		assert.Equal(t, v, r.signed(64))
		assert.True(t, r.done())
	}
}
