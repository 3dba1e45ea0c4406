package edge

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Reason says why a client was turned away.
type Reason int

// The reasons.
const (
	Connections Reason = iota // too many are open
	Fields                    // a request with too many header fields
	Target                    // CONNECT, and what is no path: this is no tunnel
	BodySize                  // a body that is too long
	BodyBroken                // a body that is no body, such as a chunk without a size
	BodyStall                 // a body that did not come
	AnswerStall               // an answer that was not taken
	reasons
)

var reasonNames = [reasons]string{"connections", "fields", "target", "body_size", "body_broken", "body_stall", "answer_stall"}

func (r Reason) String() string { return reasonNames[r] }

// Reasons are all of them.
func Reasons() (out []Reason) {
	for r := range reasons {
		out = append(out, r)
	}
	return out
}

// Edge is the client side of one listener.
type Edge struct {
	config       Config
	certificates *Certificates // nil without TLS
	door         *door         // nil without a limit
	open         atomic.Int64
	refused      [reasons]atomic.Uint64
}

// New makes the edge of a validated config.
func New(c Config, log *slog.Logger) (*Edge, error) {
	e := &Edge{config: c}
	if c.MaxConnections > 0 {
		e.door = newDoor(c.MaxConnections)
	}
	if !c.TLS() {
		return e, nil
	}
	var err error
	e.certificates, err = NewCertificates(c, log)
	return e, err
}

// Certificates is what a listener with TLS shows; nil without.
func (e *Edge) Certificates() *Certificates { return e.certificates }

// Open is the number of connections.
func (e *Edge) Open() int64 { return e.open.Load() }

// Refused counts those that were turned away.
func (e *Edge) Refused(r Reason) uint64 { return e.refused[r].Load() }

func (e *Edge) refuse(r Reason) { e.refused[r].Add(1) }

// Run follows the files of the certificate until the context ends.
func (e *Edge) Run(ctx context.Context) {
	if e.certificates != nil {
		e.certificates.Follow(ctx)
	}
}

// slop is what net/http reads beyond a server's limit on headers before it refuses them.
const slop = 4096

// Tune makes an HTTP server keep to the config.
func (e *Edge) Tune(s *http.Server) {
	c := e.config
	s.ReadHeaderTimeout = time.Duration(c.HeaderTimeout)
	s.IdleTimeout = time.Duration(c.IdleTimeout)
	s.MaxHeaderBytes = int(c.MaxHeader) - slop
	s.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: c.MaxStreams,
		SendPingTimeout:      time.Duration(c.StallTimeout), // a client that is gone without a word is found out
		WriteByteTimeout:     time.Duration(c.StallTimeout),
	}
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(c.TLS())
	s.Protocols.SetUnencryptedHTTP2(c.H2C)
	if e.certificates != nil {
		s.TLSConfig = e.certificates.config()
	}
}
