package showcase

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// Command is what a browser asks of its room, as JSON. Numbers are clamped to the knob's range.
type Command struct {
	ID      int     `json:"id"`
	Cmd     string  `json:"cmd"`
	On      bool    `json:"on"`
	Value   float64 `json:"value"`
	World   string  `json:"world"` // a or b
	Spec    string  `json:"spec"`
	Replica int     `json:"replica"`
	Regime  string  `json:"regime"`
}

// maxCommand is the size of a command, in bytes.
const maxCommand = 1024

// parseCommand reads a command.
func parseCommand(b []byte) (Command, error) {
	var c Command
	if len(b) > maxCommand {
		return c, fmt.Errorf("a command of %d bytes: at most %d", len(b), maxCommand)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, errors.New("a command must be a JSON object with id and cmd")
	}
	return c, nil
}

// share turns a number from outside into parts per 10,000 within a range.
func share(v float64, low, high int) int {
	if !(v*unit > float64(low)) { // also when it is no number
		return low
	}
	return int(min(v*unit+0.5, float64(high)))
}

// apply changes a running stage and says what happened, in words for the log. An error is an
// answer to the one who asked; nothing has changed then.
func (st *stage) apply(c Command) (string, error) {
	s := &st.setup
	switch c.Cmd {
	case "load":
		s.Load = share(c.Value, minLoad, maxLoad)
		st.each(func(w *sim.World) { w.SetLoad(s.Load) })
		return "load " + decimal(s.Load), nil
	case "noisy":
		s.Noisy = min(share(c.Value, 0, maxNoisy*unit)/unit, s.Replicas)
		st.each(func(w *sim.World) { w.SetNoisy(s.Noisy) })
		return count(s.Noisy, "noisy machine"), nil
	case "speed":
		s.Speed = share(c.Value, minSpeed, maxSpeed)
		return "speed " + decimal(s.Speed), nil
	case "kill", "drain", "restore":
		if c.Replica < 0 || c.Replica >= s.Replicas {
			return "", fmt.Errorf("%s: there is no replica %d", c.Cmd, c.Replica)
		}
		state := map[string]sim.State{"kill": sim.StateDead, "drain": sim.StateDraining, "restore": sim.StateUp}[c.Cmd]
		st.each(func(w *sim.World) { w.SetState(c.Replica, state) })
		return sim.Name(c.Replica) + " " + [...]string{"is back", "drains", "is dead"}[state], nil
	case "thirds":
		st.each(func(w *sim.World) {
			for i := range s.Replicas {
				if c.On && i%3 != 0 {
					w.SetState(i, sim.StateDead)
				} else if !c.On {
					w.SetState(i, sim.StateUp)
				}
			}
		})
		if c.On {
			return "two thirds of the fleet are gone", nil
		}
		return "the whole fleet is back", nil
	case "focus":
		s.Focus = share(c.Value, 0, (s.Clients-1)*unit) / unit
		st.held = nil
		st.each(func(w *sim.World) { w.Focus(s.Focus) })
		return "", nil
	case "hold":
		return st.hold(c.Regime)
	}
	return "", fmt.Errorf("there is no command %q", c.Cmd)
}

func (st *stage) each(f func(*sim.World)) {
	for _, w := range st.worlds {
		f(w)
	}
}

// hold keeps the focused client's next decision of a regime on show; "now" keeps the present
// one, and an empty name lets go.
func (st *stage) hold(regime string) (string, error) {
	w := st.worlds[st.explained()]
	st.held = nil
	switch regime {
	case "":
		w.Unhold()
		return "", nil
	case "now":
		d := explain(w, &w.Explained, true)
		st.held = &d
		return "", nil
	}
	names := []string{engine.RegimeDirect.String(), engine.RegimeCold.String(), engine.RegimeHot.String(), engine.RegimeFallback.String()}
	at := slices.Index(names, regime)
	if at < 0 {
		return "", fmt.Errorf("hold: there is no regime %q", regime)
	}
	w.Hold(engine.Regime(at))
	return "waiting for the next " + word(engine.Regime(at)) + " decision of client " + fmt.Sprint(st.setup.Focus), nil
}
