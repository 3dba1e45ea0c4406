package policy

import (
	"math/rand/v2"
	"testing"
)

// FuzzGroups holds fleets that the fuzzer's seeds draw against every law of the shares.
func FuzzGroups(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		groups, cs := drawnFleet(rand.New(rand.NewPCG(a, b)))
		for name, law := range groupLaws {
			if err := law(ruled, groups, cs); err != nil {
				t.Error(name, err)
			}
		}
		zones, cs := drawnZones(rand.New(rand.NewPCG(a, b)))
		for name, law := range zoneLaws {
			if err := law(zoned, zones, cs); err != nil {
				t.Error(name, err)
			}
		}
	})
}
