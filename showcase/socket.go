package showcase

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

const (
	readLimit    = 4096
	writeTimeout = 5 * time.Second
	pingEvery    = 20 * time.Second
	commandsMost = 20 // a second, of one socket
)

// Hello is the first message of a socket.
type Hello struct {
	Type   string `json:"type"` // "hello"
	Engine struct {
		Kind   string `json:"kind"`
		Digest string `json:"digest"`
	} `json:"engine"`
	Rate     int      `json:"rate"`
	Policies []string `json:"policies"`
	State    State    `json:"state"`
	Since    float64  `json:"since,omitempty"` // seconds of simulated time that the room ran before
}

// serveSocket streams a room to one browser. The room is named by the link's query string.
func (s *Server) serveSocket(w http.ResponseWriter, req *http.Request) {
	setup, _, problem := ParseSetup(req.URL.Query())
	if problem != nil && req.Header.Get("Upgrade") == "" {
		http.Error(w, problem.Error(), http.StatusBadRequest)
		return
	}
	release, ok := s.sockets.take(req.RemoteAddr)
	if !ok {
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	defer release()
	// Accept refuses a foreign origin with 403 by itself. Compression would cost more than it
	// saves: frames are small, and it would run once for each viewer.
	c, err := websocket.Accept(w, req, &websocket.AcceptOptions{
		OriginPatterns: s.origins, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	c.SetReadLimit(readLimit)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()

	if problem != nil { // said in the stream: a script does not learn why a handshake failed
		s.refuse(ctx, c, problem, true)
		return
	}
	room, key, err := s.rooms.join(setup)
	if err != nil {
		s.refuse(ctx, c, err, false)
		return
	}
	defer s.rooms.leave(key, room)
	v := &viewer{box: newMailbox(), fail: func(reason string) {
		go func() {
			_ = c.Close(websocket.StatusInternalError, clip(reason))
			cancel()
		}()
	}}
	if !room.enter(v, s.hello) {
		s.refuse(ctx, c, errors.New("the room has just closed; try again"), false)
		return
	}
	defer room.leave(v)
	go func() {
		defer cancel()
		s.write(ctx, c, v.box)
	}()
	s.read(ctx, c, room, v)
}

// refuse ends a socket with a reason that the page shows; final if the same link will never do.
func (s *Server) refuse(ctx context.Context, c *websocket.Conn, err error, final bool) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_ = c.Write(ctx, websocket.MessageText, encode(map[string]any{"type": "refused", "text": err.Error(), "final": final}))
	code := websocket.StatusTryAgainLater
	if final {
		code = websocket.StatusPolicyViolation
	}
	_ = c.Close(code, clip(err.Error()))
}

// clip cuts a reason to what a close frame holds.
func clip(s string) string { return s[:min(len(s), 120)] }

func (s *Server) hello(st State, since float64) []byte {
	h := Hello{Type: "hello", Rate: Rate, Policies: policies(), State: st, Since: since}
	h.Engine.Kind, h.Engine.Digest = s.engine.Kind, s.engine.Digest
	return encode(h)
}

// write sends what the mailbox holds, and a ping now and then.
func (s *Server) write(ctx context.Context, c *websocket.Conn, box *mailbox) {
	go func() {
		t := time.NewTicker(pingEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				pctx, cancel := context.WithTimeout(ctx, writeTimeout)
				err := c.Ping(pctx)
				cancel()
				if err != nil {
					_ = c.CloseNow()
					return
				}
			}
		}
	}()
	for {
		msg, err := box.next(ctx)
		if err != nil {
			if errors.Is(err, errTooSlow) {
				_ = c.Close(websocket.StatusPolicyViolation, "reading too slowly")
			}
			return
		}
		kind := websocket.MessageText
		if msg.binary {
			kind = websocket.MessageBinary
		}
		wctx, cancel := context.WithTimeout(ctx, writeTimeout)
		err = c.Write(wctx, kind, msg.data)
		cancel()
		if err != nil {
			return
		}
	}
}

// read takes acknowledgements (binary, the number of binary messages taken, u32) and commands
// (JSON) until the socket ends.
func (s *Server) read(ctx context.Context, c *websocket.Conn, room *Room, v *viewer) {
	var window time.Time
	var n int
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			if len(data) == 4 {
				v.box.ack(binary.LittleEndian.Uint32(data))
			}
			continue
		}
		if now := time.Now(); now.Sub(window) > time.Second {
			window, n = now, 0
		}
		cmd, err := parseCommand(data)
		if n++; n > commandsMost {
			err = errors.New("too many commands; at most 20 a second")
		}
		if err != nil {
			v.box.put(message{data: encode(applied{Type: "applied", ID: cmd.ID, Error: err.Error()})})
			continue
		}
		if !room.obey(v, cmd) {
			_ = c.Close(websocket.StatusTryAgainLater, "the room has closed")
			return
		}
	}
}
