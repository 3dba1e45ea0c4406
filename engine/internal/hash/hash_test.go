package hash

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPublishedVectors(t *testing.T) {
	// FNV-1a: the reference vectors of the FNV draft. Mix: SplitMix64's finalizer.
	assert.Equal(t, uint64(0xcbf29ce484222325), FNV1a(""))
	assert.Equal(t, uint64(0xaf63dc4c8601ec8c), FNV1a("a"))
	assert.Equal(t, uint64(0xa430d84680aabd0b), FNV1a("hello"))
	assert.Equal(t, uint64(0), Mix(0))
	assert.Equal(t, uint64(0x5692161d100b05e5), Mix(1))
	assert.Equal(t, uint64(0xdbd238973a2b148a), Mix(2))
	assert.Equal(t, uint64(0xb4d055fcf2cbbd7b), Mix(^uint64(0)))
}

func TestWordEqualsItsBytes(t *testing.T) {
	assert.Equal(t, FNV1a("\x01\x02\x03\x04\x05\x06\x07\x08"), Word(Start(), 0x0807060504030201))
}
