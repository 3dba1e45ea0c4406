package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/headroom-lb/headroom/cmd/internal/terminal"
)

// NewDisplay shows progress on w: a live table on a terminal, a line per round elsewhere.
func NewDisplay(w io.Writer) Watcher {
	if terminal.Is(w) {
		return &liveTable{w: w}
	}
	return roundLines{w}
}

// roundLines writes one line at the end of each round.
type roundLines struct{ w io.Writer }

func (roundLines) Tick(State) {}

func (l roundLines) Round(st State) {
	for _, r := range st.Results {
		if r.name() != st.Policy || len(r.RoundP99) == 0 {
			continue
		}
		fmt.Fprintf(l.w, "round %d of %d, %s: p99 %.0f ms, errors %d, lost %d\n",
			st.Round, st.Rounds, st.Policy, r.RoundP99[len(r.RoundP99)-1], r.Errors, r.Lost)
	}
}

func (l roundLines) Repeat(st State) {
	fmt.Fprintf(l.w, "round %d of %d, %s: %s\n", st.Round, st.Rounds, st.Policy, repeatText)
}

const repeatText = "the generator was late, so the round is repeated"

func (roundLines) Close() {}

// liveTable redraws a short table and a progress line in place, narrow enough for 80 columns, since a line that wraps
// would be drawn over wrongly. Close takes it away: the whole table follows.
type liveTable struct {
	w     io.Writer
	lines int // drawn last time
}

func (l *liveTable) Round(st State) {
	st.Elapsed = st.Length
	l.draw(st)
}

func (l *liveTable) Repeat(st State) {
	st.Policy = short(st.Policy) + " again"
	l.draw(st)
}

func (l *liveTable) Tick(st State) { l.draw(st) }

func (l *liveTable) Close() { fmt.Fprint(l.w, l.erase()) }

func (l *liveTable) erase() string {
	if l.lines == 0 {
		return ""
	}
	text := fmt.Sprintf("\x1b[%dA\x1b[J", l.lines)
	l.lines = 0
	return text
}

func (l *liveTable) draw(st State) {
	text := "\n" + shortTable(st.Results) + progressLine(st)
	// One write, so that no half-drawn table is seen.
	fmt.Fprint(l.w, l.erase()+text)
	l.lines = strings.Count(text, "\n")
}

func progressLine(st State) string {
	const width = 12
	filled := width
	if st.Elapsed < st.Length {
		filled = int(int64(width) * int64(st.Elapsed) / int64(st.Length))
	}
	return fmt.Sprintf("round %d/%d %s [%s%s] %.1f s, %d sent, %d open\n", st.Round, st.Rounds, short(st.Policy),
		strings.Repeat("#", filled), strings.Repeat(".", width-filled), st.Elapsed.Seconds(), st.Sent, st.Sent-st.Done)
}
