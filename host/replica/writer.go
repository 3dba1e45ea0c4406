package replica

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// tracked is a response writer that knows its query and notes how it is answered.
type tracked struct {
	http.ResponseWriter
	m        *Monitor
	query    Query
	status   int // final status, 0 until one is settled
	hijacked bool
	returned bool // the handler came back by itself
}

// The forms that a tracked writer takes: exactly the optional interfaces of the writer it
// wraps, since libraries ask by type assertion. Each is one pointer, so dressing is free.
type (
	flushing         struct{ *tracked }
	hijacking        struct{ *tracked }
	flushingHijacker struct{ *tracked }
	serverWriter     struct{ *tracked } // HTTP/1 of net/http, with its fast ReadFrom
)

func (t *tracked) dressed() http.ResponseWriter {
	flush, hijack := abilities(t.ResponseWriter)
	_, reads := t.ResponseWriter.(io.ReaderFrom)
	switch {
	case flush && hijack && reads:
		return serverWriter{t}
	case flush && hijack:
		return flushingHijacker{t}
	case flush:
		return flushing{t}
	case hijack:
		return hijacking{t}
	}
	return t
}

// abilities asks the way http.ResponseController does, through Unwrap.
func abilities(w http.ResponseWriter) (flush, hijack bool) {
	for {
		switch w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			flush = true
		}
		if _, ok := w.(http.Hijacker); ok {
			hijack = true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok || flush && hijack {
			return flush, hijack
		}
		w = u.Unwrap()
	}
}

func (t *tracked) tracker() *tracked { return t }

// Unwrap serves http.ResponseController.
func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// commit settles the final status and adds the reading before the headers leave.
func (t *tracked) commit(status int) {
	if t.status != 0 {
		return
	}
	t.status = status
	if t.m.piggyback && t.query.m != nil && !t.hijacked {
		SetHeaders(t.Header(), t.m.reading(1))
	}
}

func (t *tracked) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		t.commit(status)
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracked) Write(p []byte) (int, error) {
	t.commit(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

func (t *tracked) WriteString(s string) (int, error) {
	t.commit(http.StatusOK)
	return io.WriteString(t.ResponseWriter, s)
}

func (t *tracked) flush() error {
	t.commit(http.StatusOK)
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// hijack takes the connection over: from now on the query's age is no latency, and nothing is
// written through net/http any more.
func (t *tracked) hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err == nil {
		t.hijacked = true
		if t.query.m != nil {
			t.query.hush()
		}
	}
	return c, rw, err
}

func (f flushing) Flush()                    { _ = f.flush() }
func (f flushing) FlushError() error         { return f.flush() }
func (f flushingHijacker) Flush()            { _ = f.flush() }
func (f flushingHijacker) FlushError() error { return f.flush() }
func (f serverWriter) Flush()                { _ = f.flush() }
func (f serverWriter) FlushError() error     { return f.flush() }

func (f hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error)        { return f.hijack() }
func (f flushingHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return f.hijack() }
func (f serverWriter) Hijack() (net.Conn, *bufio.ReadWriter, error)     { return f.hijack() }

func (f serverWriter) ReadFrom(r io.Reader) (int64, error) {
	f.commit(http.StatusOK)
	return f.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}
