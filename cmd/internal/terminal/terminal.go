// Package terminal tells whether output goes to a person's screen.
package terminal

import (
	"io"
	"os"
)

// Is reports whether w is a terminal that understands cursor movement. The null device is a
// character device too, but nobody watches it.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
