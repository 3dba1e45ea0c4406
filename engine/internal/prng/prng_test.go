package prng

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPublishedVectors(t *testing.T) {
	s := uint64(1234567)
	for _, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423,
		4593380528125082431, 16408922859458223821,
	} {
		assert.Equal(t, want, Next(&s))
	}
}

func TestBelowStaysInRangeAndIsEven(t *testing.T) {
	s := uint64(9)
	for _, n := range []uint32{1, 2, 3, 7, 1000, 1 << 31, 1<<32 - 1} {
		for range 1000 {
			assert.Less(t, Below(&s, n), n)
		}
	}
	// Chi-square over 7 cells, 70,000 draws: 99.99 % quantile for 6 degrees of freedom is 27.9.
	var cells [7]float64
	for range 70000 {
		cells[Below(&s, 7)]++
	}
	chi := 0.0
	for _, c := range cells {
		chi += (c - 10000) * (c - 10000) / 10000
	}
	assert.Less(t, chi, 27.9)
}

func TestBelow64IsExactAtItsEdges(t *testing.T) {
	s := uint64(9)
	for _, n := range []uint64{1, 2, 3, 1 << 33, 1<<63 + 1, 1<<64 - 1} {
		for range 1000 {
			if v := Below64(&s, n); v >= n {
				t.Fatalf("%d of %d", v, n)
			}
		}
	}
	counts := [3]int{}
	for range 30000 {
		counts[Below64(&s, 3<<61)>>61]++
	}
	for _, c := range counts {
		if c < 9500 || c > 10500 {
			t.Fatal(counts)
		}
	}
}
