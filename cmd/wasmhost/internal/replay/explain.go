package replay

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/trace"
)

// explainTo writes why a decision fell as it did: one sentence, what else is known of it, and
// every candidate with what the rule made of it.
func explainTo(w io.Writer, p *trace.Player, r *trace.Result, x *engine.Explanation, at engine.Instant) error {
	if x == nil { // a module with a policy of its own: there is only its answer
		if r.Err != nil {
			_, err := fmt.Fprintf(w, "placement %d at %d ns: not placed: %s\n", r.Placement, r.At, r.Err)
			return err
		}
		_, err := fmt.Fprintf(w, "placement %d at %d ns: %s, %s; why, only its own module knows\n", r.Placement, r.At, r.Endpoint, r.Decision.Regime)
		return err
	}
	if _, err := fmt.Fprintf(w, "placement %d at %d ns: %s\n", r.Placement, r.At, x.Sentence(p.Name)); err != nil {
		return err
	}
	for _, note := range x.Notes {
		fmt.Fprintf(w, "%s\n", note)
	}
	if len(x.Weighed) == 0 {
		return nil
	}
	entries, loads := false, x.Unit != ""
	for _, row := range x.Weighed {
		entries = entries || row.Entry != nil
	}
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprint(t, "\n  endpoint\tverdict\tweight")
	if loads {
		fmt.Fprintf(t, "\t%s", x.Unit)
	}
	if entries {
		fmt.Fprint(t, "\tRIF\tlatency\tage\tuses\tside")
	}
	fmt.Fprintln(t, "\t")
	for i := range x.Weighed {
		row := &x.Weighed[i]
		fmt.Fprintf(t, "  %s\t%s\t%d", p.Name(row.ID), row.Verdict, row.Weight)
		if loads {
			fmt.Fprintf(t, "\t%s", loadText(row))
		}
		if e := row.Entry; entries && e == nil {
			fmt.Fprint(t, "\t\t\t\t\t")
		} else if entries {
			fmt.Fprintf(t, "\t%s\t%s\t%s\t%d\t%s", rifText(e), latencyText(e.Latency), time.Duration(at-e.At), e.Uses, side(e))
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}

// loadText leaves out what the rule did not compare.
func loadText(w *engine.Weighed) string {
	if !w.Compared {
		return ""
	}
	return fmt.Sprint(w.Load)
}

func side(e *engine.Entry) string {
	if e.Hot {
		return "hot"
	}
	return "cold"
}

func rifText(e *engine.Entry) string {
	if e.RIF == e.RawRIF {
		return fmt.Sprint(e.RIF)
	}
	return fmt.Sprintf("%d (reported %d)", e.RIF, e.RawRIF)
}

func latencyText(d engine.Duration) string {
	if d < 0 {
		return "unknown"
	}
	return time.Duration(d).String()
}
