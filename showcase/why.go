package showcase

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// Why says in one or two sentences why a decision fell as it did. It is made from the decision
// and the pool that the engine shows, and from nothing else.
func Why(d *DecisionFrame, spec string) string {
	if d.Serial == 0 {
		return fmt.Sprintf("Waiting for client %d's first decision.", d.Client)
	}
	e := &d.Decision
	name := sim.Name(d.Replica)
	switch e.Regime {
	case engine.RegimeCold:
		limit := "no RIF counts as hot yet"
		if e.Threshold != engine.NoThreshold {
			limit = "RIF " + strconv.FormatUint(uint64(e.Threshold), 10) + " or less"
		}
		if e.Cold == 1 {
			return fmt.Sprintf("Client %d chose %s: the only cold one (%s) of %s that it knows.",
				d.Client, name, limit, count(int(e.Offered), "replica"))
		}
		if chosen(d).Latency < 0 {
			return fmt.Sprintf("Client %d chose %s: its latency is unknown and counts as the middle one (%s), and no other of the %d cold replicas that it knows is faster (%s).",
				d.Client, name, millis(int64(e.Latency)), e.Cold, limit)
		}
		return fmt.Sprintf("Client %d chose %s: it answers fastest (%s) of the %d cold replicas that it knows (%s).",
			d.Client, name, millis(int64(e.Latency)), e.Cold, limit)
	case engine.RegimeHot:
		return fmt.Sprintf("All %s that client %d knows are hot (RIF above %d), so it stopped chasing speed and chose the emptiest, %s (RIF %d).",
			count(int(e.Offered), "replica"), d.Client, e.Threshold, name, e.RIF)
	case engine.RegimeFallback:
		if e.Cause == engine.CauseTrap {
			return fmt.Sprintf("The guest failed, so the host decided for client %d: %s at random.", d.Client, name)
		}
		return fmt.Sprintf("Client %d has %s in its pool, too few to compare, so it chose %s at random.",
			d.Client, count(int(e.Offered), "reading"), name)
	}
	return fmt.Sprintf("%s asks no replica how it is: client %d sent this query to %s whatever its state.",
		Title(spec), d.Client, name)
}

// chosen is the row of the decision's replica; a zero row if it stands in none.
func chosen(d *DecisionFrame) Row {
	for _, r := range d.Rows {
		if r.Verdict == VerdictChosen {
			return r
		}
	}
	return Row{}
}

// word is what the page calls a regime.
func word(r engine.Regime) string {
	if r == engine.RegimeFallback {
		return "blind"
	}
	return r.String()
}

func count(n int, what string) string {
	if n == 0 {
		return "no " + what
	}
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// millis prints a latency for people; negative is unknown.
func millis(ns int64) string {
	switch {
	case ns < 0:
		return "latency unknown"
	case ns < sim.Millisecond/10:
		return "<0.1 ms"
	case ns < 10*sim.Millisecond:
		return strconv.FormatFloat(float64(ns/(sim.Millisecond/10))/10, 'f', 1, 64) + " ms"
	case ns < sim.Second:
		return strconv.FormatInt(ns/sim.Millisecond, 10) + " ms"
	}
	return strconv.FormatFloat(float64(ns/(10*sim.Millisecond))/100, 'f', 2, 64) + " s"
}

// Compare says what the two fleets have made of the same queries so far.
func Compare(a, b *WorldFrame, specA, specB string) string {
	if a.Totals.Arrivals == 0 {
		return "The same queries to both; the first is yet to come."
	}
	names := [2]string{Title(specA), Title(specB)}
	if names[0] == names[1] {
		names = [2]string{names[0] + " (A)", names[1] + " (B)"}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "The same %s queries to both. ", grouped(a.Totals.Arrivals))
	for i, w := range []*WorldFrame{a, b} {
		switch {
		case w.Totals.Completed == 0 && w.Quantiles[2] == 0:
			fmt.Fprintf(&s, "%s has answered none yet", names[i])
		case w.Quantiles[2] == 0:
			fmt.Fprintf(&s, "%s has answered none lately", names[i])
		case w.Quantiles[2] < 0:
			fmt.Fprintf(&s, "%s: at least 1 query in 100 times out", names[i])
		default:
			fmt.Fprintf(&s, "%s: 99 in 100 within %s", names[i], millis(w.Quantiles[2]))
		}
		switch {
		case w.Totals.Completed+w.Totals.Errors == 0:
			s.WriteString(". ")
		case w.Totals.Errors == 0:
			s.WriteString(", none lost. ")
		default:
			fmt.Fprintf(&s, ", %s lost so far. ", grouped(w.Totals.Errors))
		}
	}
	return strings.TrimSpace(s.String())
}

// grouped prints a count with a comma every three digits.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
