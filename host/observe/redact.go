package observe

import (
	"regexp"
	"strings"
)

const mostText = 500 // bytes of an error or a name in a log

var (
	urlPattern    = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>]+`)
	schemePattern = regexp.MustCompile(`(?i)\b(basic|bearer|digest|negotiate)\s+[A-Za-z0-9._~+/=-]{6,}`)
)

// Redact makes text from elsewhere, such as an error or an address, fit for a log: users, passwords and
// queries of URLs and the tokens of Authorization headers are left out, control characters become
// spaces, and what is longer than 500 bytes is cut. It cannot know what else is secret.
func Redact(s string) string {
	if len(s) > 8*mostText {
		s = s[:8*mostText]
	}
	s = urlPattern.ReplaceAllStringFunc(s, redactURL)
	s = schemePattern.ReplaceAllString(s, "$1 ***")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > mostText {
		s = strings.ToValidUTF8(s[:mostText], "") + "..."
	}
	return s
}

func redactURL(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		rest = "***" + rest[at:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i] + "?***"
	}
	return scheme + "://" + rest
}
