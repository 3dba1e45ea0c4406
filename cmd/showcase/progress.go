package main

import (
	"fmt"
	"io"
	"time"

	"github.com/headroom-lb/headroom/cmd/internal/terminal"
	"github.com/headroom-lb/headroom/showcase/experiment"
)

// meter is a line of progress on a terminal, and nothing elsewhere.
type meter struct {
	to   io.Writer
	what string
	last time.Time
}

// between two lines, so that a terminal is not flooded.
const between = 200 * time.Millisecond

func progress(to io.Writer, what string) *meter {
	if !terminal.Is(to) {
		to = nil
	}
	return &meter{to: to, what: what}
}

func (m *meter) step(p experiment.Progress) {
	if m.to == nil || time.Since(m.last) < between {
		return
	}
	m.last = time.Now()
	fmt.Fprint(m.to, "\r\x1b[K", m.text(p))
}

func (m *meter) text(p experiment.Progress) string {
	s := fmt.Sprintf("%s: %d of %d runs", m.what, p.Done, p.Total)
	if left := time.Duration(p.Left()); left >= 0 {
		s += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	return s
}

// end clears the line.
func (m *meter) end() {
	if m.to != nil && !m.last.IsZero() {
		fmt.Fprint(m.to, "\r\x1b[K")
	}
}
