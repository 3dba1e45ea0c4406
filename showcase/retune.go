package showcase

import (
	"errors"
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// with is the setup after a command that changes a policy, and what happened in words; ok is
// false for any other command.
func (s Setup) with(c Command) (next Setup, text string, ok bool, err error) {
	switch c.Cmd {
	case "quantile":
		s.Quantile = share(c.Value, 0, unit)
		text = "hot above the " + decimal(s.Quantile) + " quantile"
	case "probe":
		s.Probe = share(c.Value, minProbe, maxProbe)
		text = decimal(s.Probe) + " probes per query"
	case "policy":
		switch c.World {
		case "a":
			s.A = c.Spec
		case "b":
			s.B = c.Spec
		default:
			return s, "", true, errors.New("policy: world must be a or b")
		}
		text = fmt.Sprintf("%s is %s", map[string]string{"a": "A", "b": "B"}[c.World], c.Spec)
	default:
		return s, "", false, nil
	}
	_, _, err = s.Specs()
	return s, text, true, err
}

// reserve is the machines of a new policy, for each world that it changes.
type reserve struct {
	specs    [2]string
	machines [2][]engine.Machine
}

// prepare makes what a setup needs beyond specs already in force. It may run beside the stage.
func (st *stage) prepare(next Setup, inForce [2]string) (*reserve, error) {
	var r reserve
	var err error
	if r.specs[0], r.specs[1], err = next.Specs(); err != nil {
		return nil, err
	}
	for i, w := range st.worlds {
		if r.specs[i] == inForce[i] {
			continue
		}
		if r.machines[i], err = w.Prepare(r.specs[i]); err != nil {
			st.discard(&r)
			return nil, err
		}
	}
	return &r, nil
}

func (st *stage) discard(r *reserve) {
	for i, w := range st.worlds {
		w.Discard(r.machines[i])
	}
}

func (st *stage) specs() [2]string { return [2]string{st.worlds[0].Spec(), st.worlds[1].Spec()} }

// adopt puts a prepared setup in force: its policies, and nothing else of it.
func (st *stage) adopt(next Setup, r *reserve) error {
	for i, w := range st.worlds {
		if r.machines[i] == nil {
			continue
		}
		ms := r.machines[i]
		r.machines[i] = nil
		if err := w.Adopt(r.specs[i], ms); err != nil {
			st.discard(r)
			return err
		}
	}
	s := &st.setup
	s.A, s.B, s.Quantile, s.Probe, st.held = next.A, next.B, next.Quantile, next.Probe, nil
	return nil
}

// wish is a change of policy that a viewer waits for.
type wish struct {
	viewer *viewer
	id     int
	text   string
}

// retuner makes machines beside the running stage, one setup at a time. While it is busy wishes
// add up, and the next round takes the sum of them.
type retuner struct {
	wanted Setup
	wishes []wish
	busy   bool
}

// wishFor takes a command that changes a policy; false for any other.
func (r *Room) wishFor(v *viewer, c Command) (bool, error) {
	t := &r.tuner
	if !t.busy {
		t.wanted = r.stage.setup
	}
	next, text, ok, err := t.wanted.with(c)
	if !ok || err != nil {
		return ok, err
	}
	t.wanted = next
	t.wishes = append(t.wishes, wish{v, c.ID, text})
	if !t.busy {
		r.retune()
	}
	return true, nil
}

// retune starts a round.
func (r *Room) retune() {
	t, st := &r.tuner, r.stage
	next, wishes, inForce := t.wanted, t.wishes, st.specs()
	t.busy, t.wishes = true, nil
	go func() {
		made, err := st.prepare(next, inForce)
		if !r.call(func() { r.tuned(st, next, made, wishes, err) }) && made != nil {
			st.discard(made) // the room has ended meanwhile
		}
	}()
}

// tuned ends a round: answers, tells, and starts the next one if there are further wishes.
func (r *Room) tuned(st *stage, next Setup, made *reserve, wishes []wish, err error) {
	t := &r.tuner
	t.busy = false
	if err == nil {
		if st != r.stage { // started again meanwhile: the wish is for the new stage
			st.discard(made)
			t.wishes = append(wishes, t.wishes...)
			r.retune()
			return
		}
		err = st.adopt(next, made)
	}
	for _, w := range wishes {
		r.answer(w.viewer, w.id, w.text, err)
	}
	if r.paused {
		r.publish(0)
	}
	if len(t.wishes) > 0 {
		r.retune()
	}
}
