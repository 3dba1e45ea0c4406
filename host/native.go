package host

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/headroom-lb/headroom/engine"
)

// nativeBlank makes native engines of the policies that parse makes.
type nativeBlank struct{ parse Parse }

func (n nativeBlank) configured(spec string, salt uint64) (m engine.Machine, canonical string, err error) {
	defer caught(&err)
	p, err := n.parse(spec)
	if err != nil {
		return nil, "", err
	}
	return native{engine.New(p, engine.Config{Salt: salt})}, p.Spec(), nil
}

func (nativeBlank) Close(context.Context) error { return nil }

// native is an engine whose policy may be anybody's. What panics there is a machine that failed, as a
// guest is that traps: its state is undefined, and the query is not to blame.
type native struct{ *engine.Engine }

// caught makes an error of a panic. Defer it.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: the policy panicked: %v\n%s", ErrTrap, r, debug.Stack())
	}
}

func (n native) SetCandidates(now engine.Instant, cs []engine.Candidate) (err error) {
	defer caught(&err)
	return n.Engine.SetCandidates(now, cs)
}

func (n native) SetStatus(now engine.Instant, id engine.ID, s engine.Status) (err error) {
	defer caught(&err)
	return n.Engine.SetStatus(now, id, s)
}

func (n native) Decide(q *engine.Query, d *engine.Decision) (err error) {
	defer caught(&err)
	return n.Engine.Decide(q, d)
}

func (n native) Report(now engine.Instant, r engine.Report) (err error) {
	defer caught(&err)
	return n.Engine.Report(now, r)
}

func (n native) Record(now engine.Instant, id engine.ID, rd engine.Reading) (a engine.Admission, err error) {
	defer caught(&err)
	return n.Engine.Record(now, id, rd)
}

func (n native) RecordLoad(now engine.Instant, id engine.ID, l engine.LoadReport) (err error) {
	defer caught(&err)
	return n.Engine.RecordLoad(now, id, l)
}

func (n native) Forget(now engine.Instant, id engine.ID, asked engine.Instant) (err error) {
	defer caught(&err)
	return n.Engine.Forget(now, id, asked)
}

func (n native) Probes(now engine.Instant, dst []engine.ID) (due []engine.ID, err error) {
	defer caught(&err)
	return n.Engine.Probes(now, dst)
}

func (n native) Entries(now engine.Instant, dst []engine.Entry) (es []engine.Entry, err error) {
	defer caught(&err)
	return n.Engine.Entries(now, dst)
}

func (n native) Inspect(c *engine.Counters, f *engine.Fit) (err error) {
	defer caught(&err)
	return n.Engine.Inspect(c, f)
}

func (n native) Restore(block []byte) (err error) {
	defer caught(&err)
	return n.Engine.Restore(block)
}

func (n native) SetInFlight(open []engine.InFlight) (err error) {
	defer caught(&err)
	return n.Engine.SetInFlight(open)
}
