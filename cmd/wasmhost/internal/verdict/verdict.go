// Package verdict prints what a module's trial by the laws of guests came to.
package verdict

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/headroom-lb/headroom/cmd/internal/terminal"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/hosttest"
)

// Report is the whole outcome, as --json prints it.
type Report struct {
	Module     string            `json:"module"`
	Digest     string            `json:"sha256"`
	Size       int               `json:"size_bytes"`
	ABI        string            `json:"abi"`
	Spec       string            `json:"spec"`
	Seed       uint64            `json:"seed"`
	Runs       int               `json:"runs"`
	Kept       int               `json:"kept"`
	Broken     int               `json:"broken"`
	NotClaimed int               `json:"not_claimed"`
	NotJudged  int               `json:"not_judged"`
	Laws       []hosttest.Result `json:"laws"`
}

// New counts the verdicts.
func New(name string, m *host.Module, o hosttest.Options, results []hosttest.Result) *Report {
	r := &Report{
		Module: name, Digest: m.DigestText(), Size: m.Size(), ABI: fmt.Sprintf("%d.%d", m.ABI().Major, m.ABI().Minor),
		Spec: o.Spec, Seed: o.Seed, Runs: o.Runs, Laws: results,
	}
	if r.Spec == "" {
		r.Spec = m.Policies()[0]
	}
	for _, l := range results {
		switch l.Verdict {
		case hosttest.Pass:
			r.Kept++
		case hosttest.Fail:
			r.Broken++
		case hosttest.NotJudged:
			r.NotJudged++
		default:
			r.NotClaimed++
		}
	}
	return r
}

// Write prints the report for people, in colours on a terminal.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "module  %s, %d bytes, sha256 %.12s…, ABI %s\nspec    %s\n", r.Module, r.Size, r.Digest, r.ABI, r.Spec)
	group, unclaimed, unjudged := "", 0, 0
	flush := func() {
		if unclaimed > 0 {
			fmt.Fprintf(&b, "  NOT CLAIMED  %s; to claim: --laws %s\n", laws(unclaimed), group)
		}
		if unjudged > 0 {
			fmt.Fprintf(&b, "  NOT JUDGED  %s, because the guest loops\n", laws(unjudged))
		}
		unclaimed, unjudged = 0, 0
	}
	paint := painter(w)
	for _, l := range r.Laws {
		if l.Group != group {
			flush()
			group = l.Group
			title := "laws of " + group
			if group == hosttest.General {
				title = "laws of every guest"
			}
			fmt.Fprintf(&b, "\n%s\n", title)
		}
		switch l.Verdict {
		case hosttest.NotClaimed:
			unclaimed++
		case hosttest.NotJudged:
			unjudged++
		case hosttest.Pass:
			fmt.Fprintf(&b, "  %s  %s\n", paint(green, "PASS"), l.Law)
		default:
			fmt.Fprintf(&b, "  %s  %s\n        %s\n", paint(red, "FAIL"), l.Law, strings.ReplaceAll(l.Reason, "\n", "\n        "))
			for i, c := range l.Calls {
				fmt.Fprintf(&b, "        %3d  %s\n", i+1, c)
			}
		}
	}
	flush()
	fmt.Fprintf(&b, "\n%s kept, %d broken, %d not judged, %d not claimed; %d runs for each, seed %d\n",
		laws(r.Kept), r.Broken, r.NotJudged, r.NotClaimed, r.Runs, r.Seed)
	_, err := io.WriteString(w, b.String())
	return err
}

func laws(n int) string {
	if n == 1 {
		return "1 law"
	}
	return fmt.Sprint(n, " laws")
}

const (
	red   = "31"
	green = "32"
)

func painter(w io.Writer) func(colour, s string) string {
	if !terminal.Is(w) || os.Getenv("NO_COLOR") != "" {
		return func(_, s string) string { return s }
	}
	return func(colour, s string) string { return "\x1b[" + colour + "m" + s + "\x1b[0m" }
}

// Progress says on a terminal which law is on trial, and nothing elsewhere.
type Progress struct {
	w io.Writer
}

// NewProgress writes to w if it is a terminal.
func NewProgress(w io.Writer) *Progress {
	if !terminal.Is(w) {
		w = nil
	}
	return &Progress{w}
}

// Step shows the law at hand, cut to a line.
func (p *Progress) Step(done, of int, law string) {
	if p.w != nil {
		fmt.Fprintf(p.w, "\r\x1b[K%d/%d %.60s", done+1, of, law)
	}
}

// Close takes the line away.
func (p *Progress) Close() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
