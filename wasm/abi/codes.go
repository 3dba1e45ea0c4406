package abi

import (
	"errors"

	"github.com/headroom-lb/headroom/engine"
)

// Code is an error as it crosses: negative, one for each sentinel, never reused.
type Code int32

// CodeInternal says that a guest failed in a way of its own.
const CodeInternal Code = -100

// ErrInternal is what CodeInternal and any unknown code mean.
var ErrInternal = errors.New("guest failed")

var codes = []struct {
	code Code
	err  error
	name string
}{
	{-1, engine.ErrNoCandidates, "no_candidates"},
	{-2, engine.ErrNoneEligible, "none_eligible"},
	{-3, engine.ErrDuplicateID, "duplicate_endpoint"},
	{-4, engine.ErrUnknownID, "unknown_endpoint"},
	{-5, engine.ErrConfig, "bad_config"},
	{-6, engine.ErrCapacity, "capacity"},
	{-7, engine.ErrOverflow, "overflow"},
	{-8, engine.ErrTopology, "topology"},
	{-9, engine.ErrRejected, "panic_rejected"},
	{-10, engine.ErrLoadOverflow, "load_overflow"},
	{-11, engine.ErrBlock, "bad_block"},
	{CodeInternal, ErrInternal, "internal"},
}

// CodeOf is the code of an error; nil is 0, an error of no sentinel is CodeInternal.
func CodeOf(err error) Code {
	if err == nil {
		return 0
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return CodeInternal
}

// ErrorOf is the sentinel of a code; 0 and above is nil, an unknown code ErrInternal.
func ErrorOf(c Code) error {
	if c >= 0 {
		return nil
	}
	for _, k := range codes {
		if k.code == c {
			return k.err
		}
	}
	return ErrInternal
}

// NameOf is the name of an error in traces and metrics.
func NameOf(err error) string {
	if err == nil {
		return ""
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "internal"
}

// Sentinels lists every error that has a code, for tests and docs.
func Sentinels() (errs []error, cs []Code, names []string) {
	for _, c := range codes {
		errs, cs, names = append(errs, c.err), append(cs, c.code), append(names, c.name)
	}
	return errs, cs, names
}
