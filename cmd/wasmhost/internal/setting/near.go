package setting

import (
	"errors"
	"strings"

	"github.com/headroom-lb/headroom/engine"
)

// Use says what there is instead of a name that there is not: first the one that was probably meant.
func Use(name string, known []string) string {
	return didYouMean(name, known) + "use " + strings.Join(known, ", ")
}

// wanted stands before the names in what a policy says of one that it does not know.
const wanted = "want one of "

// Suggest has an error of a policy line say which name was probably meant. Others stay as they are.
func Suggest(err error) error {
	var wrong *engine.ConfigError
	if !errors.As(err, &wrong) {
		return err
	}
	what, names, ok := strings.Cut(wrong.Reason, wanted)
	if !ok {
		return err
	}
	name := wrong.Key
	if name == "" {
		name = wrong.Policy
	}
	better := *wrong
	better.Reason = what + didYouMean(name, strings.Split(names, ", ")) + wanted + names
	return &better
}

func didYouMean(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "? "
}

// distance counts the letters to add, drop or change, and the neighbours to change places, from one word to another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[0][j] = j
				continue
			}
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
