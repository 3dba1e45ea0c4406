package e2e

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// frame is a request in frames of HTTP/2, written by hand: a library would refuse to send it.
type frame struct {
	name        string
	fields      []string // names and values in turn
	data        string
	want        string // "200", or "reset" for the stream or "goaway" for the connection
	seen        []string
	has, hides  []string
	unfinished  bool // the frames of the fields have no end
	fieldFrames int  // more than one: CONTINUATION
}

// basic is a request's pseudo-fields with others behind.
func basic(more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/a"}, more...)
}

// perhaps is basic for a request that is whole before its fault: it may have gone on when that is found.
func perhaps(more ...string) []string {
	fields := basic(more...)
	fields[7] = "/perhaps"
	return fields
}

var seenA = []string{"POST /a"}

var frames = []frame{
	{name: "honest", fields: basic("x-user", "me"), data: "hello", want: "200", seen: seenA, has: []string{"X-User: me"}},
	{name: "value with a line end", fields: basic("x-user", "me\r\nTransfer-Encoding: chunked"), want: "reset"},
	{name: "value with a request", fields: basic("x-user", "me\r\n\r\n"+smuggled), want: "reset"},
	{name: "value with a bare LF", fields: basic("x-user", "me\nX-Admin: 1"), want: "reset"},
	{name: "value with a NUL", fields: basic("x-user", "me\x00"), want: "reset"},
	{name: "name with a line end", fields: basic("x-user: me\r\ntransfer-encoding", "chunked"), want: "reset"},
	{name: "name with a colon", fields: basic("transfer-encoding:chunked", ""), want: "reset"},
	{name: "name in capitals", fields: basic("X-User", "me"), want: "reset"},
	{name: "name that is empty", fields: basic("", "me"), want: "reset"},
	{name: "path with a request", fields: []string{":method", "GET", ":scheme", "http", ":authority", "x", ":path", "/a HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled}, want: "reset"},
	{name: "path with a space", fields: []string{":method", "GET", ":scheme", "http", ":authority", "x", ":path", "/a /smuggled"}, want: "200", seen: []string{"GET /a%20/smuggled"}},
	{name: "path twice", fields: basic(":path", "/smuggled"), want: "reset"},
	{name: "path that is none", fields: []string{":method", "GET", ":scheme", "http", ":authority", "x", ":path", "a"}, want: "reset"},
	{name: "method with a request", fields: []string{":method", "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\nGET", ":scheme", "http", ":authority", "x", ":path", "/a"}, want: "reset"},
	{name: "scheme with a host", fields: []string{":method", "POST", ":scheme", "http://evil/?", ":authority", "x", ":path", "/a"}, want: "reset"},
	{name: "authority with a line end", fields: []string{":method", "GET", ":scheme", "http", ":authority", "x\r\nX-User: admin", ":path", "/a"}, want: "reset"},
	{name: "authority and another host", fields: basic("host", "evil"), want: "200", seen: seenA, has: []string{"Host: x"}, hides: []string{"evil"}},
	{name: "pseudo-field behind a field", fields: append([]string{"x-user", "me"}, basic()...), want: "reset"},
	{name: "pseudo-field that is unknown", fields: basic(":user", "me"), want: "reset"},
	{name: "transfer-encoding", fields: basic("transfer-encoding", "chunked"), data: "0\r\n\r\n" + smuggled, want: "400"},
	{name: "connection", fields: basic("connection", "x-forwarded-for"), want: "400"},
	{name: "upgrade", fields: basic("upgrade", "h2c"), want: "400"},
	{name: "length below the data", fields: perhaps("content-length", "0"), data: smuggled, want: "reset"},
	{name: "length above the data", fields: basic("content-length", "50"), data: smuggled, want: "400"},
	{name: "two lengths", fields: basic("content-length", "35", "content-length", "0"), data: smuggled, want: "200", seen: seenA, has: []string{"Content-Length: 35"}},
	{name: "length that is none", fields: perhaps("content-length", "+35"), data: smuggled, want: "reset"},
	{name: "CONNECT", fields: []string{":method", "CONNECT", ":authority", "evil:443"}, want: "405"},
	{name: "too many fields", fields: basic(strings.Split(strings.Repeat("x,a,", 65), ",")[:130]...), want: "431"},
	{name: "a field that is too long", fields: basic("x", strings.Repeat("a", 15<<10), "y", strings.Repeat("a", 15<<10)), fieldFrames: 4, want: "goaway"},
	{name: "fields that are too long together", fields: basic("x", strings.Repeat("a", 5<<10), "y", strings.Repeat("a", 5<<10), "z", strings.Repeat("a", 5<<10)), want: "431"},
	{name: "fields without end", fields: basic("x", strings.Repeat("a", 1<<10)), unfinished: true, want: "goaway"},
}

const (
	frameData, frameFields, frameReset, frameSettings, frameGoaway, frameContinued = 0, 1, 3, 4, 7, 9
	flagEnd, flagAllFields                                                         = 1, 4
)

func frameBytes(kind, flags byte, stream uint32, payload string) string {
	head := make([]byte, 9)
	head[0], head[1], head[2] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload))
	head[3], head[4] = kind, flags
	binary.BigEndian.PutUint32(head[5:], stream)
	return string(head) + payload
}

// literal is a string of HPACK without Huffman's code.
func literal(s string) string {
	if len(s) < 127 {
		return string([]byte{byte(len(s))}) + s
	}
	length := []byte{127}
	n := len(s) - 127
	for ; n >= 128; n >>= 7 {
		length = append(length, byte(n)|128)
	}
	return string(append(length, byte(n))) + s
}

// send returns how the proxy answers.
func (f frame) send(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	var block strings.Builder
	for i := 0; i+1 < len(f.fields); i += 2 {
		block.WriteString("\x00" + literal(f.fields[i]) + literal(f.fields[i+1]))
	}
	all := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frameBytes(frameSettings, 0, 0, "")
	flags, rest := byte(0), block.String()
	if f.data == "" {
		flags = flagEnd
	}
	kind, parts := byte(frameFields), max(f.fieldFrames, 1)
	for part := range parts {
		n := len(rest)
		if part < parts-1 {
			n = block.Len() / parts
		} else if !f.unfinished {
			flags |= flagAllFields
		}
		all += frameBytes(kind, flags, 1, rest[:n])
		kind, flags, rest = frameContinued, 0, rest[n:]
	}
	if f.unfinished {
		all += strings.Repeat(frameBytes(frameContinued, 0, 1, "\x00"+literal("x")+literal(strings.Repeat("a", 1<<10))), 1000)
	} else if f.data != "" {
		all += frameBytes(frameData, flagEnd, 1, f.data)
	}
	wrote := make(chan struct{})
	go func() { _, _ = io.WriteString(conn, all); close(wrote) }()
	defer func() { _ = conn.Close(); <-wrote }()
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			timeout := net.Error(nil)
			require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the proxy neither answers nor closes")
			return "goaway" // closed without a word
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return "goaway"
		}
		switch head[3] {
		case frameFields:
			return statusOf(t, payload)
		case frameReset:
			return "reset"
		case frameGoaway:
			if binary.BigEndian.Uint32(payload[4:]) != 0 { // without an error the answer is still to come
				return "goaway"
			}
		}
	}
}

// statusOf reads the first field of an answer, which is its status: an entry of the static table, or text with a name from it.
func statusOf(t *testing.T, block []byte) string {
	t.Helper()
	if indexed := block[0]; indexed >= 0x88 && indexed <= 0x8e {
		return []string{"200", "204", "206", "304", "400", "404", "500"}[indexed-0x88]
	}
	require.True(t, block[0] >= 0x48 && block[0] <= 0x4e, "a status by its name in the static table")
	require.Equal(t, byte(3), block[1], "three digits as they are")
	return string(block[2:5])
}
