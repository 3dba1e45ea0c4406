package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/showcase"
	"github.com/headroom-lb/headroom/showcase/sim"
	"github.com/headroom-lb/headroom/wasm/dist"
)

// build identifies what the figures of a simulation follow from, in 16 hexadecimal digits that do
// not depend on the machine: the engine by its module, the simulator and the experiments by their
// sources, and all of them by what they decide in a small world, which also tells an engine that
// was changed since its module was built.
func build() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, dist.Digest(), showcase.SourcesDigest())
	sc := sim.Weather()
	sc.Replicas, sc.Clients = 20, 5
	for _, name := range policy.Names() {
		w, err := sim.NewWorld(sc, name, sim.Maker{Machine: sim.Native})
		if err == nil {
			w.SetFailing(3, 5000)
			err = w.Run(2 * sim.Second)
		}
		if err != nil {
			return "", fmt.Errorf("policy %s in a small world: %w", name, err)
		}
		fmt.Fprintf(h, "%s %x\n", name, w.Hash())
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
