package host

import (
	"fmt"
	"io"
	"time"

	"github.com/headroom-lb/headroom/host/trace"
)

// outbox is what a recorder's sink has not taken yet. A shard is held when a segment ends, so nobody but
// the outbox's own goroutine waits for the sink: it runs while there is something to write. The lock
// is the recorder's.
type outbox struct {
	waiting [][]byte
	bytes   int           // of them, and of the one that is being written
	begun   bool          // the sink has the recording's first bytes
	through chan struct{} // closed when nothing waits; nil while no goroutine runs
}

// sinkPatience is how long a balancer that closes waits for the sink.
const sinkPatience = 5 * time.Second

// send leaves a segment for the sink, if no more than so many bytes wait then; one alone may always. The
// caller holds the lock.
func (r *Recorder) send(segment []byte, most int) {
	o := &r.outbox
	if r.stats.SinkError != nil || o.bytes > 0 && o.bytes+len(segment) > most {
		r.stats.SinkLost++
		return
	}
	o.waiting, o.bytes = append(o.waiting, segment), o.bytes+len(segment)
	if o.through == nil {
		o.through = make(chan struct{})
		go r.write()
	}
}

// write writes what waits, until nothing does.
func (r *Recorder) write() {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &r.outbox
	for len(o.waiting) > 0 {
		segment, begun := o.waiting[0], o.begun
		o.waiting, o.begun = o.waiting[1:], true
		r.mu.Unlock()
		err := writeSegment(r.Sink, segment, begun)
		r.mu.Lock()
		o.bytes -= len(segment)
		if err != nil {
			r.stats.SinkError = err
			r.stats.SinkLost++
			r.drop()
		}
	}
	close(o.through)
	o.waiting, o.through = nil, nil
}

func writeSegment(w io.Writer, segment []byte, begun bool) error {
	if !begun {
		if _, err := w.Write([]byte(trace.Magic)); err != nil {
			return err
		}
	}
	_, err := w.Write(segment)
	return err
}

// drop gives up what waits. The caller holds the lock.
func (r *Recorder) drop() (segments int) {
	o := &r.outbox
	for _, s := range o.waiting {
		o.bytes -= len(s)
	}
	segments, o.waiting = len(o.waiting), nil
	r.stats.SinkLost += uint64(segments)
	return segments
}

// flush waits for the sink to take what waits, and gives it up if that takes too long.
func (r *Recorder) flush() error {
	r.mu.Lock()
	through := r.outbox.through
	r.mu.Unlock()
	if through == nil {
		return nil
	}
	select {
	case <-through:
		return nil
	case <-time.After(sinkPatience):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outbox.through != through { // just now
		return nil
	}
	return fmt.Errorf("the recorder's sink hangs: %d segments were not written within %v; see what holds its disk up", r.drop()+1, sinkPatience)
}
