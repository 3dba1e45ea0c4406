package lbhttp

import (
	"errors"
	"strconv"
)

// ErrNotPlaced says that the balancer had no replica to offer. The engine's reason, such as
// [engine.ErrNoneEligible], is wrapped beside it.
var ErrNotPlaced = errors.New("no replica available")

// Error is an attempt that got no answer, the last one if there were several.
type Error struct {
	Endpoint string // name of the replica last tried
	Attempts int    // on different replicas, this one included
	Err      error
}

func (e *Error) Error() string {
	s := "replica " + e.Endpoint
	if e.Attempts > 1 {
		s += ", attempt " + strconv.Itoa(e.Attempts)
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether time ran out. http.Client asks for it without unwrapping.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}
