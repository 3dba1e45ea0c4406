package lifecycle

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListenSaysWhatToDo(t *testing.T) {
	ln, err := Listen("--listen", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, err = Listen("--admin", ln.Addr().String())
	require.ErrorContains(t, err, "--admin "+ln.Addr().String()+" is in use")
	_, err = Listen("--listen", "203.0.113.7:80")
	require.ErrorContains(t, err, "not an address of this machine")
}

func TestCheckAddr(t *testing.T) {
	for _, good := range []string{"127.0.0.1:8000", ":0", "localhost:http", "[::1]:9"} {
		require.NoError(t, CheckAddr("--listen", good), good)
	}
	for _, bad := range []string{"", "8080", "localhost", "localhost:", "1.2.3.4:99999", "a:b:c"} {
		require.ErrorContains(t, CheckAddr("--listen", bad), "is not host:port", bad)
	}
}

func TestDrainWaitsForOpenRequests(t *testing.T) {
	for name, c := range map[string]struct {
		within time.Duration
		fails  string
	}{
		"long enough": {within: 5 * time.Second},
		"too short":   {within: 20 * time.Millisecond, fails: "1 open request was cut off after 20ms"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := Listen("--listen", "127.0.0.1:0")
			require.NoError(t, err)
			entered, leave := make(chan struct{}), make(chan struct{})
			s := Start(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(entered)
				select {
				case <-leave:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "whole")
			}))
			answer := make(chan string, 1)
			go func() {
				resp, err := http.Get("http://" + ln.Addr().String())
				if err != nil {
					answer <- "cut"
					return
				}
				defer resp.Body.Close()
				b, _ := io.ReadAll(resp.Body)
				answer <- string(b)
			}()
			<-entered
			if c.fails == "" {
				time.AfterFunc(50*time.Millisecond, func() { close(leave) })
			}
			err = s.Drain(c.within)
			if c.fails == "" {
				require.NoError(t, err)
				require.Equal(t, "whole", <-answer)
			} else {
				require.ErrorContains(t, err, c.fails)
				require.Equal(t, "cut", <-answer)
			}
			require.ErrorIs(t, <-s.Failed(), http.ErrServerClosed)
		})
	}
}

// TestDrainGivesUpgradedConnectionsTheirTime drains with a connection that a handler took over.
func TestDrainGivesUpgradedConnectionsTheirTime(t *testing.T) {
	for name, c := range map[string]struct {
		within time.Duration
		fails  string
	}{
		"long enough": {within: 5 * time.Second},
		"too short":   {within: 20 * time.Millisecond, fails: "1 upgraded connection was cut off after 20ms of draining: have WebSocket clients connect again"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := Listen("--listen", "127.0.0.1:0")
			require.NoError(t, err)
			left := make(chan struct{})
			s := Start(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(left)
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				// A reverse proxy closes what it joined when the request's context ends.
				go func() { <-r.Context().Done(); conn.Close() }()
				for {
					line, err := rw.ReadString('\n')
					if err != nil {
						return
					}
					_, _ = io.WriteString(conn, line)
				}
			}))
			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\nhello\n")
			require.NoError(t, err)
			in := bufio.NewReader(conn)
			say := func(word string) error {
				if word != "" {
					_, _ = io.WriteString(conn, word)
				}
				_, err := in.ReadString('\n')
				return err
			}
			require.NoError(t, say(""))
			drained := make(chan error, 1)
			go func() { drained <- s.Drain(c.within) }()
			if c.fails != "" {
				require.ErrorContains(t, <-drained, c.fails)
				require.Error(t, say(""), "it is cut off")
			} else {
				require.ErrorIs(t, <-s.Failed(), http.ErrServerClosed)
				require.NoError(t, say("still there\n"), "it has its time")
				require.Empty(t, drained)
				require.NoError(t, conn.Close())
				require.NoError(t, <-drained)
			}
			<-left
		})
	}
}
