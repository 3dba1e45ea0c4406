package discovery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/headroom-lb/headroom/host"
)

// File is a source that reads a JSON file, and reads it again when it changes: the format is in
// docs/discovery.md. A file that is missing, half written or wrong leaves what was read before.
//
// The file is looked at, not subscribed to. Notifications are tied to one inode, so that they miss
// files renamed into place and the symbolic links that Kubernetes swaps under a ConfigMap unless
// the folders above are watched too, and network file systems send none. A look costs one system
// call, and reads only what may have changed.
type File struct {
	Path  string
	Every time.Duration             // between looks; zero means 1 s
	Check func(host.Endpoint) error // refuses an endpoint; its error is placed in the file. Nil: none
}

// mostFile bounds a file: ten thousand endpoints take less than a tenth of it.
const mostFile = 16 << 20

// unsettled is how long a file may change again without its time of change showing it: some file
// systems count in steps of two seconds.
const unsettled = 2 * time.Second

// Watch implements [Source]: it returns only when the context ends.
func (f *File) Watch(ctx context.Context, sink Sink) error {
	every := f.Every
	if every <= 0 {
		every = time.Second
	}
	w := watch{file: f, changes: NewChanges(sink, f.Path)}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		w.look()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
	}
}

// Read reads the file once.
func (f *File) Read() ([]host.Endpoint, error) {
	text, err := f.text()
	if err != nil {
		return nil, placed(f.Path, err)
	}
	eps, err := parse(text, f.Check)
	if err != nil {
		return nil, placed(f.Path, err)
	}
	return eps, nil
}

func (f *File) text() ([]byte, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, plain(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostFile+1))
	if err != nil {
		return nil, plain(err)
	}
	if len(text) > mostFile {
		return nil, fmt.Errorf("more than %d bytes", mostFile)
	}
	return text, nil
}

// plain is an error without the path, which stands before it anyway.
func plain(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// watch is a file as it was at the last look.
type watch struct {
	file    *File
	changes *Changes
	seen    fs.FileInfo // nil: the next look reads
	readAt  time.Time
	sum     [sha256.Size]byte
	parsed  bool
	err     error // of the text with that sum
}

func (w *watch) look() {
	info, err := os.Stat(w.file.Path)
	if err != nil {
		w.seen = nil
		w.changes.Fail(plain(err))
		return
	}
	if w.seen != nil && os.SameFile(w.seen, info) && w.seen.Size() == info.Size() && w.seen.ModTime().Equal(info.ModTime()) &&
		w.readAt.Sub(info.ModTime()) > unsettled {
		w.changes.Fail(w.err)
		return
	}
	readAt := time.Now()
	text, err := w.file.text()
	if err != nil {
		w.seen = nil
		w.changes.Fail(err)
		return
	}
	w.seen, w.readAt = info, readAt
	if sum := sha256.Sum256(text); !w.parsed || sum != w.sum {
		w.sum, w.parsed = sum, true
		var eps []host.Endpoint
		if eps, w.err = parse(text, w.file.Check); w.err == nil {
			w.changes.Tell(eps, nil)
			return
		}
	}
	w.changes.Fail(w.err)
}
