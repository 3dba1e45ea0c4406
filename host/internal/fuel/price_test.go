package fuel

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What things cost, to the unit. Function 0 is the host's, 2 is free, 3 is a loop of three rounds.
func TestPrices(t *testing.T) {
	nops := func(n int) []byte { return slices.Repeat([]byte{nop}, n) }
	three := func(body ...byte) []byte { // a loop of three rounds, of 5 instructions and those given
		return cat([]byte{const32, 3, set, 0, opLoop, typeNone}, body, []byte{opLocalGet, 0, const32, 1, 0x6b, opLocalTee, 0, brIf, 0, opEnd})
	}
	operands := func(n byte, op ...byte) []byte { return cat([]byte{const32, 0, const32, 0, const32, n, opMisc}, op) }
	null := []byte{0xd0, typeFunc}
	for name, c := range map[string]struct {
		body []byte
		want int64
	}{
		"nothing":                            {nil, 0},
		"16 instructions with the end":       {nops(15), 0},
		"17":                                 {nops(16), 1},
		"64":                                 {nops(63), 1},
		"65":                                 {nops(64), 2},
		"129":                                {nops(128), 3},
		"a call of what is free":             {[]byte{opCall, 2}, 1},
		"three calls":                        {[]byte{opCall, 2, opCall, 2, opCall, 2}, 1},
		"three calls and 12":                 {cat([]byte{opCall, 2, opCall, 2, opCall, 2}, nops(12)), 1},
		"three calls and 13":                 {cat([]byte{opCall, 2, opCall, 2, opCall, 2}, nops(13)), 2},
		"an empty block, then a loop":        {cat([]byte{opBlock, typeNone, opEnd}, three(), []byte{opCall, 2}), 3},
		"four calls":                         {[]byte{opCall, 2, opCall, 2, opCall, 2, opCall, 2}, 2},
		"a call through the table":           {[]byte{const32, 1, opCallIndirect, 0, 0}, 1},
		"three rounds":                       {three(), 3},
		"three rounds of 64":                 {three(nops(58)...), 3},
		"three rounds of 65":                 {three(nops(59)...), 6},
		"a loop and a long rest":             {cat(three(), nops(70)), 3 + 2},
		"a loop pays for the call":           {cat(three(), []byte{opCall, 2}), 3},
		"a loop in a block pays too":         {cat([]byte{opBlock, typeNone}, three(), []byte{opEnd, opCall, 2}), 3},
		"a loop that may be missed":          {cat([]byte{opBlock, typeNone, const32, 0, brIf, 0}, three(), []byte{opEnd, opCall, 2}), 3 + 1},
		"a loop that is missed":              {cat([]byte{opBlock, typeNone, const32, 1, brIf, 0}, three(), []byte{opEnd, opCall, 2}), 1},
		"a loop in one arm":                  {cat([]byte{const32, 0, opIf, typeNone}, three(), []byte{opElse, opCall, 2, opEnd}), 1},
		"a loop behind a call":               {cat([]byte{opCall, 2}, three()), 3 + 1},
		"a loop behind a block":              {cat([]byte{opBlock, typeNone, opEnd, opCall, 2}, three()), 3 + 1},
		"a loop in a loop weighs for itself": {three(cat(nops(55), []byte{opLoop, typeNone}, nops(60), []byte{opEnd})...), 3 + 3},
		"a call of a loop in a loop":         {three(opCall, 3), 3 + 3*3},
		"memory.fill of 15":                  {operands(15, miscMemoryFill, 0), 1},
		"memory.fill of 48":                  {operands(48, miscMemoryFill, 0), 1 + 3},
		"memory.copy of 48":                  {operands(48, miscMemoryCopy, 0, 0), 1 + 3},
		"memory.init of nothing":             {operands(0, miscMemoryInit, 0, 0), 1},
		"table.fill of 6":                    {cat([]byte{const32, 0}, null, []byte{const32, 6, opMisc, miscTableFill, 0}), 1 + 3},
		"table.copy of 6":                    {operands(6, miscTableCopy, 0, 0), 1 + 3},
		"table.init of 2":                    {operands(2, miscTableInit, 0, 0), 1 + 1},
		"table.grow by 6":                    {cat(null, []byte{const32, 6, opMisc, miscTableGrow, 0, drop}), hostCall + 3},
		"memory.grow":                        {[]byte{const32, 2, opMemoryGrow, 0, drop}, hostCall},
		"a call of the host":                 {[]byte{opCall, 0, drop}, hostCall + 1},
	} {
		t.Run(name, func(t *testing.T) {
			bin := wasm(
				section(secType, vec(plainTypes...)), section(secImport, vec(importFunc("wasi_snapshot_preview1", "sched_yield", 1))),
				section(secFunction, vec(u(0), u(0), u(0))), section(secTable, vec([]byte{typeFunc, 0, 16})), section(secMemory, vec([]byte{0, 1})),
				section(secExport, vec(exportFunc("f", 1))),
				section(secElement, vec([]byte{1, 0, 2, 2, 2}, []byte{0, const32, 1, opEnd, 1, 2})), section(secDataCount, u(1)),
				section(secCode, vec(code(1, c.body...), code(0), code(1, three()...))), section(secData, vec([]byte{1, 0})),
			)
			m := guest(t, newRuntime(t), bin, 1_000_000)
			_, err := m.ExportedFunction("f").Call(context.Background())
			require.NoError(t, err)
			assert.Equal(t, c.want, 1_000_000-left(m))
		})
	}
}
