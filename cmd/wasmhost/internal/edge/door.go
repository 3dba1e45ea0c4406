package edge

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// door lets so many connections in. A few more wait in a lobby, where their first request is answered with 503 unless a
// place is free by then; the rest wait in the kernel's queue.
type door struct{ places, lobby chan struct{} }

func newDoor(limit int) *door {
	return &door{places: make(chan struct{}, limit), lobby: make(chan struct{}, min(limit, 16+limit/16))}
}

// enter waits for a place or, if all are taken, for one in the lobby.
func (d *door) enter(closed <-chan struct{}) (in chan struct{}, ok bool) {
	select {
	case d.places <- struct{}{}:
		return d.places, true
	default:
	}
	select {
	case d.places <- struct{}{}:
		return d.places, true
	case d.lobby <- struct{}{}:
		return d.lobby, true
	case <-closed:
		return nil, false
	}
}

// listener counts connections and, with a limit, keeps to it.
type listener struct {
	net.Listener
	edge   *Edge
	once   sync.Once
	closed chan struct{}
}

// Listener is ln with the config's limit on connections.
func (e *Edge) Listener(ln net.Listener) net.Listener {
	return &listener{Listener: ln, edge: e, closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted := &conn{Conn: c, edge: l.edge}
	if l.edge.door != nil {
		in, ok := l.edge.door.enter(l.closed)
		if !ok {
			_ = c.Close() // nobody is served any more
			return nil, net.ErrClosed
		}
		counted.in = in
	}
	l.edge.open.Add(1)
	return counted, nil
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn gives its place back when it is closed, also by one who took it over.
type conn struct {
	net.Conn
	edge *Edge
	gone atomic.Bool

	mu sync.Mutex
	in chan struct{} // where its place is; nil without a limit
}

// admitted says whether the connection has a place, or takes one that is free.
func (c *conn) admitted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.edge.door
	if d == nil || c.in == d.places {
		return true
	}
	if c.gone.Load() {
		return false
	}
	select {
	case d.places <- struct{}{}:
		<-d.lobby
		c.in = d.places
		return true
	default:
		return false
	}
}

func (c *conn) Close() error {
	if c.gone.CompareAndSwap(false, true) {
		c.edge.open.Add(-1)
		c.mu.Lock()
		if c.in != nil {
			<-c.in
		}
		c.mu.Unlock()
	}
	return c.Conn.Close()
}

// connOf finds our connection under TLS.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	ours, _ := c.(*conn)
	return ours
}
