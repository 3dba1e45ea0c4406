// Package setting holds the kinds of values that settings have beside numbers and text, and errors that know which
// setting is wrong.
package setting

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Duration is a time.Duration that is written like "10s" in YAML.
type Duration time.Duration

// UnmarshalYAML reads text such as "10s".
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return InLine(n, "%q is not a duration: write one like 10s", n.Value)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// Size is a number of bytes that is written like "64KiB".
type Size int64

var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText reads a whole number, of bytes or with KiB, MiB or GiB behind it.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size: write one like 64KiB, 10MiB or 1GiB", text)
	}
	*s = Size(n * unit)
	return nil
}

// UnmarshalYAML is UnmarshalText with the line in the error.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	if err := s.UnmarshalText([]byte(n.Value)); err != nil {
		return InLine(n, "%w", err)
	}
	return nil
}

// MarshalText writes the largest unit that gives a whole number.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Size) String() string {
	for _, u := range units {
		if v := int64(s); v != 0 && v%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(v/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Error is a setting that is wrong. Path is where it stands in a YAML file: names and numbers of list items, with dots
// between.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// At says where an error belongs; paths of errors inside go on from there. Nil stays nil.
func At(path string, err error) error {
	if err == nil {
		return nil
	}
	var inner *Error
	if errors.As(err, &inner) {
		path += "." + inner.Path
	}
	return &Error{path, err}
}

// Errorf is an error about the setting of a name, which begins with its flag.
func Errorf(name, format string, args ...any) error {
	return &Error{name, fmt.Errorf("--"+Flag(name)+" "+format, args...)}
}

// InLine is an error about a node of a YAML file, of a kind with which a decoder goes on to find more.
func InLine(n *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %v", n.Line, fmt.Errorf(format, args...))}}
}

// Flag is the name of a setting's flag, without the dashes before it.
func Flag(name string) string { return strings.ReplaceAll(name, "_", "-") }
