package fuel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzInject: whatever the bytes are, nothing panics, and what wazero takes it still takes
// afterwards. What is refused here is not shown to wazero, which makes room for any count that a
// module claims.
func FuzzInject(f *testing.F) {
	f.Add(wasm())
	f.Add(holding(opLoop, typeNone, const32, 0, brIf, 0, opEnd))
	f.Add(small(plainTypes, fn{typ: 2, locals: 1, body: []byte{opLocalGet, 0, opCall, 1}}, fn{typ: 2, body: []byte{opLocalGet, 0}}))
	r := newRuntime(f)
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, bin []byte) {
		out, err := Inject(bin, allow(1000))
		if err != nil {
			return
		}
		before, err := r.CompileModule(ctx, bin)
		if err != nil {
			return
		}
		defer before.Close(ctx)
		after, err := r.CompileModule(ctx, out)
		require.NoError(t, err)
		require.Len(t, after.ExportedFunctions(), len(before.ExportedFunctions()))
		require.NoError(t, after.Close(ctx))
	})
}
