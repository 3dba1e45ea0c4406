package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/showcase/experiment"
)

// The line says how far it is, and how long it takes as soon as anything is known, also of runs
// that a journal had.
func TestProgressLine(t *testing.T) {
	study := func() *experiment.Study {
		s, err := experiment.NewStudy(toys()[1:], experiment.Size{}, "")
		require.NoError(t, err)
		return s
	}
	var lines []string
	journal := study().Header("b").Line()
	now := int64(0)
	m := progress(nil, "bad")
	work := experiment.Work{
		Workers: 1, Clock: func() int64 { now += 7e9; return now },
		Keep:     func(r experiment.Record) error { journal = append(journal, r.Line()...); return nil },
		Progress: func(p experiment.Progress) { lines = append(lines, m.text(p)) },
		Shard:    experiment.Shard{},
	}
	require.NoError(t, study().Work(t.Context(), work))
	assert.Equal(t, []string{"bad: 0 of 2 runs", "bad: 1 of 2 runs, about 7s left", "bad: 2 of 2 runs, about 0s left"}, lines)

	half := study()
	for i, n := 0, 0; i < len(journal); i++ {
		if journal[i] == '\n' {
			if n++; n == 2 { // the header and one run
				_, err := half.Take(journal[:i+1], "b", true)
				require.NoError(t, err)
			}
		}
	}
	lines = nil
	require.NoError(t, half.Work(t.Context(), work))
	assert.Equal(t, "bad: 1 of 2 runs, about 7s left", lines[0])
}
