package engine

import "errors"

// Errors of the engine. They never merge: each has one meaning, one name in traces and one
// code in the ABI.
var (
	ErrNoCandidates = errors.New("no candidates")
	ErrNoneEligible = errors.New("none eligible")
	ErrDuplicateID  = errors.New("duplicate endpoint")
	ErrUnknownID    = errors.New("unknown endpoint")
	ErrConfig       = errors.New("bad config")
	ErrCapacity     = errors.New("capacity exceeded")
	ErrOverflow     = errors.New("overflow")
	ErrTopology     = errors.New("inconsistent topology")
	ErrRejected     = errors.New("rejected: too few healthy")
	ErrLoadOverflow = errors.New("load overflow")
	ErrBlock        = errors.New("state block does not fit")
)

// ConfigError is a refused setting. It unwraps to [ErrConfig].
type ConfigError struct {
	Policy string // spec name of the policy, or what was given
	Key    string // the setting, if one is to blame
	Value  string // as given
	Reason string // what would be right
}

func (e *ConfigError) Error() string {
	s := e.Policy
	if s == "" {
		s = "spec"
	}
	if e.Key != "" {
		s += ": " + e.Key
		if e.Value != "" {
			s += "=" + e.Value
		}
	}
	return s + ": " + e.Reason
}

func (e *ConfigError) Unwrap() error { return ErrConfig }

// DetailError adds what was met to a sentinel.
type DetailError struct {
	Err    error
	Detail string
}

func (e *DetailError) Error() string { return e.Err.Error() + ": " + e.Detail }
func (e *DetailError) Unwrap() error { return e.Err }
