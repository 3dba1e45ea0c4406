package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Verdict says in one sentence what the numbers show, whichever way they fall, and in a second one if they are in doubt.
func Verdict(results []*Result) string {
	text := sentence(results)
	if more := caveat(results); more != "" {
		text += " " + strings.TrimSuffix(more, "\n")
	}
	return text
}

func sentence(results []*Result) string {
	ranked := slices.Clone(results)
	ranked = slices.DeleteFunc(ranked, func(r *Result) bool { return r.OK+r.Errors == 0 })
	if len(ranked) == 0 {
		return "No query was answered, so nothing can be said about the policies."
	}
	slices.SortStableFunc(ranked, func(a, b *Result) int { return cmp.Compare(a.P99, b.P99) })
	best := ranked[0]
	subject := slices.IndexFunc(ranked, func(r *Result) bool { return r.policy() == "prequal" })

	var b strings.Builder
	switch {
	case len(ranked) == 1:
		fmt.Fprintf(&b, "%s alone was measured, with a p99 of %s", title(best), msText(best.P99))
	case subject == 0:
		fmt.Fprintf(&b, "%s had the lowest p99, %s: %s", title(best), msText(best.P99), others(best, ranked[1:]))
	case subject > 0:
		us := ranked[subject]
		fmt.Fprintf(&b, "%s did not win: %s had the lowest p99, %s, and its %s was %s", title(us),
			best.name(), msText(best.P99), msText(us.P99), others(us, slices.Concat(ranked[:subject], ranked[subject+1:])))
	default:
		fmt.Fprintf(&b, "%s had the lowest p99, %s: %s", title(best), msText(best.P99), others(best, ranked[1:]))
	}
	b.WriteString(losses(results))
	return b.String()
}

// others compares one policy with the rest, in order of their p99.
func others(us *Result, rest []*Result) string {
	parts := make([]string, len(rest))
	for i, r := range rest {
		parts[i] = fmt.Sprintf("%s %s (%s%s)", ratio(us.P99, r.P99), r.name(), msText(r.P99), unsettled(us, r))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

func ratio(us, other float64) string {
	switch {
	case us == other:
		return "the same as"
	case us < other:
		return fmt.Sprintf("%.1f times below", other/us)
	}
	return fmt.Sprintf("%.1f times above", us/other)
}

// unsettled says when the rounds of two policies overlap, so that another run may order them differently.
func unsettled(a, b *Result) string {
	aLo, aHi := a.spread()
	bLo, bHi := b.spread()
	if aLo <= bHi && bLo <= aHi {
		return "; their rounds overlap"
	}
	return ""
}

func losses(results []*Result) string {
	var queries, errors, lost int64
	for _, r := range results {
		queries, errors, lost = queries+r.Queries, errors+r.Errors, lost+r.Lost
	}
	again := repeated(results)
	vain := ""
	if again.Errors+again.Lost > 0 {
		vain = fmt.Sprintf(", and in rounds that were repeated %d were lost and %d failed", again.Lost, again.Errors)
	}
	if errors == 0 && lost == 0 {
		return fmt.Sprintf("; none of %s was lost or failed%s.", counted(queries, "query"), vain)
	}
	return fmt.Sprintf("; of %s %d were lost and %d failed%s.", counted(queries, "query"), lost, errors, vain)
}

func title(r *Result) string { return strings.ToUpper(r.name()[:1]) + r.name()[1:] }

func msText(v float64) string { return fmt.Sprintf("%.0f ms", v) }
