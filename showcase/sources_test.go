package showcase

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A journal goes stale when what is measured changes, and by nothing else.
func TestSourcesDigest(t *testing.T) {
	tree := func(more ...string) fstest.MapFS {
		m := fstest.MapFS{"sim/world.go": {Data: []byte("a")}, "experiment/ramp.go": {Data: []byte("b")}}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
		}
		return m
	}
	was := digest(tree())
	for _, changed := range []fstest.MapFS{
		tree("sim/world.go", "c"), tree("experiment/ramp.go", "c"), tree("sim/line.go", "a"), tree("experiment/meter.go", "a"),
		tree("sim/world.go", "b", "experiment/ramp.go", "a"),
	} {
		assert.NotEqual(t, was, digest(changed))
	}
	for _, same := range []fstest.MapFS{
		tree(), tree("experiment/line.go", "a"), tree("experiment/ramp_report.go", "a"), tree("experiment/ramp_test.go", "a"), tree("sim/world_test.go", "a"),
	} {
		assert.Equal(t, was, digest(same))
	}
	for _, file := range judging {
		_, err := fs.Stat(sources, "experiment/"+file)
		require.NoError(t, err, "no such file: take it from the list")
	}
	assert.Len(t, SourcesDigest(), 64)
}
