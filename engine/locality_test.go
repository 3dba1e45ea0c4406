package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Frozen: a host, a guest and a spec number the same name alike.
func TestLocalitiesAreNumberedByName(t *testing.T) {
	assert.Equal(t, uint32(0), LocalityOf(""))
	assert.Equal(t, uint32(1), LocalityOf("zone-03685376926"), "a name whose hash would number it 0")
	for name, want := range map[string]uint32{"a": 0x2c0bdbf, "eu-west-1a": 0xfbffb9d4, "zone-51913": 1974592324, "zone-17672": 1974592324} {
		assert.Equal(t, want, LocalityOf(name), name)
	}
}
