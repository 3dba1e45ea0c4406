package edge

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echo answers with the body, or with the fault that kept it from coming.
func echo(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if fault := FaultOf(r.Context()); fault != nil {
		fault.Answer(w)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = w.Write(text)
}

func stallsAfterASecond(c *Config) { c.StallTimeout = Defaults().StallTimeout / 60 }

func TestHeadersMustComeInTime(t *testing.T) {
	served(t, func(*Config) {}, echo, func(t *testing.T, e *Edge, p *pipes) {
		c := p.dial()
		say(t, c, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		assert.Equal(t, 10*time.Second, closedBy(t, c))
		c = p.dial()
		in := bufio.NewReader(c)
		say(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		code, _ := status(t, in)
		assert.Equal(t, 200, code)
		assert.Equal(t, 2*time.Minute, closedBy(t, c), "and the next request may be a while")
	})
}

func TestABodyThatStandsStillIsCutOff(t *testing.T) {
	for name, head := range map[string]string{"length": "Content-Length: 20\r\n\r\nhello", "chunks": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		t.Run(name, func(t *testing.T) {
			served(t, stallsAfterASecond, echo, func(t *testing.T, e *Edge, p *pipes) {
				c := p.dial()
				in := bufio.NewReader(c)
				began := time.Now()
				say(t, c, "POST / HTTP/1.1\r\nHost: x\r\n"+head)
				code, text := status(t, in)
				assert.Equal(t, 408, code)
				assert.Equal(t, "the body did not come\n", text)
				assert.Equal(t, time.Second, time.Since(began))
				assert.EqualValues(t, 1, e.Refused(BodyStall))
				_ = closedBy(t, c)
			})
		})
	}
}

// TestASlowBodyIsTaken has a body come bit by bit for ten times the limit, and uses the connection again.
func TestASlowBodyIsTaken(t *testing.T) {
	served(t, stallsAfterASecond, echo, func(t *testing.T, e *Edge, p *pipes) {
		c := p.dial()
		in := bufio.NewReader(c)
		for range 2 {
			say(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n")
			for range 20 {
				time.Sleep(500 * time.Millisecond)
				say(t, c, "x")
			}
			code, text := status(t, in)
			assert.Equal(t, 200, code)
			assert.Equal(t, strings.Repeat("x", 20), text)
			time.Sleep(time.Minute) // longer than the limit on what is due: nothing is
		}
		assert.Zero(t, e.Refused(BodyStall))
	})
}

// TestAConversationMayPause streams both ways with pauses far beyond the limit.
func TestAConversationMayPause(t *testing.T) {
	served(t, stallsAfterASecond, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, "hello\n")
		_ = http.NewResponseController(w).Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			time.Sleep(30 * time.Second)
			_, _ = io.WriteString(w, "heard "+lines.Text()+"\n")
			_ = http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, e *Edge, p *pipes) {
		c := p.dial()
		in := bufio.NewReader(c)
		say(t, c, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		answers := bufio.NewReader(resp.Body)
		line, err := answers.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "hello\n", line)
		for range 3 {
			time.Sleep(time.Minute)
			say(t, c, "4\r\nyou\n\r\n")
			line, err = answers.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "heard you\n", line)
		}
		say(t, c, "0\r\n\r\n")
		rest, err := io.ReadAll(answers)
		require.NoError(t, err)
		require.Empty(t, rest)
	})
}

// TestAnAnswerThatIsNotTakenIsCutOff reads nothing of a long answer.
func TestAnAnswerThatIsNotTakenIsCutOff(t *testing.T) {
	var ended chan error
	served(t, stallsAfterASecond, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				ended <- err
				return
			}
		}
	}, func(t *testing.T, e *Edge, p *pipes) {
		ended = make(chan error, 1)
		c := p.dial()
		began := time.Now()
		say(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.Error(t, <-ended)
		assert.Equal(t, time.Second, time.Since(began))
		assert.EqualValues(t, 1, e.Refused(AnswerStall))
	})
}

// TestAnUpgradedConnectionHasNoLimit is quiet for an hour on a connection that was taken over.
func TestAnUpgradedConnectionHasNoLimit(t *testing.T) {
	served(t, stallsAfterASecond, func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}, func(t *testing.T, e *Edge, p *pipes) {
		c := p.dial()
		in := bufio.NewReader(c)
		say(t, c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		code, _ := status(t, in)
		require.Equal(t, 101, code)
		for range 2 {
			time.Sleep(time.Hour)
			say(t, c, "still here\n")
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "still here\n", line)
		}
		require.NoError(t, c.Close())
	})
}

func TestABodyThatIsTooLongIsRefused(t *testing.T) {
	limit := func(c *Config) { c.MaxBody = 10 }
	for _, c := range []struct {
		name, request string
		code          int
		text          string
	}{
		{"as long as may be", "Content-Length: 10\r\n\r\n0123456789", 200, "0123456789"},
		{"chunks as long as may be", "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n", 200, "0123456789"},
		{"said to be longer", "Content-Length: 11\r\n\r\n", 413, "the body may have 10 bytes\n"},
		{"longer", "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789x\r\n0\r\n\r\n", 413, "the body may have 10 bytes\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			served(t, limit, echo, func(t *testing.T, e *Edge, p *pipes) {
				conn := p.dial()
				in := bufio.NewReader(conn)
				say(t, conn, "POST / HTTP/1.1\r\nHost: x\r\n"+c.request)
				code, text := status(t, in)
				assert.Equal(t, c.code, code)
				assert.Equal(t, c.text, text)
				if c.code == 413 {
					assert.EqualValues(t, 1, e.Refused(BodySize))
					_ = closedBy(t, conn)
				}
			})
		})
	}
}

// TestABodyIsNotReadAfterItsRequest has a transport that is still reading when the next request has begun: it must not
// touch the deadlines of the connection.
func TestABodyIsNotReadAfterItsRequest(t *testing.T) {
	var late io.Reader
	served(t, stallsAfterASecond, func(w http.ResponseWriter, r *http.Request) {
		if late == nil {
			late = r.Body
			return
		}
		_, err := late.Read(make([]byte, 1))
		if !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Error("a body that is over was read")
		}
		time.Sleep(time.Minute)
		if r.Context().Err() != nil {
			t.Error("the request was cut off")
		}
	}, func(t *testing.T, _ *Edge, p *pipes) {
		c := p.dial()
		in := bufio.NewReader(c)
		say(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		code, _ := status(t, in)
		require.Equal(t, 200, code)
		say(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		code, _ = status(t, in)
		require.Equal(t, 200, code)
	})
}

// TestAWholeBodyOwesNothing has a handler think for a minute about a body that came at once.
func TestAWholeBodyOwesNothing(t *testing.T) {
	var err error
	served(t, stallsAfterASecond, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(time.Minute)
		err = r.Context().Err()
	}, func(t *testing.T, _ *Edge, p *pipes) {
		c := p.dial()
		say(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		code, _ := status(t, bufio.NewReader(c))
		require.Equal(t, 200, code)
		require.NoError(t, err, "the client is there")
	})
}

// TestAnAnswerFreesAReadThatWaits begins the answer while the body is being waited for: from then on it may take its time.
func TestAnAnswerFreesAReadThatWaits(t *testing.T) {
	served(t, stallsAfterASecond, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		read := make(chan string)
		go func() { text, _ := io.ReadAll(r.Body); read <- string(text) }()
		time.Sleep(500 * time.Millisecond)
		_, _ = io.WriteString(w, "hello ")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, <-read)
	}, func(t *testing.T, _ *Edge, p *pipes) {
		c := p.dial()
		in := bufio.NewReader(c)
		say(t, c, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		go say(t, c, "3\r\nyou\r\n0\r\n\r\n")
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "hello you", string(text))
	})
}

// TestAConnectionThatWasTakenOverIsLeftAlone has the handler return while the connection goes on.
func TestAConnectionThatWasTakenOverIsLeftAlone(t *testing.T) {
	served(t, stallsAfterASecond, func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err == nil {
			go func() { _, _ = io.Copy(c, rw); _ = c.Close() }()
		}
	}, func(t *testing.T, _ *Edge, p *pipes) {
		c := p.dial()
		say(t, c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		time.Sleep(time.Minute)
		say(t, c, "still here\n")
		line, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "still here\n", line)
		require.NoError(t, c.Close())
	})
}
