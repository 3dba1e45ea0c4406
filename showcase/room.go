package showcase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// Rate is how many frames a room makes in a second.
const Rate = 30

const frameSpan = time.Second / Rate

// Room runs one stage in one goroutine and publishes it to its viewers.
type Room struct {
	key   string
	setup Setup
	maker sim.Maker
	log   *slog.Logger
	calls chan func()
	done  chan struct{}
	stop  context.CancelFunc
	drop  func(r *Room, failed bool) // asks to be ended, from the room's own goroutine

	// Owned by the goroutine.
	stage   *stage
	paused  bool
	viewers []*viewer
	visited bool
	seq     uint32
	last    *Frame
	pace    paceMeter
	tuner   retuner
	left    time.Time // when the last viewer left
}

// viewer is one socket in a room.
type viewer struct {
	box    *mailbox
	hidden bool
	fail   func(reason string) // ends the connection
}

// roomIdle is how long a room outlives its last viewer, so that a reload finds it again.
const roomIdle = 30 * time.Second

// openRoom makes a room and starts it. An error is the setup's or the machines'.
func openRoom(key string, s Setup, mk sim.Maker, log *slog.Logger, drop func(*Room, bool)) (*Room, error) {
	st, err := newStage(s, mk)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Room{
		key: key, setup: s, maker: mk, log: log, stage: st, stop: stop, drop: drop,
		calls: make(chan func()), done: make(chan struct{}), left: time.Now(),
	}
	go r.loop(ctx)
	return r, nil
}

// call runs f in the room's goroutine and waits for it. It is false if the room has ended.
func (r *Room) call(f func()) bool {
	ran := make(chan struct{})
	select {
	case r.calls <- func() { f(); close(ran) }:
		<-ran
		return true
	case <-r.done:
		return false
	}
}

func (r *Room) loop(ctx context.Context) {
	defer close(r.done)
	defer func() { r.stage.close() }()
	if err := r.ahead(ctx); err != nil {
		r.crash(err)
		return
	}
	tick := time.NewTicker(frameSpan)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-r.calls:
			f()
		case now := <-tick.C:
			if len(r.viewers) == 0 && now.Sub(r.left) > roomIdle {
				r.drop(r, false)
				r.left = now // it may have been entered meanwhile; ask again later
			}
			if err := r.tick(now); err != nil {
				r.crash(err)
				return
			}
		}
	}
}

// ahead runs to the setup's start, showing a frame now and then.
func (r *Room) ahead(ctx context.Context) error {
	for r.stage.now < int64(r.setup.Start)*sim.Second && ctx.Err() == nil {
		if err := r.stage.run(sim.Second / 4); err != nil {
			return err
		}
		r.publish(flagAhead)
		for more := true; more; {
			select {
			case f := <-r.calls:
				f()
			default:
				more = false
			}
		}
	}
	r.publish(0)
	return nil
}

func (r *Room) tick(now time.Time) error {
	watched := slices.ContainsFunc(r.viewers, func(v *viewer) bool { return !v.hidden })
	if r.paused || !watched {
		r.pace.rest()
		return nil
	}
	span := int64(frameSpan) * int64(r.stage.setup.Speed) / unit
	if err := r.stage.run(span); err != nil {
		return err
	}
	r.pace.note(now, span, r.stage.setup.Speed)
	r.publish(0)
	return nil
}

// publish shows the present instant to every viewer.
func (r *Room) publish(flags uint8) {
	r.seq++
	f := r.stage.frame()
	f.Seq, f.Wall, f.Pace, f.Flags = r.seq, time.Now().UnixMicro(), r.pace.value(), flags
	if r.paused {
		f.Flags |= flagPaused
	}
	r.last = f
	data := f.Append(nil)
	for _, v := range r.viewers {
		if !v.hidden {
			v.box.offer(data)
		}
	}
}

// tell queues a text message for every viewer.
func (r *Room) tell(data []byte) {
	for _, v := range r.viewers {
		v.box.put(message{data: data})
	}
}

func (r *Room) crash(err error) {
	r.log.Error("room stopped", "room", r.key, "err", err)
	for _, v := range r.viewers {
		v.fail("this room has stopped: " + err.Error())
	}
	r.drop(r, true)
}

// enter adds a viewer: hello, history, the present frame, then the stream.
func (r *Room) enter(v *viewer, hello func(st State, since float64) []byte) bool {
	return r.call(func() {
		since := 0.0 // the first one does not join a run in progress, even if it ran ahead
		if r.visited {
			since = float64(r.stage.now) / float64(sim.Second)
		}
		r.visited = true
		r.viewers = append(r.viewers, v)
		v.box.put(message{data: hello(r.stage.state(r.paused, len(r.viewers)), since)})
		r.roles()
		r.show(v)
	})
}

// show brings a viewer up to date.
func (r *Room) show(v *viewer) {
	if r.last == nil {
		return
	}
	v.box.put(message{binary: true, data: history(r.last, r.stage.columns)})
	v.box.offer(r.last.Append(nil))
}

func (r *Room) leave(v *viewer) {
	r.call(func() {
		if i := slices.Index(r.viewers, v); i >= 0 {
			r.viewers = slices.Delete(r.viewers, i, i+1)
			r.left = time.Now()
			r.roles()
		}
	})
}

// roles tells every viewer whether the controls are theirs: the first one's, of those here.
func (r *Room) roles() {
	for i, v := range r.viewers {
		v.box.put(message{data: encode(map[string]any{"type": "role", "controls": i == 0, "viewers": len(r.viewers)})})
	}
}

// applied answers a command.
type applied struct {
	Type  string `json:"type"` // "applied"
	ID    int    `json:"id"`
	Error string `json:"error,omitempty"`
}

// obey carries out a viewer's command and answers it.
func (r *Room) obey(v *viewer, c Command) bool {
	return r.call(func() {
		if c.Cmd == "hidden" {
			v.hidden = c.On
			v.box.offer(nil)
			r.answer(v, c.ID, "", nil)
			if !v.hidden {
				r.show(v)
			}
			return
		}
		if r.viewers[0] != v {
			r.answer(v, c.ID, "", errors.New("someone else holds the controls of this room; open a room of your own"))
			return
		}
		if wished, err := r.wishFor(v, c); err != nil {
			r.answer(v, c.ID, "", err)
		} else if !wished {
			text, err := r.control(c)
			r.answer(v, c.ID, text, err)
		}
	})
}

// answer tells a viewer what became of its command, and everyone what it changed.
func (r *Room) answer(v *viewer, id int, text string, err error) {
	a := applied{Type: "applied", ID: id}
	if err != nil {
		a.Error = err.Error()
	} else {
		r.tell(encode(r.stage.state(r.paused, len(r.viewers))))
		if text != "" {
			at := fmt.Sprintf("%.1f s", float64(r.stage.now)/float64(sim.Second))
			r.tell(encode(map[string]string{"type": "log", "at": at, "text": text}))
		}
	}
	v.box.put(message{data: encode(a)})
}

// control carries out a command of the one who holds the controls.
func (r *Room) control(c Command) (string, error) {
	switch c.Cmd {
	case "pause":
		if r.paused != c.On {
			r.paused = c.On
			r.publish(0)
		}
		return "", nil
	case "step":
		if err := r.stage.decide(); err != nil {
			return "", err
		}
		r.paused = true
		r.publish(0)
		return "", nil
	case "restart":
		st, err := newStage(r.stage.setup, r.maker)
		if err != nil {
			return "", err
		}
		r.stage.close()
		r.stage = st
		r.publish(0)
		for _, v := range r.viewers {
			r.show(v)
		}
		return "from the start", nil
	}
	text, err := r.stage.apply(c)
	if err == nil && r.paused {
		r.publish(0)
	}
	return text, err
}
