package replay

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/trace"
)

// explainTo says why a decision fell as it did: a sentence, and the entries that the pool held
// before it, best first.
func explainTo(w io.Writer, p *trace.Player, r *trace.Result, before []engine.Entry) error {
	if _, err := fmt.Fprintf(w, "placement %d at %d ns: %s\n", r.Placement, r.At, sentence(r)); err != nil {
		return err
	}
	if len(before) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nThe pool before it, best first, before what was due for removal left:\n")
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  endpoint\tRIF\tlatency\tage\tuses\tside\t")
	for _, e := range before {
		side := "cold"
		if e.Hot {
			side = "hot"
		}
		if !e.Eligible {
			side += ", not eligible"
		}
		if e.ID == r.Decision.ID && r.Err == nil && r.Decision.Regime != engine.RegimeFallback {
			side += ", decided"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%d\t%s\t\n", p.Name(e.ID), rifText(e), latencyText(e.Latency),
			time.Duration(engine.Instant(r.At)-e.At), e.Uses, side)
	}
	return t.Flush()
}

func sentence(r *trace.Result) string {
	d := &r.Decision
	if r.Err != nil {
		return "not placed: " + r.Err.Error()
	}
	switch d.Regime {
	case engine.RegimeCold:
		above := "there is no threshold"
		if d.Threshold != engine.NoThreshold {
			above = fmt.Sprintf("RIF at most %d", d.Threshold)
		}
		return fmt.Sprintf("%s, because it answers fastest (%s) of the %d cold entries on offer (%s); %d are hot",
			r.Endpoint, latencyText(d.Latency), d.Cold, above, d.Hot)
	case engine.RegimeHot:
		return fmt.Sprintf("%s, because all %d entries on offer are hot (RIF above %d) and it has the least RIF, %d",
			r.Endpoint, d.Hot, d.Threshold, d.RIF)
	case engine.RegimeFallback:
		return fmt.Sprintf("%s, drawn at random among the eligible, because the pool is %s: %d entries on offer",
			r.Endpoint, d.Cause, d.Offered)
	default:
		return fmt.Sprintf("%s, by a policy without regimes", r.Endpoint)
	}
}

func rifText(e engine.Entry) string {
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
