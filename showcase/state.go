package showcase

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// State is what a room's controls stand at, as its viewers are told.
type State struct {
	Type     string  `json:"type"` // "state"
	Query    string  `json:"query"`
	Scenario string  `json:"scenario"`
	Seed     string  `json:"seed"`
	A        string  `json:"a"` // as given
	B        string  `json:"b"`
	SpecA    string  `json:"specA"` // in force, in full
	SpecB    string  `json:"specB"`
	TitleA   string  `json:"titleA"`
	TitleB   string  `json:"titleB"`
	Load     float64 `json:"load"`
	Noisy    int     `json:"noisy"`
	Quantile float64 `json:"quantile"` // in force; -1 if no policy has one
	Probe    float64 `json:"probe"`
	Speed    float64 `json:"speed"`
	Paused   bool    `json:"paused"`
	Focus    int     `json:"focus"`
	Replicas int     `json:"replicas"`
	Clients  int     `json:"clients"`
	States   string  `json:"states"` // one letter a replica: u, d, x
	Viewers  int     `json:"viewers"`
}

// state tells what a stage stands at.
func (st *stage) state(paused bool, viewers int) State {
	s := st.setup
	a, b := st.worlds[0].Spec(), st.worlds[1].Spec()
	quantile, probe := knobs(a, b)
	return State{
		Type: "state", Query: s.Query(), Scenario: s.Scenario, Seed: strconv.FormatUint(s.Seed, 10),
		A: s.A, B: s.B, SpecA: a, SpecB: b, TitleA: Title(a), TitleB: Title(b),
		Load: float64(s.Load) / unit, Noisy: s.Noisy, Quantile: quantile, Probe: probe,
		Speed: float64(s.Speed) / unit, Paused: paused, Focus: s.Focus,
		Replicas: s.Replicas, Clients: s.Clients, States: st.states(), Viewers: viewers,
	}
}

// knobs are the quantile and the probes per query of the first Prequal among specs in force; -1
// if there is none.
func knobs(specs ...string) (quantile, probe float64) {
	for _, spec := range specs {
		fields := strings.Fields(spec)
		if fields[0] != "prequal" {
			continue
		}
		q, p := sim.PrequalDefaults()
		quantile, probe = float64(q)/unit, float64(p)/unit
		for _, f := range fields[1:] {
			key, text, _ := strings.Cut(f, "=")
			v, err := strconv.ParseFloat(text, 64)
			switch {
			case err != nil:
			case key == "quantile":
				quantile = v
			case key == "probe_rate":
				probe = v
			}
		}
		return quantile, probe
	}
	return -1, -1
}

// encode is JSON of a message of ours, which always has one.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
