package showcase

import (
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

var update = flag.Bool("update", false, "write the golden frames anew")

// goldenFrame has another value in every field, the awkward ones among them.
func goldenFrame() *Frame {
	world := func(k uint64) WorldFrame {
		w := WorldFrame{
			Totals:   sim.Totals{Arrivals: 1000 + k, Completed: 900 + k, Errors: 7 + k, ProbesSent: 3000 + k, ProbesLost: 5 + k},
			InFlight: 93, Quantiles: [4]int64{61_234_567, 140 * sim.Millisecond, -1, 12 * sim.Second},
			Threshold: 16, Pool: k == 0, Offered: 6528, Served: 6481, Traffic: 0x1234_5678_9abc_def0,
			Replicas: []sim.ReplicaView{
				{RIF: 3, Latency: 73 * sim.Millisecond, Busy: true},
				{RIF: 70_000, Latency: -1, State: sim.StateDead, Old: true},
			},
			Use: []uint8{88, 255}, Queries: 215, Failures: 9, From: 2 * sim.Second,
			Dots: []sim.Dot{
				{At: 2*sim.Second + 8*sim.Millisecond, Work: 65 * sim.Millisecond, Replica: 1, Client: 23, Kind: sim.KindCold},
				{At: 2*sim.Second + 31*sim.Millisecond, Replica: 0, Client: 2, Kind: sim.KindError},
			},
		}
		w.Totals.ByRegime = [engine.Regimes]uint64{11 + k, 700 + k, 80 + k, 20 + k}
		return w
	}
	return &Frame{
		Seq: 61, Sim: 2*sim.Second + 32*sim.Millisecond, Wall: 1_764_460_800_123_456, Flags: flagPaused, Pace: 987, Clients: 24,
		Worlds: []WorldFrame{world(0), world(1)},
		Decision: DecisionFrame{
			Serial: 512, At: 2*sim.Second + 30*sim.Millisecond, Client: 3, Replica: 1, Held: true,
			Decision: engine.Decision{Latency: engine.Duration(35 * sim.Millisecond), Age: engine.Duration(9 * sim.Millisecond),
				Threshold: 16, RIF: 14, Offered: 15, Cold: 13, Hot: 2, Regime: engine.RegimeCold},
			Rows: []Row{
				{Replica: 1, RIF: 14, RawRIF: 13, Latency: 35 * sim.Millisecond, Age: 9 * sim.Millisecond, Uses: 1, Verdict: VerdictChosen},
				{Replica: 0, RIF: 300, RawRIF: 300, Latency: -1, Age: 900 * sim.Millisecond, Uses: 300, Verdict: VerdictHot},
			},
		},
		Column: goldenColumn(8),
		Why:    "Client 3 chose r1: “fast”.", Verdict: "Same queries.",
	}
}

func goldenColumn(i uint32) Column {
	return Column{Index: i, Worlds: []WorldColumn{
		{P50: 61 * sim.Millisecond, P99: 205 * sim.Millisecond, Threshold: 16, RIF: []uint8{9, 12}},
		{P50: 65 * sim.Millisecond, P99: -1, Errors: 47, Threshold: engine.NoThreshold, RIF: []uint8{255, 8}},
	}}
}

// The bytes are the contract with the browser, which decodes the same files in the browser test.
func TestFrameIsAsWrittenDown(t *testing.T) {
	f := goldenFrame()
	for name, got := range map[string][]byte{
		"frame":   f.Append(nil),
		"history": history(f, []Column{goldenColumn(7), goldenColumn(8)}),
	} {
		path := "testdata/" + name + ".hex"
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(wrap(hex.EncodeToString(got))), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, strings.Join(strings.Fields(string(want)), ""), hex.EncodeToString(got), name)
	}
}

func wrap(s string) string {
	var b strings.Builder
	for len(s) > 64 {
		b.WriteString(s[:64] + "\n")
		s = s[64:]
	}
	return b.String() + s + "\n"
}

func TestFrameSizes(t *testing.T) {
	f := goldenFrame()
	n := len(f.Worlds[0].Replicas)
	size := headerSize + 2*(worldSize+8*n+8+6*2) + 32 + rowSize*2 + 4 + 2*(8+n) + 2 + len(f.Why) + 2 + len(f.Verdict)
	assert.Len(t, f.Append(nil), size)
	assert.Less(t, maxDots+maxErrors+maxProbes, 256)
}
