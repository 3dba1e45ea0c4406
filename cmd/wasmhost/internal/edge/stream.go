package edge

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stream is one request and its answer: it has a client that stands still cut off, and a body that is too long. Only
// what is due counts: an answer that has nothing to say for hours is well, and so is a body that may have no end while
// the answer is under way, or in HTTP/2. Connections that were taken over, such as WebSockets, are left alone.
type stream struct {
	edge    *Edge
	control *http.ResponseController
	stall   time.Duration
	two     bool // HTTP/2
	endless bool // the body's length was not given
	fault   atomic.Pointer[Fault]

	mu       sync.Mutex
	answered bool // the answer has begun
	read     bool // the body's end has come
	over     bool // the handler has returned, or has taken the connection over
}

func newStream(e *Edge, w http.ResponseWriter, r *http.Request) *stream {
	return &stream{
		edge: e, control: http.NewResponseController(w), stall: time.Duration(e.config.StallTimeout), two: r.ProtoMajor == 2,
		endless: r.ContentLength < 0, read: r.Body == nil || r.Body == http.NoBody,
	}
}

// request is r with its body watched.
func (s *stream) request(r *http.Request) *http.Request {
	r = upgrades(r).WithContext(context.WithValue(r.Context(), streamKey{}, s))
	if !s.read {
		r.Body = &body{r.Body, s, int64(s.edge.config.MaxBody)}
	}
	return r
}

// due says whether the client must send. The lock is held.
func (s *stream) due() bool { return !s.endless || !s.two && !s.answered }

// reading bounds a read that begins. A server without deadlines, such as one under test, has nothing to bound.
func (s *stream) reading() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return http.ErrBodyReadAfterClose // the connection may serve another request
	}
	if s.due() {
		_ = s.control.SetReadDeadline(soon(s.stall))
	}
	return nil
}

// readEnds lifts the bound. In HTTP/1.1 it stays between reads, since it is felt by reads alone; in HTTP/2 it strikes by
// itself.
func (s *stream) readEnds(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = s.read || errors.Is(err, io.EOF)
	if !s.over && (s.read || err == nil && s.two) {
		_ = s.control.SetReadDeadline(time.Time{})
	}
}

// answers notes that the answer begins.
func (s *stream) answers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered {
		return
	}
	s.answered = true
	if !s.over && !s.read && !s.due() {
		_ = s.control.SetReadDeadline(time.Time{})
	}
}

// write bounds what do sends.
func (s *stream) write(do func() error) {
	late := soon(s.stall)
	_ = s.control.SetWriteDeadline(late)
	if err := do(); err != nil {
		if !time.Now().Before(late) {
			s.edge.refuse(AnswerStall)
		}
		return // the connection or, in HTTP/2, the stream is no more
	}
	_ = s.control.SetWriteDeadline(time.Time{})
}

// end bounds what the server still does for the request: it sends the rest of the answer and, to use the connection
// again, reads a rest of the body.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	_ = s.control.SetWriteDeadline(soon(s.stall))
	if !s.read {
		_ = s.control.SetReadDeadline(soon(s.stall))
	}
}

// fail notes the first fault.
func (s *stream) fail(reason Reason, status int, text string) {
	if s.fault.CompareAndSwap(nil, &Fault{status, text}) {
		s.edge.refuse(reason)
	}
}

// body is a request's body as the handler reads it.
type body struct {
	io.ReadCloser
	s    *stream
	left int64 // bytes that may come; used with a limit only
}

var errTooLong = errors.New("the request's body is too long")

func (b *body) Read(p []byte) (int, error) {
	most := int64(b.s.edge.config.MaxBody)
	if most > 0 && int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more byte tells a body that ends here from one that is too long
	}
	if err := b.s.reading(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.s.readEnds(err)
	switch {
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, http.ErrBodyReadAfterClose):
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.s.fail(BodyStall, http.StatusRequestTimeout, "the body did not come")
	default:
		b.s.fail(BodyBroken, http.StatusBadRequest, "the body cannot be read")
	}
	if most == 0 {
		return n, err
	}
	if int64(n) > b.left {
		b.s.fail(BodySize, http.StatusRequestEntityTooLarge, tooLong(most))
		n, err = int(b.left), errTooLong
	}
	b.left -= int64(n)
	return n, err
}

// writer is an answer's writer as the handler sees it.
type writer struct {
	http.ResponseWriter
	s *stream
}

// Unwrap lets http.ResponseController find what this type does not do.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if status >= 200 {
		w.s.answers()
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.s.write(func() error { w.ResponseWriter.WriteHeader(status); return nil }) // it is sent at once
}

func (w *writer) Write(p []byte) (n int, err error) {
	w.s.answers()
	w.s.write(func() error { n, err = w.ResponseWriter.Write(p); return err })
	return n, err
}

// FlushError sends what is buffered.
func (w *writer) FlushError() (err error) {
	w.s.answers()
	w.s.write(func() error { err = w.s.control.Flush(); return err })
	return err
}

// Flush is FlushError for those who do not ask how it went.
func (w *writer) Flush() { _ = w.FlushError() }

// Hijack hands the connection over, without any bound.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	c, buffered, err := w.s.control.Hijack()
	w.s.over = w.s.over || err == nil
	return c, buffered, err
}
