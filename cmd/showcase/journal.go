package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/headroom-lb/headroom/showcase/experiment"
)

// journal is the file that finished runs go to.
type journal struct{ f *os.File }

// readJournals takes what journals hold into a study.
func readJournals(s *experiment.Study, build string, paths []string) error {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read a journal: %w; only the first --journal may be a new file", err)
		}
		if _, err := s.Take(text, build, false); err != nil {
			return fmt.Errorf("journal %s: %w", path, err)
		}
	}
	return nil
}

// openJournal takes what a journal holds into a study and makes it ready for more: a new one gets
// its header, and a torn last line goes.
func openJournal(s *experiment.Study, build, path string) (_ *journal, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read a journal: %w", err)
	}
	whole, err := s.Take(text, build, true)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write a journal: %w; give a file in a directory that exists with --journal", err)
	}
	j := &journal{f}
	if whole < len(text) {
		err = f.Truncate(int64(whole))
	}
	if err == nil && whole == 0 {
		err = j.write(s.Header(build).Line())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// keep appends a finished run. It is on the disk when keep returns.
func (j *journal) keep(r experiment.Record) error { return j.write(r.Line()) }

func (j *journal) write(line []byte) error {
	if _, err := j.f.Write(line); err != nil {
		return fmt.Errorf("cannot write to the journal: %w; what it has stays: make room and start again", err)
	}
	if err := j.f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("cannot write to the journal: %w; what it has stays: start again", err)
	}
	return nil
}

func (j *journal) close() error { return j.f.Close() }
