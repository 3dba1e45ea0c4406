// Package fuel makes a WebAssembly module stop by itself: Inject rewrites its code so that
// every loop, every recursion and every long operation pays from a counter, and a module that
// has spent what a call was given traps.
//
// The runtime cannot do this from outside: a watchdog in the host stands still when the host's
// collector waits for a guest that loops.
//
// What one unit pays for:
//
//   - an entry of a loop's header, so an iteration, with up to [unitWeight] instructions of its
//     body; a longer body costs one more for each further so many;
//   - a call of a function, likewise. Functions that call nobody and are short are free: what
//     calls them pays for them;
//   - 16 bytes that a memory or table instruction fills, copies or initialises; growing and
//     calling the host cost [hostCall] more.
//
// All that the module has keeps its index: what is added is added behind it. The exports lead to
// new functions, which nothing in the module can name, and which fill the counter and call the
// old ones. So a call from outside starts full, and a guest cannot fill itself up.
package fuel

// Global is the name under which the counter is exported. Below zero, the module has run out.
const Global = "headroom_fuel"

// Limits of what is taken in, far above what compilers emit, and below what would make the
// runtime run out of memory before any guest has run.
const (
	maxParams      = 1000    // of a function, and results
	maxLocals      = 50_000  // of a function
	maxAllLocals   = 8 << 20 // of a module
	maxWrapped     = 1 << 20 // parameters of exported functions, in sum
	maxTable       = 1 << 20 // elements of a table: 8 MiB
	maxTablesTotal = 4 << 20 // of all tables at their start
)

// Inject returns the module with fuel counted. The allowance is asked for the name of each
// exported function, and for "" as what the module has until the first call, for its start
// function; it must be positive.
//
// An [ErrMalformed] is no module at all, or out of bounds; an [ErrUnknown] names the offset
// of something that this package does not know. Input that wazero compiles gives output that it
// compiles. Custom sections other than the names of functions are left out, since they may
// hold offsets into the code. A table holds at most 2^20 elements afterwards.
func Inject(wasm []byte, allowance func(export string) int64) ([]byte, error) {
	m, err := parse(wasm)
	if err != nil {
		return nil, err
	}
	return m.rewrite(allowance)
}
