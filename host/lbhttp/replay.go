package lbhttp

import (
	"io"
	"net/http"
	"sync"
)

// replay hands one request body to attempt after attempt. A body that no attempt has read is
// handed on as it is; one that was read starts again through GetBody, if there is one.
type replay struct {
	req *http.Request
	src io.ReadCloser
	cur *attemptBody
}

func (r *replay) empty() bool { return r.src == nil || r.src == http.NoBody }

// next is the body for the coming attempt.
func (r *replay) next() io.ReadCloser {
	if r.empty() {
		return r.src
	}
	r.cur = &attemptBody{src: r.src}
	return r.cur
}

// repeatable reports whether the body could be sent again.
func (r *replay) repeatable() bool {
	if r.empty() {
		return true
	}
	r.cur.mu.Lock()
	defer r.cur.mu.Unlock()
	return !r.cur.failed && (!r.cur.touched || r.req.GetBody != nil)
}

// again takes the body back from a failed attempt and makes it ready for the next one, or
// reports that it cannot be sent again.
func (r *replay) again() bool {
	if r.empty() {
		return true
	}
	if touched := r.cur.detach(); !touched {
		return true
	}
	_ = r.src.Close()
	if r.req.GetBody == nil {
		return false
	}
	fresh, err := r.req.GetBody()
	if err == nil {
		r.src = fresh
	}
	return err == nil
}

// adopt leaves the body to the attempt that succeeded, which may still be reading it.
func (r *replay) adopt() {
	if r.cur != nil {
		r.cur.adopt()
	}
}

// abandon closes the body: there is no further attempt.
func (r *replay) abandon() {
	if r.cur != nil {
		r.cur.detach()
	}
	if r.src != nil {
		_ = r.src.Close()
	}
}

// broke reports whether the caller's body, and not the replica, ended the attempt.
func (r *replay) broke() bool {
	if r.cur == nil {
		return false
	}
	r.cur.mu.Lock()
	defer r.cur.mu.Unlock()
	return r.cur.failed
}

// attemptBody is the caller's body on loan to one attempt. Transports close a body when they
// fail, and may do so or even read on after they returned; until the attempt is known to have
// succeeded, closing it therefore leaves the caller's body open.
type attemptBody struct {
	src io.ReadCloser

	mu       sync.Mutex
	touched  bool // read at least once
	failed   bool // the caller's body returned an error
	closed   bool // by the transport
	detached bool // taken back
	adopted  bool // the attempt succeeded
}

func (b *attemptBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.detached || b.closed {
		b.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	b.touched = true
	b.mu.Unlock()
	n, err := b.src.Read(p)
	if err != nil && err != io.EOF {
		b.mu.Lock()
		b.failed = !b.closed && !b.detached
		b.mu.Unlock()
	}
	return n, err
}

func (b *attemptBody) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	// A body that was read is of no use to another attempt; closing it now unblocks its reader.
	through := first && !b.detached && (b.adopted || b.touched)
	b.mu.Unlock()
	if through {
		return b.src.Close()
	}
	return nil
}

func (b *attemptBody) detach() (touched bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.detached = true
	return b.touched
}

func (b *attemptBody) adopt() {
	b.mu.Lock()
	late := b.closed && !b.touched
	b.adopted = true
	b.mu.Unlock()
	if late {
		_ = b.src.Close()
	}
}
