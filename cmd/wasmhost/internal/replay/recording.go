package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/trace"
)

// tally counts answers that are as they were recorded, and notes the first that is not. Under
// another policy than the recorded one only the endpoints chosen are compared.
type tally struct {
	another     bool
	met, differ int
	first       *DifferError
}

func (t *tally) add(op *trace.Op, r *trace.Result, where string) {
	if r == nil || len(op.Want) == 0 || t.another && op.Op != trace.OpDecide {
		return
	}
	if t.another && op.SameChoice(r) || !t.another && op.Meets(r) {
		t.met++
		return
	}
	if t.differ++; t.first == nil {
		got, _ := r.Want()
		t.first = &DifferError{where, "recorded " + string(op.Want), "played " + string(got)}
	}
}

// verdict is the first difference, unless another policy is played on purpose.
func (t *tally) verdict() error {
	if t.first == nil || t.another {
		return nil
	}
	return t.first
}

// ErrNoSegment is a segment to print that the recording does not have.
var ErrNoSegment = errors.New("no segment")

// runRecording plays a recording, machine by machine, and says whether the answers are those that
// were recorded.
func runRecording(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Segment >= 0 {
		return printSegment(in, out, o)
	}
	w := bufio.NewWriter(out)
	defer w.Flush()
	c := course{o: o, w: w, machines: map[uint64]*seat{}, seen: map[uint64]bool{}, tally: tally{another: o.Spec != ""}}
	defer c.close()
	cut := false
	for s, err := range trace.Segments(o.File, in) {
		if cut = errors.Is(err, trace.ErrCut); cut {
			break
		}
		if err == nil {
			err = c.play(ctx, &s)
		}
		if err != nil {
			return err
		}
	}
	if o.Explain >= c.placement {
		return fmt.Errorf("%w %d to explain: %s has %d, counted from 0", ErrNoPlacement, o.Explain, o.File, c.placement)
	}
	if o.Explain >= 0 {
		return w.Flush()
	}
	if cut {
		fmt.Fprintf(w, "%s: its last segment is not whole and was left out: its writer was ended.\n", o.File)
	}
	c.report()
	if err := w.Flush(); err != nil {
		return err
	}
	return c.tally.verdict()
}

func printSegment(in io.Reader, out io.Writer, o Options) error {
	n := 0
	for s, err := range trace.Segments(o.File, in) {
		switch {
		case errors.Is(err, trace.ErrCut):
			continue
		case err != nil:
			return err
		case n == o.Segment:
			return printOps(s.Ops, out)
		}
		n++
	}
	return fmt.Errorf("%w %d: %s has %d, counted from 0", ErrNoSegment, o.Segment, o.File, n)
}

func printOps(ops []trace.Op, out io.Writer) error {
	w := bufio.NewWriter(out)
	lines := json.NewEncoder(w)
	for i := range ops {
		if err := lines.Encode(&ops[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// course is the playing of a recording.
type course struct {
	o         Options
	w         *bufio.Writer
	machines  map[uint64]*seat
	seen      map[uint64]bool // machines
	segments  int             // so far
	tally     tally
	placement int
	breaks    int // segments that did not start where the last one of their machine ended
	last      engine.Instant
	first     *engine.Instant
}

// seat is one machine of a recording, and those that play it.
type seat struct {
	players []player
	along   *player // for the explanation, if the players cannot explain
	asked   *engine.Engine
	close   func()
	number  uint64 // of the last segment
}

func (c *course) close() {
	for _, s := range c.machines {
		s.close()
	}
}

// seat finds the machine that a segment goes on with, or starts one.
func (c *course) seat(ctx context.Context, s *trace.Segment) (*seat, bool, error) {
	if k, ok := c.machines[s.Machine]; ok {
		if s.Number == k.number+1 {
			return k, true, nil
		}
		k.close()
		delete(c.machines, s.Machine)
	}
	spec := s.Spec
	if c.o.Spec != "" {
		spec = c.o.Spec
	}
	k := &seat{}
	var err error
	if k.players, k.close, err = start(ctx, c.o, spec, s.Salt); err != nil {
		k.close()
		return nil, false, err
	}
	k.asked, k.along = explainer(k.players, c.o, spec, s.Salt)
	c.machines[s.Machine] = k
	return k, false, nil
}

// play plays the next segment.
func (c *course) play(ctx context.Context, s *trace.Segment) error {
	number := c.segments
	c.segments++
	c.seen[s.Machine] = true
	k, goesOn, err := c.seat(ctx, s)
	if err != nil {
		return err
	}
	k.number = s.Number
	for i := range s.Ops[1:] {
		op := &s.Ops[i+1]
		if err := ctx.Err(); err != nil {
			return err
		}
		if op.Op == trace.OpState && i == 1 && goesOn && c.o.Spec == "" {
			if block, err := k.players[0].m.Snapshot(nil); err != nil || !bytes.Equal(block, op.Block) {
				c.breaks++
			}
		}
		var why *engine.Explanation
		explain := op.Op == trace.OpDecide && c.placement == c.o.Explain
		if op.Op == trace.OpDecide {
			at := engine.Instant(*op.At)
			c.last = max(c.last, at)
			if c.first == nil {
				c.first = &at
			}
			if explain && k.asked != nil {
				q := op.Query()
				why = k.asked.Explain(&q)
			}
		}
		line, r, err := step(k.players, op, c.o)
		if err != nil {
			return fmt.Errorf("segment %d: %w", number, err)
		}
		if k.along != nil {
			if _, err := k.along.Play(op); err != nil {
				return err
			}
		}
		if op.Op == trace.OpDecide && r != nil {
			r.Placement = c.placement
			c.placement++
		}
		c.tally.add(op, r, fmt.Sprintf("%s: shard %d, segment %d, line %d", c.o.File, s.Shard, number, op.Line))
		if explain {
			if err := explainTo(c.w, k.players[0].Player, r, why, engine.Instant(*op.At)); err != nil {
				return err
			}
		}
		if line != nil && c.o.Lines {
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			if _, err := c.w.Write(append(text, '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

// report says in a few lines what was played, and how it went.
func (c *course) report() {
	span := time.Duration(0)
	if c.first != nil {
		span = time.Duration(c.last - *c.first).Round(time.Millisecond)
	}
	fmt.Fprintf(c.w, "%d segments of %d machines over %v: %d decisions\n", c.segments, len(c.seen), span, c.placement)
	if c.breaks > 0 {
		fmt.Fprintf(c.w, "%d segments do not start where the last one of their machine ended\n", c.breaks)
	}
	answers := c.tally.met + c.tally.differ
	switch {
	case answers == 0:
		fmt.Fprintln(c.w, "nothing to compare with: no answers were recorded")
	case c.tally.differ == 0:
		fmt.Fprintf(c.w, "all %d answers are as recorded\n", answers)
	case c.o.Spec != "":
		fmt.Fprintf(c.w, "counterfactual: under %s, %d of %d decisions differ (%.1f%%)\nit diverges at %s\nwhat follows is what that policy would have said of a past that it did not make\n",
			c.o.Spec, c.tally.differ, answers, 100*float64(c.tally.differ)/float64(answers), c.tally.first)
	default:
		fmt.Fprintf(c.w, "%d of %d answers differ from what was recorded\n", c.tally.differ, answers)
	}
}
