package showcase

import (
	"context"
	"errors"
	"sync"
)

// message is one WebSocket message on its way to a viewer.
type message struct {
	binary bool
	data   []byte
}

// ackWindow is how many binary messages may be on their way to a browser at once. Kernel
// buffers hold seconds of frames, so a slot for the newest frame is not enough: without the
// window a slow browser sees the past.
const ackWindow = 2

// maxQueued bounds the messages that may not be skipped.
const maxQueued = 64

var errTooSlow = errors.New("the viewer does not read")

// mailbox holds what a viewer has not been sent: every message that must arrive, in order, and
// the newest frame.
type mailbox struct {
	mu    sync.Mutex
	queue []message
	frame []byte
	sent  uint32 // binary messages
	acked uint32
	full  bool
	wake  chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) stir() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// offer replaces the newest frame; nil takes it away.
func (m *mailbox) offer(frame []byte) {
	m.mu.Lock()
	m.frame = frame
	m.mu.Unlock()
	m.stir()
}

// put queues a message that must arrive.
func (m *mailbox) put(msg message) {
	m.mu.Lock()
	if len(m.queue) < maxQueued {
		m.queue = append(m.queue, msg)
	} else {
		m.full = true
	}
	m.mu.Unlock()
	m.stir()
}

// ack notes how many binary messages the browser has taken.
func (m *mailbox) ack(total uint32) {
	m.mu.Lock()
	if total > m.acked && total <= m.sent {
		m.acked = total
	}
	m.mu.Unlock()
	m.stir()
}

// next waits for the next message to send. It ends with ctx's error, or errTooSlow.
func (m *mailbox) next(ctx context.Context) (message, error) {
	for {
		m.mu.Lock()
		if m.full {
			m.mu.Unlock()
			return message{}, errTooSlow
		}
		if len(m.queue) > 0 {
			msg := m.queue[0]
			m.queue = m.queue[1:]
			if msg.binary {
				m.sent++
			}
			m.mu.Unlock()
			return msg, nil
		}
		if m.frame != nil && m.sent-m.acked < ackWindow {
			msg := message{true, m.frame}
			m.frame = nil
			m.sent++
			m.mu.Unlock()
			return msg, nil
		}
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return message{}, ctx.Err()
		case <-m.wake:
		}
	}
}
