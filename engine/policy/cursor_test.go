package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestATurnThatNoFleetHasIsNotValid(t *testing.T) {
	for words, valid := range map[[cursorWords]uint64]bool{
		{0, 0}: true, {1<<32 - 1, 1}: true, {1 << 32, 1}: false, {3, 2}: false,
	} {
		c := cursor{}
		c.bind(words[:])
		assert.Equal(t, valid, c.valid(), words)
	}
}
