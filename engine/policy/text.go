package policy

import (
	"math/bits"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// The engine does without fmt, strings and time: they would add 260 to 745 KB to the module.

const unitInFlight = "queries in flight"

// plural counts things in words.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return itoa(n) + " " + what + "s"
}

// latencyText prints a latency for people, to about three digits.
func latencyText(d engine.Duration) string {
	switch {
	case d < 0:
		return "unknown"
	case d < engine.Microsecond:
		return itoa(int(d)) + " ns"
	case d < engine.Millisecond:
		return decimal(uint64(d/10)*100) + " us"
	case d < engine.Second:
		return decimal(uint64(d/(10*engine.Microsecond))*100) + " ms"
	}
	return decimal(uint64(d/(10*engine.Millisecond))*100) + " s"
}

func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// clip keeps a stranger's text short and on one line in an error.
func clip(s string) string {
	const most = 40
	out := make([]byte, 0, most+3)
	for i := 0; i < len(s); i++ {
		if i == most {
			return string(out) + "..."
		}
		if s[i] < ' ' || s[i] > '~' {
			out = append(out, '?')
		} else {
			out = append(out, s[i])
		}
	}
	return string(out)
}

func join(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += ", "
		}
		out += w
	}
	return out
}

func fields(s string) (words []string) {
	start := -1
	for i := 0; i <= len(s); i++ {
		space := i == len(s) || s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r'
		if space && start >= 0 {
			words = append(words, s[start:i])
			start = -1
		} else if !space && start < 0 {
			start = i
		}
	}
	return words
}

// parseDecimal reads digits with an optional fraction of at most places digits, scaled to
// that many places.
func parseDecimal(s string, places int) (n uint64, ok bool) {
	digits, point := 0, -1
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.' && point < 0:
			point = i
		case c >= '0' && c <= '9' && digits < 19:
			if n > (1<<64-1-9)/10 {
				return 0, false
			}
			n = n*10 + uint64(c-'0')
			digits++
		default:
			return 0, false
		}
	}
	fraction := 0
	if point >= 0 {
		fraction = len(s) - point - 1
	}
	if digits == 0 || fraction > places {
		return 0, false
	}
	for ; fraction < places; fraction++ {
		if n > (1<<64-1)/10 {
			return 0, false
		}
		n *= 10
	}
	return n, true
}

// decimal prints parts per 10,000.
func decimal(parts uint64) string {
	s := utoa(parts / probe.Unit)
	rest := parts % probe.Unit
	if rest == 0 {
		return s
	}
	tail := utoa(probe.Unit + rest)[1:]
	for tail[len(tail)-1] == '0' {
		tail = tail[:len(tail)-1]
	}
	return s + "." + tail
}

// percent is a part of a whole, for people; the whole is not zero.
func percent(part, whole uint64) string {
	hi, lo := bits.Mul64(part, probe.Unit)
	lo, carry := bits.Add64(lo, whole/2, 0)
	parts, _ := bits.Div64(hi+carry, lo, whole)
	return decimal(parts*100) + " %"
}

// ratio prints n/d, which is at most 1, rounded down to four decimals.
func ratio(n, d uint64) string {
	hi, lo := bits.Mul64(n, probe.Unit)
	q, _ := bits.Div64(hi, lo, d)
	return portion(q, n != 0)
}

// portion prints parts per 10,000, which may have been rounded to nothing.
func portion(parts uint64, some bool) string {
	if parts == 0 && some {
		return "under 0.0001"
	}
	return decimal(parts)
}

var units = []struct {
	name   string
	places int // decimals that a value may have
	size   engine.Duration
}{
	{"ns", 0, 1}, {"us", 3, engine.Microsecond}, {"ms", 6, engine.Millisecond}, {"s", 9, engine.Second}, {"m", 0, 60 * engine.Second},
}

func parseDuration(s string) (engine.Duration, bool) {
	if s == "0" {
		return 0, true
	}
	number := 0
	for number < len(s) && (s[number] == '.' || s[number] >= '0' && s[number] <= '9') {
		number++
	}
	for _, u := range units {
		if s[number:] != u.name {
			continue
		}
		n, ok := parseDecimal(s[:number], u.places)
		scale := uint64(u.size)
		for range u.places {
			scale /= 10
		}
		if !ok || n > uint64(engine.MaxLatency)/scale {
			return 0, false
		}
		return engine.Duration(n * scale), true
	}
	return 0, false
}

// durationText prints the largest unit that leaves no fraction.
func durationText(d engine.Duration) string {
	if d == 0 {
		return "0"
	}
	for i := len(units) - 1; ; i-- {
		if u := units[i]; d%u.size == 0 {
			return strconv.FormatInt(int64(d/u.size), 10) + u.name
		}
	}
}
