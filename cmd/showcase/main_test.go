package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is the command when it is told so.
func TestMain(m *testing.M) {
	if os.Getenv("SHOWCASE_AS_COMMAND") == "1" {
		if os.Getenv("SHOWCASE_TOYS") == "1" {
			experiments = toys
		}
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func showcaseCommand(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "SHOWCASE_AS_COMMAND=1")
	return c
}

// run is a command that ends by itself.
func runShowcase(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := showcaseCommand(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(t, c.Start())
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	_ = c.Wait()
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func TestMistakes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--listen", taken.Addr().String()}, 1, taken.Addr().String() + " is in use; choose another address with --listen"},
		{[]string{"--listen", "nowhere"}, 1, "give an address of this machine with --listen host:port"},
		{[]string{"--engine", "steam"}, 2, "--engine steam: must be wasm or native"},
		{[]string{"--rooms", "0"}, 2, "must be at least 1"},
		{[]string{"--colour"}, 2, "see showcase --help"},
		{[]string{"now"}, 2, "see showcase --help"},
	} {
		out, errs, code := runShowcase(t, x.args...)
		assert.Equal(t, x.code, code, x.args)
		assert.Contains(t, errs, x.says)
		assert.Equal(t, 1, strings.Count(errs, "\n"), "one line: %q", errs)
		assert.Empty(t, out)
	}
}

func TestHelp(t *testing.T) {
	out, errs, code := runShowcase(t, "--help")
	assert.Zero(t, code)
	assert.Empty(t, errs)
	for _, want := range []string{"Examples:", "simulate", "--listen", "--engine", "http://127.0.0.1:8080/?a=prequal"} {
		assert.Contains(t, out, want)
	}
}

func TestVersionAndCompletion(t *testing.T) {
	out, _, code := runShowcase(t, "--version")
	assert.Zero(t, code)
	assert.Regexp(t, `^showcase .*go\d\S*, \w+/\w+\n$`, out)
	for _, args := range [][]string{{"--engine", ""}, {"--engine="}} {
		out, _, code = runShowcase(t, append([]string{"__complete"}, args...)...)
		assert.Zero(t, code)
		assert.Equal(t, "wasm\nnative\n:4\n", out, args)
	}
}

// The page is served by the module, and a signal ends it in good order.
func TestServesAndEnds(t *testing.T) {
	c := showcaseCommand("--listen", "127.0.0.1:0")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "(engine wasm ")
	_, after, _ := strings.Cut(line, "on ")
	url, _, _ := strings.Cut(after, " ")
	resp, err := http.Get(url + "healthz")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "ok\n", string(body))

	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.Wait(), errs.String())
	assert.Empty(t, errs.String())
}
