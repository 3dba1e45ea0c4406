package host

import "errors"

// Errors of the host. Errors of the engine pass through: match them with errors.Is.
var (
	// ErrModule is a module that cannot serve: not WebAssembly, or not this ABI.
	ErrModule = errors.New("unusable module")
	// ErrTrap is a guest that failed during a call. Its instance is not used again.
	ErrTrap = errors.New("guest trapped")
	// ErrAnswer is a guest that decided for a replica that may not be decided for.
	ErrAnswer = errors.New("guest gave a wrong answer")
	// ErrSlow is a foreign guest that takes more than 10 ms for more than one decision in 64.
	ErrSlow = errors.New("guest is too slow")
	// ErrOldGuest is a guest of an earlier ABI minor that lacks what was asked.
	ErrOldGuest = errors.New("the guest's ABI is too old for this")
	// ErrClosed is a balancer that takes no more queries.
	ErrClosed = errors.New("balancer is closed")
	// ErrEndpoint is an endpoint that cannot be taken in.
	ErrEndpoint = errors.New("bad endpoint")
)
