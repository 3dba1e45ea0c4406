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

// adopt puts a prepared setup in force: its policies, and nothing else of it. On an error
// neither world has changed.
func (st *stage) adopt(next Setup, r *reserve) error {
	for i, w := range st.worlds {
		if err := w.Brief(r.machines[i]); err != nil {
			st.discard(r)
			return err
		}
	}
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
	change Command
	text   string
}

// retuner makes machines beside the running stage, one setup at a time. While it is busy wishes
// add up, and the next round takes the sum of them.
type retuner struct {
	wishes []wish
	busy   bool
	apart  int // wishes at the head that failed together: each has a round of its own
}

// wishFor takes a command that changes a policy; false for any other.
func (r *Room) wishFor(v *viewer, c Command) (bool, error) {
	_, text, ok, err := r.stage.setup.with(c)
	if !ok || err != nil {
		return ok, err
	}
	t := &r.tuner
	t.wishes = append(t.wishes, wish{v, c, text})
	if !t.busy {
		r.retune()
	}
	return true, nil
}

// retune starts a round. It begins from what is in force, so that a wish that failed earlier
// leaves nothing behind.
func (r *Room) retune() {
	t, st := &r.tuner, r.stage
	n := len(t.wishes)
	if t.apart > 0 {
		n = 1
		t.apart--
	}
	wishes, next, inForce := t.wishes[:n:n], st.setup, st.specs()
	t.busy, t.wishes = true, t.wishes[n:]
	for _, w := range wishes {
		next, _, _, _ = next.with(w.change) // a mistake is prepare's to find
	}
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
	again := func(apart int) {
		t.wishes = append(wishes, t.wishes...)
		t.apart += apart
		r.retune()
	}
	if err == nil && st != r.stage { // started again meanwhile: the wish is for the new stage
		st.discard(made)
		again(0)
		return
	}
	if err == nil {
		err = st.adopt(next, made)
	}
	if err != nil && len(wishes) > 1 { // one of them is bad: which one?
		again(len(wishes))
		return
	}
	for _, w := range wishes {
		r.answer(w.viewer, w.change.ID, w.text, err)
	}
	if r.paused {
		r.publish(0)
	}
	if len(t.wishes) > 0 {
		r.retune()
	}
}
