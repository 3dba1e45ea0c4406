package discovery_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

const (
	one = `{"endpoints":[{"address":"http://a:1"}]}`
	two = `{"endpoints":[{"address":"http://a:1"},{"address":"http://b:2","weight":1}]}`
)

// watched runs f while a file is watched, in virtual time: after() lets a few looks pass.
func watched(t *testing.T, file *discovery.File, sink *ear, f func(t *testing.T, after func())) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- file.Watch(ctx, sink) }()
		synctest.Wait()
		f(t, func() { time.Sleep(3 * time.Second); synctest.Wait() })
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestFileIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.json")
	write(t, path, one)
	sink := &ear{}
	heard := func(t *testing.T, n int, err string, want ...string) {
		t.Helper()
		got, names, failing := sink.heard()
		require.Equal(t, n, got)
		require.ElementsMatch(t, want, names)
		if err == "" {
			require.NoError(t, failing)
		} else {
			require.ErrorContains(t, failing, err)
		}
	}
	watched(t, &discovery.File{Path: path}, sink, func(t *testing.T, after func()) {
		heard(t, 1, "", "a:1")
		after()
		heard(t, 1, "", "a:1")

		write(t, path, two)
		after()
		heard(t, 2, "", "a:1", "b:2")

		write(t, path, two+"\n\n") // says the same
		after()
		heard(t, 2, "", "a:1", "b:2")

		write(t, path, two[:30]) // half written
		after()
		heard(t, 2, path+":1:31: unexpected end", "a:1", "b:2")
		write(t, path, two)
		after()
		heard(t, 2, "", "a:1", "b:2")

		require.NoError(t, os.Remove(path))
		after()
		heard(t, 2, path+": no such file", "a:1", "b:2")
		write(t, path+".new", one)
		require.NoError(t, os.Rename(path+".new", path))
		after()
		heard(t, 3, "", "a:1")

		sink.mu.Lock()
		sink.refuse = errors.New("not today")
		sink.mu.Unlock()
		write(t, path, `{"endpoints":[]}`)
		after()
		heard(t, 4, path+": not today")
	})
}

// TestFileBehindSwappedLinks does what Kubernetes does with a ConfigMap: a file is a link through a link to a folder,
// and the latter is swapped for another by a rename.
func TestFileBehindSwappedLinks(t *testing.T) {
	dir := t.TempDir()
	publish := func(version, text string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		write(t, filepath.Join(dir, version, "endpoints.json"), text)
		require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..1", one)
	path := filepath.Join(dir, "endpoints.json")
	require.NoError(t, os.Symlink("..data/endpoints.json", path))
	sink := &ear{}
	watched(t, &discovery.File{Path: path}, sink, func(t *testing.T, after func()) {
		publish("..2", two)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "..1")))
		after()
		n, names, err := sink.heard()
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, []string{"a:1", "b:2"}, names)
	})
}

// TestFileOfTheSameSize changes a file in place without its size or time showing it, as file systems with coarse
// clocks let happen, and long after, when it costs no reading to see that nothing changed.
func TestFileOfTheSameSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.json")
	write(t, path, one)
	sink := &ear{}
	dated := func(at time.Time) { require.NoError(t, os.Chtimes(path, at, at)) }
	watched(t, &discovery.File{Path: path, Every: 500 * time.Millisecond}, sink, func(t *testing.T, after func()) {
		now := time.Now()
		dated(now)
		time.Sleep(600 * time.Millisecond)
		write(t, path, strings.Replace(one, "a:1", "c:1", 1))
		dated(now)
		after()
		_, names, _ := sink.heard()
		require.Equal(t, []string{"c:1"}, names)

		// Settled: what hides itself like this now is not seen, for the file is not read again.
		write(t, path, one)
		dated(now)
		after()
		_, names, _ = sink.heard()
		require.Equal(t, []string{"c:1"}, names)
		dated(now.Add(time.Hour))
		after()
		_, names, _ = sink.heard()
		require.Equal(t, []string{"a:1"}, names)

		// Another file of the same size and time, as a copy that keeps times makes it, is read all the same.
		dated(now)
		after()
		write(t, path+".new", strings.Replace(one, "a:1", "d:1", 1))
		require.NoError(t, os.Chtimes(path+".new", now, now))
		require.NoError(t, os.Rename(path+".new", path))
		after()
		_, names, _ = sink.heard()
		require.Equal(t, []string{"d:1"}, names)
	})
}

func TestFileRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.json")
	file := &discovery.File{Path: path, Check: func(ep host.Endpoint) error {
		if ep.Addr == "http://b:2" {
			return errors.New("b is not wanted")
		}
		return nil
	}}
	_, err := file.Read()
	require.EqualError(t, err, path+": no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, path, one)
	eps, err := file.Read()
	require.NoError(t, err)
	require.Equal(t, []host.Endpoint{{Name: "a:1", Addr: "http://a:1"}}, eps)
	write(t, path, two)
	_, err = file.Read()
	require.EqualError(t, err, path+":1:40: b is not wanted")
	write(t, path, strings.Repeat(" ", 16<<20+1))
	_, err = file.Read()
	require.ErrorContains(t, err, "more than 16777216 bytes")
	_, err = (&discovery.File{Path: t.TempDir()}).Read()
	require.ErrorContains(t, err, "is a directory")
}
