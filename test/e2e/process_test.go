// Package e2e runs the built commands as processes, over real sockets, as a user would.
package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wasmhost is the built command, made once for all tests.
var wasmhost string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "headroom-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	wasmhost = filepath.Join(dir, "wasmhost")
	cmd := exec.Command("go", "build", "-o", wasmhost, "../../cmd/wasmhost")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build wasmhost:", err)
		return 1
	}
	return m.Run()
}

// patience bounds every wait; it is met only when something is broken.
const patience = 2 * time.Minute

// process is a running command whose output is kept.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	exit chan struct{}

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
	grown  chan struct{} // closed and replaced whenever output came
}

// start runs wasmhost with the arguments and kills it when the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(wasmhost, args...), exit: make(chan struct{}), grown: make(chan struct{})}
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	errOut, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	var readers sync.WaitGroup
	readers.Go(func() { p.keep(bufio.NewScanner(out), &p.stdout) })
	readers.Go(func() { p.keep(bufio.NewScanner(errOut), &p.stderr) })
	go func() {
		readers.Wait()
		_ = p.cmd.Wait() // the exit code is read from the process state
		close(p.exit)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended already
		<-p.exit
		if t.Failed() {
			t.Logf("wasmhost %v\nstdout:\n%sstderr:\n%s", args, p.text(&p.stdout), p.text(&p.stderr))
		}
	})
	return p
}

func (p *process) keep(lines *bufio.Scanner, to *bytes.Buffer) {
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		to.WriteString(lines.Text() + "\n")
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *process) text(b *bytes.Buffer) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return b.String()
}

// find waits for a line of output that matches and returns its first group.
func (p *process) find(b *bytes.Buffer, pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		m, grown := re.FindStringSubmatch(b.String()), p.grown
		p.mu.Unlock()
		if m != nil {
			return m[len(m)-1]
		}
		select {
		case <-grown:
		case <-p.exit:
			if m := re.FindStringSubmatch(p.text(b)); m != nil {
				return m[len(m)-1]
			}
			require.FailNow(p.t, "the process ended before it printed "+pattern)
		case <-deadline:
			require.FailNow(p.t, "the process did not print "+pattern)
		}
	}
}

// stop sends a signal and waits for the exit code.
func (p *process) stop(sig syscall.Signal) int {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
	return p.wait()
}

func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exit:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		require.FailNow(p.t, "the process did not end")
		return 0
	}
}

// startReplica starts a replica and returns it with its base URL.
func startReplica(t *testing.T, name, listen string, args ...string) (*process, string) {
	t.Helper()
	p := start(t, append([]string{"replica", "--name", name, "--listen", listen, "--service", "5ms", "--slots", "8"}, args...)...)
	return p, p.find(&p.stdout, `listens on (http://\S+)`)
}

// startProxy starts a proxy over the given endpoints and returns it with its own and its admin's base URL.
func startProxy(t *testing.T, endpoints []string, args ...string) (p *process, proxy, admin string) {
	t.Helper()
	all := append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	for _, e := range endpoints {
		all = append(all, "--endpoint", e)
	}
	p = start(t, all...)
	proxy = p.find(&p.stdout, `proxy listens on (http://\S+)`)
	return p, proxy, p.find(&p.stdout, `admin listens on (http://\S+)`)
}
