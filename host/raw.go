package host

import (
	"fmt"
)

// Call calls an export by its name, past every check: for conformance tests, which ask what no host
// would. It returns the 64 bits of the result, the upper half undefined for an i32. An export that
// is not there, or takes another number of arguments, is an [ErrModule]. What a guest keeps at the
// arena may be gone after it, and after lb_arena the instance is for this function only.
func (in *Instance) Call(name string, args ...uint64) (uint64, error) {
	f := in.function(name)
	if f == nil || len(f.Definition().ParamTypes()) != len(args) {
		return 0, fmt.Errorf("%w: no export %s of %d arguments", ErrModule, name, len(args))
	}
	_, err := in.call(f, args...)
	return in.stack[0], err
}
