package setting

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "10": 10, "10B": 10, "64KiB": 64 << 10, "3 MiB": 3 << 20, "2GiB": 2 << 30, "1536KiB": 1536 << 10} {
		var s Size
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, s, text)
		var again Size
		require.NoError(t, again.UnmarshalText([]byte(s.String())))
		assert.Equal(t, s, again, "what is written is read")
	}
	assert.Equal(t, "64KiB", Size(64<<10).String())
	assert.Equal(t, "1025", Size(1025).String())
	for _, text := range []string{"", "KiB", "-1", "1.5MiB", "10MB", "1e3", "9223372036854775808", "9007199254740993GiB", "1KiBKiB"} {
		var s Size
		assert.ErrorContains(t, s.UnmarshalText([]byte(text)), "is not a size", text)
	}
}

func TestErrorsKnowWhereTheyBelong(t *testing.T) {
	err := At("routes", At("1", fmt.Errorf("route x: %w", Errorf("max_body", "is %d", 3))))
	var at *Error
	require.True(t, errors.As(err, &at))
	assert.Equal(t, "routes.1.max_body", at.Path)
	assert.Equal(t, "route x: --max-body is 3", err.Error())
	assert.NoError(t, At("routes", nil))
}
